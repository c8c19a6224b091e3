package reducer

import (
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Input is an event in the life of a session. Each input carries the time at which the
// session learned of it.
type Input interface{ at() time.Time }

type (
	// Opened is the first input of a session. The session given to Step holds the log so
	// far ([Load]).
	Opened struct {
		At time.Time
		// PreviousRunID is the Temporal run of the previous session; "" for the first.
		PreviousRunID string
		// ForkedFrom is the event that the context was forked from, in the first session
		// of a fork.
		ForkedFrom string
	}
	// Received is valid input: one or more events that are accepted or rejected as a whole.
	// Events already recorded, identified by ClientEventID, are dropped.
	Received struct {
		At     time.Time
		Events []event.Event
	}
	// Refused is invalid input.
	Refused struct {
		At     time.Time
		Reason string
		// Input is the redacted input.
		Input string
		// ClientEventID is the sender's id of the first event; "" if unknown.
		ClientEventID string
	}
	// RequestStarted reports that an attempt was sent to a provider. It can be lost,
	// delayed or duplicated.
	RequestStarted struct {
		At time.Time
		Attempted
	}
	// RequestEnded reports the result of a request.
	RequestEnded struct {
		At time.Time
		Attempted
		Outcome Outcome
		// Text is the answer, or its partial text.
		Text string
		// Reason is why a request was interrupted without being asked to stop.
		Reason event.Reason
		// Error is the redacted reason of a failure.
		Error        string
		Duration     time.Duration
		InputTokens  int
		OutputTokens int
		FinishReason string
	}
	// InterruptAsked asks to stop the running answer.
	InterruptAsked struct{ At time.Time }
	// Continued reports that the session continued as new in another run.
	Continued struct{ At time.Time }
	// CloseAsked asks to end the session.
	CloseAsked struct {
		At time.Time
		// Reason is recorded in [event.SessionEnded]; "" means "closed".
		Reason string
	}
)

// Attempted identifies the attempt that an input is about. All fields except RequestID are
// zero if nothing was sent.
type Attempted struct {
	RequestID  string
	Attempt    int
	Through    string
	ProviderID string
	Model      string
	// Worker is the task queue of the process that makes the attempt; "" if unknown.
	// Only [RequestStarted] sets it.
	Worker string
}

// Outcome is the result of a request.
type Outcome string

// Outcomes.
const (
	// Completed: the answer is complete.
	Completed Outcome = "completed"
	// Interrupted: the request was stopped; Text is the partial answer.
	Interrupted Outcome = "interrupted"
	// Failed: the provider refused, or the attempts are exhausted.
	Failed Outcome = "failed"
	// Returned: the worker shut down or died; the request is sent again.
	Returned Outcome = "returned"
)

func (in Opened) at() time.Time         { return in.At }
func (in Received) at() time.Time       { return in.At }
func (in Refused) at() time.Time        { return in.At }
func (in RequestStarted) at() time.Time { return in.At }
func (in RequestEnded) at() time.Time   { return in.At }
func (in InterruptAsked) at() time.Time { return in.At }
func (in Continued) at() time.Time      { return in.At }
func (in CloseAsked) at() time.Time     { return in.At }

// Effect is an action for the workflow. Effects are performed in order.
type Effect interface{ effect() }

type (
	// Record appends events to the log. It precedes the effects that depend on them.
	Record struct{ Events []event.Event }
	// StartRequest starts a request. The request reads the session when it is sent, so it
	// includes input received during its quiet period.
	StartRequest struct {
		RequestID string
		// Turn numbers the requests of the context from 1.
		Turn     int
		Fallback bool
		// FirstAttempt is the number of its first attempt.
		FirstAttempt int
		// Through is the newest event of the log.
		Through   string
		Retry     RetryConfig
		TimeoutMs int64
		MaxWaitMs int64
		// Model and Messages describe the request to people. Model is "" for the worker's
		// default.
		Model    string
		Messages int
	}
	// AdoptRequest waits for the result of an attempt that the previous run started and
	// whose process is still running it.
	AdoptRequest struct {
		RequestID string
		Attempt   int
		// Worker is the task queue of that process.
		Worker string
	}
	// TellRequest notifies the running request of new input while the session does not know
	// whether the request was sent. If it was sent without that input, the request stops as
	// for InterruptRequest. The notification may be lost: RequestStarted and RequestEnded
	// report what the request was shown.
	TellRequest struct {
		RequestID string
		// Through is the newest event to be answered.
		Through string
	}
	// InterruptRequest stops the running request.
	InterruptRequest struct {
		RequestID string
		Reason    event.Reason
		// Through is the newest event to be answered. An attempt that was shown it need not
		// stop for new input.
		Through string
	}
)

func (Record) effect()           {}
func (StartRequest) effect()     {}
func (AdoptRequest) effect()     {}
func (TellRequest) effect()      {}
func (InterruptRequest) effect() {}
