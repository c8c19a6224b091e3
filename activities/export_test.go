package activities

import "github.com/seed-9ed7edd4/chronicle/reducer"

func (c *SessionCache) Get(runID string) (reducer.Session, bool) { return c.get(runID) }

// CacheSize returns the counted size in bytes.
func CacheSize(c *SessionCache) int64 { return c.size }

// Spilled returns the number of sessions in the spill file.
func Spilled(c *SessionCache) (n int) {
	for _, e := range c.runs {
		if e.spilled != nil {
			n++
		}
	}
	return n
}

var WithHeartbeats = withHeartbeats
