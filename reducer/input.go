package reducer

import (
	"encoding/json"
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
		Options
	}
	// Received is valid input. Events with a known ClientEventID are dropped; the others are accepted
	// or rejected as a whole.
	Received struct {
		At     time.Time
		Events []event.Event
	}
	// Malformed is invalid input.
	Malformed struct {
		At            time.Time
		Reason        string
		Input         string // redacted
		ClientEventID string // of the first event; "" if unknown
	}
	// AttemptEnded reports the end of the attempt that [StartAttempt] scheduled. Reports of other attempts are ignored.
	AttemptEnded struct {
		At        time.Time
		RequestID string
		Attempt   int
		Outcome   Outcome
		// ProviderID and Model are those that the worker used; "" if unknown.
		ProviderID, Model string
		Text, Reasoning   string               // complete or partial
		ProviderState     *event.ProviderState // of a complete answer; nil for none
		Reason            event.Reason         // of an interruption
		AttemptEnd
		// RetryAfter is the delay that the provider asks for; 0: none. More than [MaxRetryAfter] ends the retries.
		RetryAfter   time.Duration
		Final        bool // no retry follows, even if Retryable
		FinishReason string
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
		// Repair is set for [Failed] if the next attempt can repair the invalid answer; nil: it cannot.
		Repair *Repair
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
	// Woken reports that the time of the newest [WakeAt] has come.
	Woken struct{ At time.Time }
	// InterruptAsked cancels the running request.
	InterruptAsked struct{ At time.Time }
	// Continued reports that the session continued as new in another run. The attempt and the calls of the
	// previous run are lost.
	Continued struct {
		At         time.Time
		Scheduled  bool     // the previous run performed the newest [StartAttempt]
		NotStarted []string // ids of the calls whose [CallTool] the previous run did not perform
		Options
	}
	// CloseAsked ends the session.
	CloseAsked struct {
		At     time.Time
		Reason string // "" means "closed"
		// InactiveSince keeps a session open that has a request or a newer event; zero: it ends anyway.
		InactiveSince time.Time
	}
)

// Options are settings of the worker, which a run keeps.
type Options struct {
	// DefaultProviderID and DefaultModel are used by contexts without a provider of their own; "": unknown.
	DefaultProviderID string `json:"defaultProviderId,omitempty"`
	DefaultModel      string `json:"defaultModel,omitempty"`
	// IdleCloseMs is the time without an event after which an idle session ends; 0: never.
	IdleCloseMs int64 `json:"idleCloseMs,omitempty"`
}

// AttemptEnd is how an attempt ended. Kind, Retryable and Error are set if it failed.
type AttemptEnd struct {
	Kind      event.FailureKind
	Retryable bool   // the same request may succeed later
	Error     string // redacted
	Duration  time.Duration
	Usage     event.Usage
}

// Repair lets the next attempt correct an invalid answer. Its JSON is persisted.
type Repair struct {
	Answer  string `json:"answer,omitempty"` // invalid; "": not to be sent to the model
	Problem string `json:"problem"`          // what is wrong with the answer
}

// Outcome is the result of an attempt.
type Outcome string

// Outcomes of an attempt.
const (
	Completed   Outcome = "completed"
	Called      Outcome = "called"      // with tool calls; their results continue the request
	Interrupted Outcome = "interrupted" // stopped after it was sent, or timed out with a partial answer
	Withdrawn   Outcome = "withdrawn"   // stopped before it was sent
	Failed      Outcome = "failed"
	HandedBack  Outcome = "handed_back" // the worker shut down after it was sent
	Lost        Outcome = "lost"        // the worker died
	TooLong     Outcome = "too_long"    // not sent: it exceeds the part of the window that triggers compaction
)

func (in Opened) at() time.Time         { return in.At }
func (in Received) at() time.Time       { return in.At }
func (in Malformed) at() time.Time      { return in.At }
func (in AttemptEnded) at() time.Time   { return in.At }
func (in ToolEnded) at() time.Time      { return in.At }
func (in Woken) at() time.Time          { return in.At }
func (in InterruptAsked) at() time.Time { return in.At }
func (in Continued) at() time.Time      { return in.At }
func (in CloseAsked) at() time.Time     { return in.At }
