package activities

import (
	"context"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// Models finds models.
type Models interface {
	// Resolve returns the model of a provider config. Errors may be of type [*ModelError].
	Resolve(reducer.ProviderConfig) (Model, error)
}

// Model sends requests to one model of one provider.
type Model interface {
	// ID returns the provider and the model that receive the requests.
	ID() (providerID, model string)
	// Check returns an error if a request cannot be sent, such as one with an invalid schema.
	Check(r ModelRequest) error
	// Reservation estimates the input of a request, and returns its maximum output. CostMicros is
	// nil if no price is known.
	Reservation(ctx context.Context, r ModelRequest) (event.Usage, error)
	// MaxInput returns the maximum input in tokens: the configured context window minus the maximum
	// output. 0: unknown.
	MaxInput(ctx context.Context, r ModelRequest) (int, error)
	// InputTokens estimates the input. If a cheap upper bound is at most limit, it may return that instead.
	// Counting a long conversation for the first time may take a second.
	InputTokens(ctx context.Context, r ModelRequest, limit int) (int, error)
	// Stream sends a request and calls onDelta for each piece of the answer, in order, before it
	// returns. Errors are of type [*ModelError]; the answer is then the part received so far.
	Stream(ctx context.Context, r ModelRequest, onDelta func(Delta)) (Answer, error)
	// Usage returns the usage of the newest request so far. During Stream, it may be a rough estimate, but
	// it must not wait.
	Usage() event.Usage
}

// Delta is a piece of an answer's text or reasoning. It is never empty.
type Delta struct {
	Text        string
	IsReasoning bool
}

// ModelRequest is a request to a model.
type ModelRequest struct {
	ContextName       string
	Messages          []reducer.Message
	FirstToken, Stall time.Duration         // limits of the wait for the first and for each later token; 0: unlimited
	Settings          event.RequestSettings // override those of the provider config
	Repair            *reducer.Repair       // the invalid answer to correct; nil: none
	MaxOutput         int                   // maximum tokens of the answer if no setting limits it; 0: unlimited
	Tools             []ToolDefinition      // empty: tool settings have no effect
}

// Answer is an answer, or its beginning.
type Answer struct {
	Text         string
	Reasoning    string
	State        *event.ProviderState // for later requests to the same model; nil: none, or incomplete answer
	FinishReason string               // of the provider; empty with an error
	event.Usage                       // of the whole request
	Calls        []reducer.ToolCall   // of a complete answer, in order; an ID may be empty or not unique, and Arguments may be invalid
}

// ModelError says whether another attempt is worthwhile. Timeouts wrap [context.DeadlineExceeded].
type ModelError struct {
	Kind                string            // of the error, for people
	Failure             event.FailureKind // in events; empty: [event.FailureUnavailable]
	Retryable           bool              // the same request may succeed later
	Suspects            []reducer.Suspect // as in [reducer.AttemptEnded]
	Final               bool              // no retry follows, even if Retryable
	RetryAfter          time.Duration     // requested by the provider; 0: none
	Answer              string            // the answer, if its format is invalid; else empty
	Window, InputTokens int               // stated in the rejection of a long request; Window as in [Model].MaxInput; 0: not stated
	Repair              *reducer.Repair   // set if the answer was invalid and a repair may succeed
	Err                 error
}

func (e *ModelError) Error() string { return e.Err.Error() }
func (e *ModelError) Unwrap() error { return e.Err }
