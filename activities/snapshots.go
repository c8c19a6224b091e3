package activities

import (
	"sync"

	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// Snapshots holds the newest session of each run that a worker's workflows are
// working on. Sessions are immutable, so they are shared and not copied. A nil
// Snapshots holds nothing.
//
// What it holds may be behind, when the workflow has moved to another worker:
// then its request is stopped and made again, as for input that came too late.
type Snapshots struct {
	mu   sync.Mutex
	runs map[string]*Slot
}

// NewSnapshots returns an empty store.
func NewSnapshots() *Snapshots { return &Snapshots{runs: map[string]*Slot{}} }

// Slot is where one instance of a workflow puts its sessions.
type Slot struct {
	store   *Snapshots
	runID   string
	session reducer.Session
}

// Slot returns a new slot for a run, in place of any that it had.
func (s *Snapshots) Slot(runID string) *Slot {
	return &Slot{store: s, runID: runID}
}

// Put makes a session the newest of its run.
func (s *Slot) Put(session reducer.Session) {
	if s.store == nil {
		return
	}
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	s.session = session
	s.store.runs[s.runID] = s
}

// Drop empties the slot, unless another instance of the workflow has taken the
// run over.
func (s *Slot) Drop() {
	if s.store == nil {
		return
	}
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	if s.store.runs[s.runID] == s {
		delete(s.store.runs, s.runID)
	}
}

// get is the newest session of a run, if it is here.
func (s *Snapshots) get(runID string) (reducer.Session, bool) {
	if s == nil {
		return reducer.Session{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	slot, ok := s.runs[runID]
	if !ok {
		return reducer.Session{}, false
	}
	return slot.session, true
}
