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
	// Its JSON, which lacks the first fields, is the result of the activity of the attempt.
	AttemptEnded struct {
		At        time.Time `json:"-"`
		RequestID string    `json:"-"`
		Attempt   int       `json:"-"`
		Outcome   Outcome   `json:"outcome"`
		// ProviderID and Model are those that the worker used; "" if unknown.
		ProviderID    string               `json:"providerId,omitempty"`
		Model         string               `json:"model,omitempty"`
		Text          string               `json:"text,omitempty"`          // complete or partial
		Reasoning     string               `json:"reasoning,omitempty"`     // the part that the settings keep
		ProviderState *event.ProviderState `json:"providerState,omitempty"` // of a complete answer; nil for none
		Calls         []CalledTool         `json:"calls,omitempty"`         // set for the outcome [Called]
		Reason        event.Reason         `json:"reason,omitempty"`        // of an interruption
		// Kind, Retryable, Final, Error and RetryAfterMs describe a failure, and a timeout with text, which is an
		// interruption if no attempt follows.
		Kind      event.FailureKind `json:"kind,omitempty"`
		Retryable bool              `json:"retryable,omitempty"` // the same request may succeed later
		Final     bool              `json:"final,omitempty"`     // no retry follows, even if Retryable
		Error     string            `json:"error,omitempty"`     // redacted
		// RetryAfterMs is the delay that the provider asks for; 0: none. More than [MaxRetryAfter] ends the retries.
		RetryAfterMs int64 `json:"retryAfterMs,omitempty"`
		DurationMs   int64 `json:"durationMs,omitempty"`
		event.Usage
		FinishReason string              `json:"finishReason,omitempty"`
		Hooks        []event.HookApplied `json:"hooks,omitempty"`
		Offered      *event.ToolsOffered `json:"offered,omitempty"` // by the attempt, if the log lacks them; nil for none
		// Overflow is set if the request exceeds the context window: for the outcome [TooLong], and for
		// [Failed] if the provider rejected it.
		Overflow *Overflow `json:"overflow,omitempty"`
		// Suspects is set for [Failed] if the provider refused the attempt: the content that may be why, the most
		// probable first.
		Suspects []Suspect `json:"suspects,omitempty"`
		Omitted  int       `json:"omitted,omitempty"` // of a summary, as in [event.Compacted]
		// Exceeded is the budget because of which the attempt was not sent; nil: none.
		Exceeded *event.BudgetExceeded `json:"exceeded,omitempty"`
		// Repair is set for [Failed] if the next attempt can repair the invalid answer; nil: it cannot.
		Repair *Repair `json:"repair,omitempty"`
		Trace  string  `json:"trace,omitempty"` // traceparent, for later attempts; "" for a complete answer
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
