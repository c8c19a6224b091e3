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
	// the step. At most one attempt runs.
	StartAttempt struct {
		RequestID string
		Turn      int // counts the requests of the context from 1
		Attempt   int // counts the attempts of the request from 1
		// Through is the newest event of the session, recorded at ThroughAt: an [event.LLMRequestStarted].
		Through   string
		ThroughAt time.Time
		// SendAt is when the attempt is to be sent; zero: at once. It is sent up to JitterMs earlier, at random.
		SendAt    time.Time
		JitterMs  int64
		Fallback  bool
		Retry     RetryConfig // of errors before the attempt is sent
		TimeoutMs int64       // from the sending on
		// Model and Messages, their number, are for display.
		Model    string
		Messages int
		Steps    int // as in [Request], like Limit, Compaction and Repair
		Limit    string
		// MayCompact: an attempt that is too long ends with [TooLong]. Otherwise it is sent as it is.
		MayCompact bool
		Compaction *Compaction
		Repair     *Repair
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
