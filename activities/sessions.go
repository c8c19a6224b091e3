package activities

import (
	"sync"
	"time"

	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// Sessions hands the sessions of scheduled attempts from the workflows of a process to its activities, which thus
// need no query. Sessions are immutable and shared. A nil Sessions is empty.
type Sessions struct {
	mu        sync.Mutex
	byAttempt map[sessionKey]*handedOver
}

type sessionKey struct {
	runID, requestID string
	attempt          int
}

type handedOver struct{ session reducer.Session }

// NewSessions returns an empty Sessions.
func NewSessions() *Sessions { return &Sessions{byAttempt: map[sessionKey]*handedOver{}} }

// Put stores the session of an attempt until drop is called. A later Put of the same attempt replaces it: the
// server can lose a workflow task, whose attempt is then decided again. Drop has no effect on its replacement, nor
// when it is called again.
func (s *Sessions) Put(runID, requestID string, attempt int, session reducer.Session) (drop func()) {
	if s == nil {
		return func() {}
	}
	key, entry := sessionKey{runID, requestID, attempt}, &handedOver{session}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byAttempt[key] = entry
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.byAttempt[key] == entry {
			delete(s.byAttempt, key)
		}
	}
}

// Get returns the session of an attempt, if its newest event is that with the id through, recorded at throughAt.
func (s *Sessions) Get(runID, requestID string, attempt int, through string, throughAt time.Time) (session reducer.Session, ok bool) {
	if s == nil {
		return session, false
	}
	s.mu.Lock()
	entry := s.byAttempt[sessionKey{runID, requestID, attempt}]
	s.mu.Unlock()
	if entry == nil || !isThrough(entry.session, through, throughAt) {
		return session, false
	}
	return entry.session, true
}

// isThrough reports whether a session ends with an event. Logs with the same number of events differ in the time
// of the last one, because each workflow task has its own time.
func isThrough(s reducer.Session, through string, throughAt time.Time) bool {
	return s.LastEventID() == through && s.LastEventAt.Equal(throughAt)
}
