package reducer

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Input is what a session reacts to. At is when the workflow received it.
type Input interface{ at() time.Time }

type (
	// Opened is the first input of a session, after [Load].
	Opened struct {
		At time.Time
		// PreviousRunID is the Temporal run of the previous session; "" for the first.
		PreviousRunID string
		// ForkedFrom is as in [event.SessionStarted].
		ForkedFrom string
	}
	// Received is valid input. Known events, by ClientEventID, are dropped; the others are
	// accepted or rejected as a whole.
	Received struct {
		At     time.Time
		Events []event.Event
	}
	// Refused is invalid input.
	Refused struct {
		At     time.Time
		Reason string
		Input  string // redacted
		// ClientEventID is that of the first event; "" if unknown.
		ClientEventID string
	}
	// RequestStarted reports that an attempt was sent to a provider. It can be lost,
	// delayed or duplicated.
	RequestStarted struct {
		At time.Time
		Attempted
		// Ended is set if the attempt failed and another one follows.
		Ended *AttemptEnd
		Lost  *LostAttempt
	}
	// RequestEnded reports the result of a request.
	RequestEnded struct {
		At time.Time
		Attempted
		Outcome Outcome
		// Text is the complete or partial answer, and Reasoning the reasoning text that the
		// provider returned.
		Text, Reasoning string
		// ProviderState is the provider state of a complete answer; nil for none.
		ProviderState *event.ProviderState
		// Reason is why an attempt was interrupted.
		Reason event.Reason
		AttemptEnd
		FinishReason string
		Lost         *LostAttempt
		// Calls are the tool calls of an answer, set for the outcome [Called].
		Calls []CalledTool
	}
	// ToolEnded reports the end of a call that [CallTool] started.
	ToolEnded struct {
		At                time.Time
		RequestID, CallID string
		Outcome           CallOutcome
		// Value or Error is the result of a call that returned.
		Value, Error json.RawMessage
		IsError      bool
		Duration     time.Duration
	}
	// Woken reports that the time of [WakeAt] has come.
	Woken struct{ At time.Time }
	// InterruptAsked cancels the running request.
	InterruptAsked struct{ At time.Time }
	// Continued reports that the session continued as new in another run.
	Continued struct {
		At time.Time
		// NotStarted are the ids of the calls whose [CallTool] the previous run did not perform.
		NotStarted []string
	}
	// CloseAsked ends the session.
	CloseAsked struct {
		At time.Time
		// Reason is recorded in [event.SessionEnded]; "" means "closed".
		Reason string
	}
)

// Attempted is the attempt that an input is about. Without one, only RequestID is set.
type Attempted struct {
	RequestID  string
	Attempt    int
	Through    string
	ProviderID string
	Model      string
	// Worker is the task queue of the process that makes the attempt. Only
	// [RequestStarted] sets it.
	Worker string
}

// AttemptEnd is how an attempt ended. Kind, Retryable and Error are set if it failed.
type AttemptEnd struct {
	Kind      event.FailureKind
	Retryable bool
	Error     string // redacted
	Duration  time.Duration
	Usage     event.Usage
}

// Maximum lengths of errors of attempts that workers report, in bytes. A truncated error also has
// up to 100 bytes about the truncation.
const (
	MaxAttemptError = 2000
	// MaxSignalledError applies to the signal at the end of an attempt that is retried.
	MaxSignalledError = 400
	truncation        = 100
)

// bounded returns the end with valid fields: any client can send the signal with the report.
func (e AttemptEnd) bounded() AttemptEnd {
	if !e.Kind.IsKnown() {
		e.Kind = ""
	}
	if limit := MaxAttemptError + truncation; len(e.Error) > limit {
		e.Error = strings.ToValidUTF8(e.Error[:limit], "")
	}
	e.Duration = max(e.Duration, 0)
	e.Usage = e.Usage.Bounded()
	return e
}

// LostAttempt is an attempt that did not report its end, as reported by a later attempt or the
// server.
type LostAttempt struct {
	Attempted
	Usage event.Usage
}

// Outcome is the result of a request.
type Outcome string

const (
	Completed Outcome = "completed"
	// Called: the answer has tool calls. The request continues with their results.
	Called Outcome = "called"
	// Interrupted: the attempt was stopped or timed out, with a partial answer.
	Interrupted Outcome = "interrupted"
	// Failed: the provider refused, or no attempt is left.
	Failed Outcome = "failed"
	// HandedBack: the worker shut down. The request is enqueued again. The value is in
	// histories.
	HandedBack Outcome = "returned"
	// Lost: the worker died. The request is enqueued again.
	Lost Outcome = "lost"
)

func (in Opened) at() time.Time         { return in.At }
func (in Received) at() time.Time       { return in.At }
func (in Refused) at() time.Time        { return in.At }
func (in RequestStarted) at() time.Time { return in.At }
func (in RequestEnded) at() time.Time   { return in.At }
func (in ToolEnded) at() time.Time      { return in.At }
func (in Woken) at() time.Time          { return in.At }
func (in InterruptAsked) at() time.Time { return in.At }
func (in Continued) at() time.Time      { return in.At }
func (in CloseAsked) at() time.Time     { return in.At }

// Effect is an action of the workflow. The workflow performs effects in order.
type Effect interface{ effect() }

type (
	// Record appends events to the log.
	Record struct{ Events []event.Event }
	// StartRequest enqueues a request for a worker, which debounces it. The request includes
	// all events at the time it is sent. Its JSON is persisted in continuations: fields keep
	// their names.
	StartRequest struct {
		RequestID string
		// Turn counts the requests of the context from 1.
		Turn     int
		Fallback bool
		// FirstAttempt is the number of the next attempt.
		FirstAttempt int
		// Through is the newest event of the log, and ThroughAt its time.
		Through   string
		ThroughAt time.Time `json:",omitzero"`
		Retry     RetryConfig
		TimeoutMs int64
		MaxWaitMs int64
		// Model and Messages are for display. Model is "" for the worker's default.
		Model    string
		Messages int
		// Steps and Limit are as in [Request].
		Steps int    `json:",omitempty"`
		Limit string `json:",omitempty"`
	}
	// AdoptRequest waits for the result of an attempt that the previous run started.
	AdoptRequest struct {
		RequestID string
		Attempt   int
		// Worker is the task queue of the process that makes the attempt.
		Worker string
	}
	// TellRequest notifies the running request of a message while the session does not know
	// whether an attempt was sent. An attempt without the message stops. The notification
	// may be lost: RequestStarted and RequestEnded report what an attempt includes.
	TellRequest struct {
		RequestID string
		// Through is the message.
		Through string
	}
	// InterruptRequest stops the running request.
	InterruptRequest struct {
		RequestID string
		Reason    event.Reason
		// Through is the newest message that wants an answer. An attempt that includes it
		// ignores an interruption by new input.
		Through string
	}
	// CallTool executes a tool call, whose end [ToolEnded] reports.
	CallTool struct {
		RequestID string
		Call      Call
	}
	// CancelTools cancels the running tool calls of a request. Results that still arrive replace
	// the recorded placeholders.
	CancelTools struct{ RequestID string }
	// WakeAt replaces the timer of the session; zero removes it. [Woken] reports that the time has
	// come. It is the last effect of a step.
	WakeAt struct{ At time.Time }
)

func (Record) effect()           {}
func (StartRequest) effect()     {}
func (AdoptRequest) effect()     {}
func (TellRequest) effect()      {}
func (InterruptRequest) effect() {}
func (CallTool) effect()         {}
func (CancelTools) effect()      {}
func (WakeAt) effect()           {}
