package reducer

import (
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Input is something that happened to a session. The inputs are the struct
// types of this file; every one carries the time at which the session learns
// of it.
type Input interface{ at() time.Time }

type (
	// Opened is the first input of a session. The session it is given to holds
	// the log so far, see [Load].
	Opened struct {
		At time.Time
		// PreviousRunID is the Temporal run with the session before; "" for the
		// first session.
		PreviousRunID string
		// ForkedFrom is the event that the context was forked from, when this is
		// its first session as a fork.
		ForkedFrom string
	}
	// Received is input that was understood: one event, or several that are
	// taken or refused as a whole. Those that were taken before, by their
	// ClientEventID, are left out.
	Received struct {
		At     time.Time
		Events []event.Event
	}
	// Refused is input that was not understood.
	Refused struct {
		At     time.Time
		Reason string
		// Input is what came, fit for a log.
		Input string
		// ClientEventID is the sender's id of its first event; "" when there is
		// none, or nobody knows.
		ClientEventID string
	}
	// RequestStarted says that an attempt was sent to a provider. It may be
	// lost, late, or come twice.
	RequestStarted struct {
		At time.Time
		Attempted
	}
	// RequestEnded is the result of a request.
	RequestEnded struct {
		At time.Time
		Attempted
		Outcome Outcome
		// Text is the answer, or what there is of it.
		Text string
		// Reason is why an interrupted request stopped, when nobody asked it to.
		Reason event.Reason
		// Error is why a request failed, fit for a log.
		Error        string
		Duration     time.Duration
		InputTokens  int
		OutputTokens int
		FinishReason string
	}
	// InterruptAsked asks to stop the running answer.
	InterruptAsked struct{ At time.Time }
	// Continued says that the session goes on in another run.
	Continued struct{ At time.Time }
	// CloseAsked asks to end the session.
	CloseAsked struct {
		At time.Time
		// Reason goes into the [event.SessionEnded]; "" means "closed".
		Reason string
	}
)

// Attempted says which attempt of which request some news is about. All but
// the request id are zero when nothing was sent.
type Attempted struct {
	RequestID  string
	Attempt    int
	Through    string
	ProviderID string
	Model      string
	// Worker is the task queue of the process that makes the attempt; "" when
	// it is unknown. Only [RequestStarted] says it.
	Worker string
}

// Outcome is how a request ended.
type Outcome string

// The outcomes.
const (
	// Completed: the answer is whole.
	Completed Outcome = "completed"
	// Interrupted: it was stopped, and Text is what was said until then.
	Interrupted Outcome = "interrupted"
	// Failed: the provider refused or the attempts are used up.
	Failed Outcome = "failed"
	// Returned: the worker shut down or died; nobody is to blame and the
	// request is to be made again.
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

// Effect is something that the workflow has to do, in the order given.
type Effect interface{ effect() }

type (
	// Record adds events to the log. It stands before what follows from them.
	Record struct{ Events []event.Event }
	// StartRequest asks a model. The request takes what it needs to know from
	// the session when it is sent, so that input of its quiet period counts.
	StartRequest struct {
		RequestID string
		// Turn counts the requests of the context from 1.
		Turn     int
		Fallback bool
		// FirstAttempt is the number that its first attempt has.
		FirstAttempt int
		// Through is the newest event of the log now.
		Through   string
		Retry     RetryConfig
		TimeoutMs int64
		MaxWaitMs int64
		// Model and Messages describe the request to people. The model is ""
		// when it is the worker's default.
		Model    string
		Messages int
	}
	// AdoptRequest gets the result of an attempt that the previous run started
	// and that its process is still making.
	AdoptRequest struct {
		RequestID string
		Attempt   int
		// Worker is the task queue of that process.
		Worker string
	}
	// TellRequest tells the running request of new input, when the session has
	// not heard whether it was sent. If it was, without that input, it stops as
	// by an InterruptRequest. It need not be heard: what the request was shown
	// comes with the news that it was sent.
	TellRequest struct {
		RequestID string
		// Through is the newest event that wants an answer.
		Through string
	}
	// InterruptRequest stops the running request.
	InterruptRequest struct {
		RequestID string
		Reason    event.Reason
		// Through is the newest event that wants an answer: an attempt that
		// was shown it need not stop for new input.
		Through string
	}
)

func (Record) effect()           {}
func (StartRequest) effect()     {}
func (AdoptRequest) effect()     {}
func (TellRequest) effect()      {}
func (InterruptRequest) effect() {}
