package hook

import (
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
)

const (
	// Bounds of [Events]. One event that exceeds MaxBatchBytes is a batch of its own.
	MaxBatchEvents = 100
	MaxBatchBytes  = 256 << 10 // of JSON
	// DefaultSkipAfter is the default of [Hook.SkipAfter].
	DefaultSkipAfter = time.Hour
	// MaxRetryAfter bounds the delay of a [RetryAfterError].
	MaxRetryAfter = 10 * time.Minute
)

// Events are consecutive events of a context, recorded by one run.
//
// A delivery may be repeated: an event with a known id and the same RunID is a duplicate. After
// `temporal workflow reset`, a new run records other events with the ids of the abandoned ones. An
// event with a known id and another RunID replaces that event and all later ones.
//
// A delivery of the abandoned branch that was under way may arrive after deliveries of the new one.
// Its Epoch is lower than theirs: accept it, but ignore its events. The run with the higher Epoch
// delivers those that the log still contains.
type Events struct {
	ContextName string        `json:"contextName"`     // TENANT/NAME in a tenant, unlike in events
	RunID       string        `json:"runId"`           // from Temporal; of imported events, "import-" and a suffix
	After       string        `json:"after,omitempty"` // id of the event before the first; "" at the start of the log
	Cursor      string        `json:"cursor"`          // id of the last event
	Epoch       int           `json:"epoch"`           // number of the delivering run: 1 or more, higher for later runs of the context
	Events      []event.Event `json:"events"`          // in the order of the log
}

// RetryAfterError is an error of [Hook.OnEvent] that sets the delay before the next call, up to
// [MaxRetryAfter].
type RetryAfterError struct {
	Delay time.Duration
	Err   error
}

func (e *RetryAfterError) Error() string { return e.Err.Error() }
func (e *RetryAfterError) Unwrap() error { return e.Err }
