package activities

import "github.com/seed-9ed7edd4/chronicle/reducer"

func (s *SessionCache) Get(runID string) (reducer.Session, bool) { return s.get(runID) }

// Held is how many bytes a store counts.
func Held(s *SessionCache) int64 { return s.size }

// Parked is how many sessions of a store are in its file.
func Parked(s *SessionCache) (n int) {
	for _, slot := range s.runs {
		if slot.parked != nil {
			n++
		}
	}
	return n
}
