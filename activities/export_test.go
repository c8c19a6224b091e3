package activities

import "github.com/seed-9ed7edd4/chronicle/reducer"

func (s *Snapshots) Get(runID string) (reducer.Session, bool) { return s.get(runID) }
