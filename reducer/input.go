package reducer

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Input is what a session reacts to, received by the workflow at the time At.
type Input interface{ at() time.Time }

type (
	// Opened is the first input of a session, after [Load].
	Opened struct {
		At            time.Time
		PreviousRunID string // as in [event.SessionStarted], like ForkedFrom
		ForkedFrom    string
	}
	// Received is valid input. Events with a known ClientEventID are dropped; the others are accepted
	// or rejected as a whole.
	Received struct {
		At     time.Time
		Events []event.Event
	}
	// Refused is invalid input.
	Refused struct {
		At            time.Time
		Reason        string
		Input         string // redacted
		ClientEventID string // of the first event; "" if unknown
	}
	// RequestStarted reports an attempt. The report can be lost, delayed or duplicated.
	RequestStarted struct {
		At time.Time
		Attempted
		Ended *AttemptEnd // set if the attempt failed and another one follows
		Lost  *LostAttempt
		Hooks []event.HookApplied // so far; their RequestID and Attempt are ignored
	}
	// RequestEnded reports the result of a request.
	RequestEnded struct {
		At time.Time
		Attempted
		Outcome         Outcome
		Text, Reasoning string               // complete or partial
		ProviderState   *event.ProviderState // of a complete answer; nil for none
		Reason          event.Reason         // of an interruption
		AttemptEnd
		FinishReason string
		Lost         *LostAttempt
		Calls        []CalledTool // set for the outcome [Called]
		Hooks        []event.HookApplied
		Offered      *event.ToolsOffered // by the attempt, if the log lacks them; nil for none
		// Overflow is set if the request exceeds the context window: for the outcome [TooLong], and for
		// [Failed] if the provider rejected it.
		Overflow *Overflow
		// Suspects is set for [Failed] if the provider refused the attempt: the content that may be why, the most
		// probable first.
		Suspects []Suspect
		Omitted  int // of a summary, as in [event.Compacted]
		// Exceeded is the budget because of which the attempt was not sent; nil: none.
		Exceeded *event.BudgetExceeded
	}
	// ToolEnded reports the end of a call that [CallTool] started.
	ToolEnded struct {
		At                time.Time
		RequestID, CallID string
		Outcome           CallOutcome
		Value, Error      json.RawMessage // of a call that returned
		IsError           bool
		Duration          time.Duration
	}
	// Woken reports that the time of [WakeAt] has come.
	Woken struct{ At time.Time }
	// InterruptAsked cancels the running request.
	InterruptAsked struct{ At time.Time }
	// Continued reports that the session continued as new in another run.
	Continued struct {
		At         time.Time
		NotStarted []string // ids of the calls whose [CallTool] the previous run did not perform
	}
	// CloseAsked ends the session.
	CloseAsked struct {
		At     time.Time
		Reason string // "" means "closed"
	}
)

// Attempted is the attempt that an input is about; without one, only RequestID is set.
type Attempted struct {
	RequestID  string
	Attempt    int
	Through    string // newest event in the attempt
	ProviderID string
	Model      string
	Worker     string // task queue of the process of the attempt; set only by [RequestStarted]
}

// AttemptEnd is how an attempt ended. Kind, Retryable and Error are set if it failed.
type AttemptEnd struct {
	Kind      event.FailureKind
	Retryable bool
	Error     string // redacted
	Duration  time.Duration
	Usage     event.Usage
}

// Maximum bytes of errors of attempts; a truncated error has up to 100 more.
const (
	MaxAttemptError   = 2000
	MaxSignalledError = 400 // for an attempt that is retried
	truncation        = 100
)

// bounded makes the fields valid, because any client can send the signal.
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

// LostAttempt is an attempt that did not report its end. A later attempt or the server reports it.
type LostAttempt struct {
	Attempted
	Usage event.Usage
}

// Outcome is the result of a request.
type Outcome string

// Outcomes of a request.
const (
	Completed   Outcome = "completed"
	Called      Outcome = "called"      // with tool calls; their results continue the request
	Interrupted Outcome = "interrupted" // stopped or timed out, with a partial answer
	Withdrawn   Outcome = "withdrawn"   // stopped before it was sent
	Failed      Outcome = "failed"      // the provider rejected it, or no attempt is left
	HandedBack  Outcome = "returned"    // the worker shut down; enqueued again (histories contain the value)
	Lost        Outcome = "lost"        // the worker died; the request is enqueued again
	TooLong     Outcome = "too_long"    // not sent: it exceeds the part of the window that triggers compaction
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

// Repair lets the next attempt correct an invalid answer.
type Repair struct {
	Answer  string `json:"answer,omitempty"` // empty: too long to send to the model, or not to be recorded
	Problem string `json:"problem"`          // what is wrong with the answer
}

// Effect is an action of the workflow, which performs effects in order.
type Effect interface{ effect() }

type (
	// Record appends events to the log.
	Record struct{ Events []event.Event }
	// StartRequest enqueues a request for a worker, which debounces it. Without a Limit or a Compaction,
	// the request includes all events at the time it is sent. The JSON is persisted: fields keep their names.
	StartRequest struct {
		RequestID    string
		Turn         int // counts the requests of the context from 1
		Fallback     bool
		FirstAttempt int       // number of the next attempt
		Through      string    // newest event of the log, recorded at ThroughAt
		ThroughAt    time.Time `json:",omitzero"`
		Retry        RetryConfig
		TimeoutMs    int64
		MaxWaitMs    int64
		// Model ("" for the worker's default) and Messages are for display.
		Model    string
		Messages int
		Steps    int    `json:",omitempty"` // as in [Request], like Limit
		Limit    string `json:",omitempty"`
		// MayCompact: an attempt that is too long ends with [TooLong]. Otherwise it is sent as it is.
		MayCompact bool        `json:",omitempty"`
		Compaction *Compaction `json:",omitempty"` // as in [Request]
	}
	// AdoptRequest waits for the result of an attempt that the previous run started.
	AdoptRequest struct {
		RequestID string
		Attempt   int
		Worker    string
	}
	// TellRequest notifies the request of the message Through while no attempt is known; an attempt
	// without the message stops. If the notice is lost, [RequestStarted] and [RequestEnded] still
	// report what an attempt includes.
	TellRequest struct {
		RequestID string
		Through   string
	}
	// InterruptRequest stops the running request.
	InterruptRequest struct {
		RequestID string
		Reason    event.Reason
		Through   string // an attempt that includes this message ignores an interruption by new input
	}
	// CallTool executes a tool call, whose end [ToolEnded] reports.
	CallTool struct {
		RequestID string
		Call      Call
		// Schema is set if the worker only validates the arguments: a client executes the call.
		Schema event.Object
	}
	// CancelTools cancels running tool calls. Late results replace the recorded placeholders.
	CancelTools struct{ RequestID string }
	// WakeAt replaces the timer that causes [Woken]; zero removes it. It is the last effect of a step.
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
