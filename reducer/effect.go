package reducer

import (
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Effect is an action of the workflow, which performs effects in order.
type Effect interface{ effect() }

type (
	// Record appends events to the log.
	Record struct{ Events []event.Event }
	// StartAttempt schedules an attempt, which a [Record] before it started in the log. Its input is the session after
	// the step. At most one attempt runs. Its JSON is a part of the input of the activity.
	StartAttempt struct {
		RequestID string `json:"requestId"`
		Attempt   int    `json:"attempt"` // counts the attempts of the request from 1
		// Through is the newest event of the session, recorded at ThroughAt: an [event.LLMRequestStarted].
		Through   string    `json:"throughEventId"`
		ThroughAt time.Time `json:"throughAt"`
		// SendAt is when the attempt is to be sent, by the clock of the server; zero: at once. It is sent up to JitterMs
		// earlier, at random.
		SendAt    time.Time   `json:"sendAt,omitzero"`
		JitterMs  int64       `json:"jitterMs,omitempty"`
		Fallback  bool        `json:"fallback,omitempty"` // to the fallback provider
		Retry     RetryConfig `json:"-"`                  // of errors before the attempt is sent
		TimeoutMs int64       `json:"timeoutMs"`          // from SendAt on, except for waits for a budget
		// Turn counts the requests of the context from 1. Like Model and Messages, the number of messages, it is for display.
		Turn     int    `json:"-"`
		Model    string `json:"-"`
		Messages int    `json:"-"`
		// Steps, Limit, Compaction and Repair are those of the [Request].
		Steps int    `json:"steps,omitempty"`
		Limit string `json:"limit,omitempty"`
		// MayCompact: an attempt that is too long ends with [TooLong]. Otherwise it is sent as it is.
		MayCompact bool        `json:"mayCompact,omitempty"`
		Compaction *Compaction `json:"compaction,omitempty"`
		Repair     *Repair     `json:"repair,omitempty"`
	}
	// StopAttempt stops the running attempt, whose end [AttemptEnded] still reports.
	StopAttempt struct {
		RequestID string
		Attempt   int
		Reason    event.Reason
		Unsent    bool // only if it has not been sent
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
	// WakeAt sets the timer that causes [Woken], in place of an earlier one. It is the last effect of a step.
	WakeAt struct{ At time.Time }
)

func (Record) effect()       {}
func (StartAttempt) effect() {}
func (StopAttempt) effect()  {}
func (CallTool) effect()     {}
func (CancelTools) effect()  {}
func (WakeAt) effect()       {}
