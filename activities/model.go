package activities

import (
	"context"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// Models finds models. Its errors may be of type [*ModelError].
type Models interface {
	// Resolve returns the model that the provider config of a context selects.
	Resolve(reducer.ProviderConfig) (Model, error)
}

// Model sends requests to one model of one provider.
type Model interface {
	// ID returns the provider and the model that requests are sent to.
	ID() (providerID, model string)
	// Check returns an error if a request cannot be sent, such as one with an invalid schema. It
	// sends nothing.
	Check(r ModelRequest) error
	// Stream sends a request and calls onDelta for each piece of the answer, in order, before
	// it returns. Errors are of type [*ModelError]; the answer is then the part received so
	// far.
	Stream(ctx context.Context, r ModelRequest, onDelta func(Delta)) (Answer, error)
	// Usage returns the usage of the newest request so far. It may be called during Stream and
	// may take seconds.
	Usage() event.Usage
}

// Delta is a piece of the text of an answer, or of the model's reasoning. It is never empty.
type Delta struct {
	Text        string
	IsReasoning bool
}

// ModelRequest is a request to a model.
type ModelRequest struct {
	// Conversation identifies the conversation across requests.
	Conversation string
	Messages     []reducer.Message
	// FirstToken bounds the wait for the first token, and Stall each later pause. 0: no limit.
	FirstToken, Stall time.Duration
	// Settings override those of the provider config.
	Settings event.RequestSettings
	// Repair describes the invalid answer to correct; nil for none.
	Repair *Repair
	// Tools are the tools that the model may call. Empty: none; Settings.ToolChoice and
	// Settings.ParallelToolCalls have no effect.
	Tools []ToolDefinition
}

// Answer is an answer, or its beginning.
type Answer struct {
	Text string
	// Reasoning is the reasoning text that the provider returned.
	Reasoning string
	// State is the provider state for further requests to the same model; nil if there is none
	// or the answer is incomplete.
	State *event.ProviderState
	// FinishReason is the provider's; empty if the answer is incomplete.
	FinishReason string
	// Usage is that of the whole request.
	event.Usage
	// Calls are the tool calls of a complete answer, in order.
	Calls []ModelCall
}

// ModelCall is a tool call as the model made it.
type ModelCall struct {
	// ID is the id that the provider assigned; it may be empty or not unique.
	ID   string
	Name string
	// Arguments is JSON unless the model made a mistake.
	Arguments string
}

// ModelError says whether another attempt is worthwhile. Timeouts wrap
// [context.DeadlineExceeded].
type ModelError struct {
	// Kind becomes the type of the application error in the history.
	Kind string
	// Failure is the kind of failure that events record. Empty: [event.FailureUnavailable].
	Failure event.FailureKind
	// Retryable means that the same request may succeed later, and RetryOnce that only the
	// next attempt may.
	Retryable, RetryOnce bool
	// RetryAfter is the delay requested by the provider; 0 if it requests none.
	RetryAfter time.Duration
	// Answer is an answer in an invalid format; empty if the answer was not invalid.
	Answer string
	// Repair is set if the answer was invalid and a repair may succeed.
	Repair *Repair
	Err    error
}

func (e *ModelError) Error() string { return e.Err.Error() }
func (e *ModelError) Unwrap() error { return e.Err }
