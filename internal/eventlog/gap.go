package eventlog

import (
	"fmt"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// GapError reports events that are in no history, and that the archive lacks or cannot read. Only a
// [Log] with an archive returns it.
type GapError struct {
	ContextName string
	First, Last int   // counters; Last is 0 if no later event is known
	Err         error // of the archive; nil: the events are not in it
}

func (e *GapError) Error() string {
	which := fmt.Sprintf("events %d to %d", e.First, e.Last)
	if e.Last == 0 {
		which = fmt.Sprintf("events from %d on", e.First)
	}
	if e.Err != nil {
		return fmt.Sprintf("%s of context %s are in no history, and the archive cannot be read: %v", which, e.ContextName, e.Err)
	}
	return fmt.Sprintf("%s of context %s are neither in a history nor in the archive (the log continues after %s)",
		which, e.ContextName, event.FormatID(e.ContextName, e.Last))
}

func (e *GapError) Unwrap() error { return e.Err }
