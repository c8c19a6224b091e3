package activities

import (
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// DefaultFailover is the heartbeat timeout of attempts and tool calls unless [Options] set another one.
const DefaultFailover = 3 * time.Second

// AttemptInput is the input of [Activities.Generate]: one attempt.
type AttemptInput struct {
	ContextName string `json:"contextName"`
	reducer.StartAttempt
	// MaxAttempts is the maximum number of attempts of the activity. An error before the attempt was sent is an
	// error of the activity, which Temporal retries, and for the last time a result.
	MaxAttempts int `json:"maxAttempts"`
	// Previous is the attempt before this one, if it failed or was lost. Nil: neither.
	Previous *PreviousAttempt `json:"previous,omitempty"`
	Links    []TraceLink      `json:"links,omitempty"` // of the span of the attempt
}

// PreviousAttempt is what an attempt needs to know of the failed or lost one before it.
type PreviousAttempt struct {
	Outcome   reducer.Outcome `json:"outcome"`
	Fallback  bool            `json:"fallback,omitempty"`  // it was sent to the fallback provider
	Heartbeat *Heartbeat      `json:"heartbeat,omitempty"` // its last heartbeat, if it was lost; nil: none
}

// Heartbeat is the detail of the heartbeats of an attempt.
type Heartbeat struct {
	Sent        bool   `json:"sent,omitempty"` // to the provider
	ProviderID  string `json:"providerId,omitempty"`
	Model       string `json:"model,omitempty"`
	event.Usage        // so far
	Reservation string `json:"reservation,omitempty"` // key of the attempt in the budgets of labels; empty: none
	Trace       string `json:"trace,omitempty"`       // as in [reducer.AttemptEnded]
}
