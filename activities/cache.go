package activities

import (
	"container/list"
	"sync"

	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// SessionCache holds the newest session of each run that a worker's workflows are
// working on. Sessions are immutable, so they are shared and not copied. A nil
// SessionCache holds nothing.
//
// What it holds may be behind, when the workflow has moved to another worker:
// then its request is stopped and made again, as for input that came too late.
//
// It is also the bound on the memory that cached workflows take, since the SDK
// bounds only their number. A workflow that waits lends its session with
// [CacheEntry.Release]; beyond the budget, the sessions that have rested longest are
// written to a temporary file and read back on their next use.
type SessionCache struct {
	mu   sync.Mutex
	runs map[string]*CacheEntry
	// budget is in bytes, 0 for none; size is what all slots take.
	budget, size int64
	resting      *list.List // of *CacheEntry with a session in memory, the longest first
	parking      parking
}

// CacheEntryBytes is about what a cached workflow takes without its session.
const CacheEntryBytes = 48 << 10

// NewSessionCache returns an empty cache that keeps about budget bytes of sessions in
// memory. Zero means no bound.
func NewSessionCache(budget int64) *SessionCache {
	return &SessionCache{runs: map[string]*CacheEntry{}, budget: budget, resting: list.New()}
}

// Slot is where one instance of a workflow puts its sessions.
type CacheEntry struct {
	store *SessionCache // nil: the slot has its session to itself
	runID string
	// session is the newest one, unless it is parked. wish is what it wants of
	// its request.
	session reducer.Session
	wish    wire.StopCheck
	size    int64
	element *list.Element // in resting; nil: in use, or parked
	parked  *region       // nil: in memory
	// uses counts the changes of what is above, so that parking notices them.
	uses int
}

// Slot returns a new slot for a run, in place of any that it had.
func (s *SessionCache) Entry(runID string) *CacheEntry {
	return &CacheEntry{store: s, runID: runID}
}

// Put makes a session the newest of its run.
func (s *CacheEntry) Put(session reducer.Session) {
	if s.store == nil {
		s.session = session
		return
	}
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	s.use()
	s.session, s.wish = session, wire.StopCheckOf(session)
	s.store.runs[s.runID] = s
}

// Release is Put by a workflow that does nothing until its next Acquire.
func (s *CacheEntry) Release(session reducer.Session) {
	s.Put(session)
	if s.store == nil {
		return
	}
	size := CacheEntryBytes + sizeOf(session)
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	s.count(size)
	s.element = s.store.resting.PushBack(s)
	s.store.shrink(s)
}

// Acquire returns the session of a workflow that goes on.
func (s *CacheEntry) Acquire() (reducer.Session, error) {
	session, err := s.Get()
	if err == nil {
		s.Put(session)
	}
	return session, err
}

// Get returns the session.
func (s *CacheEntry) Get() (reducer.Session, error) {
	if s.store == nil {
		return s.session, nil
	}
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	return s.current()
}

// Remove empties the slot, unless another instance of the workflow has taken the
// run over.
func (s *CacheEntry) Remove() {
	if s.store == nil {
		return
	}
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	s.use()
	s.count(0)
	s.session = reducer.Session{}
	if s.store.runs[s.runID] == s {
		delete(s.store.runs, s.runID)
	}
}

// use takes the slot out of what may be parked.
func (s *CacheEntry) use() {
	s.uses++
	if s.element != nil {
		s.store.resting.Remove(s.element)
		s.element = nil
	}
	if s.parked != nil {
		s.store.parking.free(s.parked)
		s.parked = nil
	}
}

// count makes the size that of the slot.
func (s *CacheEntry) count(size int64) {
	s.store.size += size - s.size
	s.size = size
}

// current is the session, wherever it is.
func (s *CacheEntry) current() (reducer.Session, error) {
	if s.parked == nil {
		return s.session, nil
	}
	packed, err := s.store.parking.read(s.parked)
	if err != nil {
		return reducer.Session{}, err
	}
	return wire.Unpack(packed)
}

// shrink parks sessions until they fit the budget, all but that of one slot. It
// is called with the lock, and gives it up while it packs.
func (s *SessionCache) shrink(except *CacheEntry) {
	for s.budget > 0 && s.size > s.budget {
		front := s.resting.Front()
		if front == nil || front.Value == except {
			return
		}
		slot := front.Value.(*CacheEntry)
		s.resting.Remove(front)
		slot.element = nil
		uses, session := slot.uses, slot.session
		s.mu.Unlock()
		packed, err := wire.Pack(session)
		s.mu.Lock()
		if slot.uses != uses {
			continue // it is in use again
		}
		if err == nil {
			slot.parked, err = s.parking.write(packed)
		}
		if err != nil {
			return // it stays in memory, and out of the list until its next use
		}
		slot.session = reducer.Session{}
		slot.count(CacheEntryBytes)
	}
}

// get is the newest session of a run, if it is here.
func (s *SessionCache) get(runID string) (reducer.Session, bool) {
	if s == nil {
		return reducer.Session{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	slot, ok := s.runs[runID]
	if !ok {
		return reducer.Session{}, false
	}
	session, err := slot.current()
	return session, err == nil
}

// wish is what the newest session of a run wants, if it is here.
func (s *SessionCache) wish(runID string) (wire.StopCheck, bool) {
	if s == nil {
		return wire.StopCheck{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	slot, ok := s.runs[runID]
	if !ok {
		return wire.StopCheck{}, false
	}
	return slot.wish, true
}

// sizeOf is about how many bytes a session takes in memory.
func sizeOf(session reducer.Session) int64 {
	size := 0
	attachments := func(all []reducer.Attachment) {
		for _, a := range all {
			size += 300 + len(a.Source.Data) + len(a.Source.URL)
		}
	}
	for _, m := range session.Reduced.Messages {
		size += 200 + len(m.Content)
		for _, c := range m.ToolCalls {
			size += 100 + len(c.Arguments)
		}
		attachments(m.Attachments)
	}
	attachments(session.Reduced.PendingAttachments)
	return int64(size + 80*len(session.Recent))
}
