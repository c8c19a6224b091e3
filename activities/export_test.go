package activities

import "github.com/seed-9ed7edd4/chronicle/reducer"

func (s *Snapshots) Get(runID string) (reducer.Session, bool) { return s.get(runID) }

// Keep makes the session up to a run one that was packed before. A method would
// be taken for an activity.
func Keep(a *Activities, contextName, runID string, packed []byte) {
	a.recalled.put(contextName+" "+runID, packed)
}

var SumOf = sumOf
