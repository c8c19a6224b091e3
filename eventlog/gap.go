package eventlog

import (
	"fmt"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// GapError says that events are missing between those that were read before and
// those that can be read: no history has them any more, and the archive does
// not have them, or cannot be read. Only a [Log] with an archive has it.
type GapError struct {
	ContextName string
	// First and Last are the counters of what is missing. Last is 0 when there
	// is nothing behind it, so that nobody knows.
	First, Last int
	// Err is why the archive cannot be read; nil when it does not have them.
	Err error
}

func (e *GapError) Error() string {
	which := fmt.Sprintf("events %d to %d", e.First, e.Last)
	if e.Last == 0 {
		which = fmt.Sprintf("events from %d on", e.First)
	}
	text := fmt.Sprintf("%s of context %s are in no history of the server", which, e.ContextName)
	if e.Err != nil {
		return fmt.Sprintf("%s, and the archive cannot be read: %v", text, e.Err)
	}
	return fmt.Sprintf("%s and not in the archive; the log goes on behind %s", text, event.FormatID(e.ContextName, e.Last))
}

func (e *GapError) Unwrap() error { return e.Err }
