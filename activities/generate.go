package activities

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.temporal.io/sdk/activity"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/tracing"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

const (
	HeartbeatTimeout  = 3 * time.Second // silence after which Temporal gives a request to another worker
	heartbeatInterval = time.Second     // also of stop checks, in case a stop message was lost
)

// GenerateInput is the input of [Activities.Generate].
type GenerateInput struct {
	ContextName  string `json:"contextName"`
	RequestID    string `json:"requestId"`
	FirstAttempt int    `json:"firstAttempt"`    // of this activity; attempts are numbered across the request's activities
	MaxAttempts  int    `json:"maxAttempts"`     // of this activity
	Steps        int    `json:"steps,omitempty"` // as in [reducer.StartRequest]
	Limit        string `json:"limit,omitempty"` // as in [reducer.StartRequest]
	Fallback     bool   `json:"fallback,omitempty"`
	// MayCompact and Compaction are as in [reducer.StartRequest]. With a Compaction, the attempt
	// summarises the messages that [reducer.MessagesOf] returns, and its text is the summary.
	MayCompact bool                `json:"mayCompact,omitempty"`
	Compaction *reducer.Compaction `json:"compaction,omitempty"`
	Through    string              `json:"throughEventId"`     // newest event at scheduling; older sessions are stale
	ThroughAt  time.Time           `json:"throughAt,omitzero"` // when that event was recorded; zero: unknown
	// TimeoutMs bounds each attempt. Later settings do not change it: the timeouts of the activity
	// depend on it.
	TimeoutMs int64       `json:"timeoutMs"`
	Links     []TraceLink `json:"links,omitempty"` // of the span of the first attempt
	// Lost is an attempt of an earlier activity whose worker did not report the end. Nil: none.
	Lost *LostAttempt `json:"lost,omitempty"`
	// Adopt waits for attempt FirstAttempt, which the previous run started in this process.
	Adopt bool `json:"adopt,omitempty"`
}

// TraceLink refers to a span that the span of an attempt is linked to.
type TraceLink struct {
	Trace  string `json:"trace"`  // W3C traceparent
	Reason string `json:"reason"` // attribute of the link, see docs/operations.md
}

// Attempted describes an attempt. Unknown fields are zero.
type Attempted struct {
	Attempt    int    `json:"attempt"`
	Sent       bool   `json:"sent,omitempty"`           // to the provider
	Through    string `json:"throughEventId,omitempty"` // newest event in the attempt
	ProviderID string `json:"providerId,omitempty"`
	Model      string `json:"model,omitempty"`
}

// GenerateResult is the result of an attempt that returns no error.
type GenerateResult struct {
	Attempted
	Outcome       reducer.Outcome      `json:"outcome"`
	Text          string               `json:"text,omitempty"`
	Reasoning     string               `json:"reasoning,omitempty"`     // the part that the settings keep
	ProviderState *event.ProviderState `json:"providerState,omitempty"` // of a complete answer; nil: none
	Calls         []CalledTool         `json:"calls,omitempty"`         // if the outcome is [reducer.Called]
	Reason        event.Reason         `json:"reason,omitempty"`
	DurationMs    int64                `json:"durationMs,omitempty"`
	event.Usage
	FinishReason string              `json:"finishReason,omitempty"`
	Overflow     *reducer.Overflow   `json:"overflow,omitempty"` // if the outcome is [reducer.TooLong]
	Omitted      int                 `json:"omitted,omitempty"`  // messages that a summary omits, see [event.Compacted]
	Lost         *LostAttempt        `json:"lost,omitempty"`     // a preceding attempt, whose end may not be recorded; nil: none
	Hooks        []event.HookApplied `json:"hooks,omitempty"`
	Offered      *event.ToolsOffered `json:"offered,omitempty"` // all tools of the worker, if the log lacks this set; otherwise nil
	Trace        string              `json:"trace,omitempty"`   // traceparent of the attempt, unless it completed the answer
}

// Failure is the detail of the application error that a failed attempt returns.
type Failure struct {
	Attempted
	Kind       event.FailureKind `json:"kind,omitempty"`
	Retryable  bool              `json:"retryable,omitempty"` // the same request may succeed later
	DurationMs int64             `json:"durationMs,omitempty"`
	event.Usage
	Overflow *reducer.Overflow     `json:"overflow,omitempty"` // if the provider rejected the request as too long
	Suspects []reducer.Suspect     `json:"suspects,omitempty"` // content that the provider may have refused, as in [reducer.RequestEnded]
	Exceeded *event.BudgetExceeded `json:"exceeded,omitempty"` // a budget that prevented the attempt; nil: none
	Repairs  bool                  `json:"repairs,omitempty"`  // the next attempt repairs the answer, and does not count as a retry
	Lost     *LostAttempt          `json:"lost,omitempty"`     // as in [GenerateResult]
	Hooks    []event.HookApplied   `json:"hooks,omitempty"`    // as in [GenerateResult]
	Offered  *event.ToolsOffered   `json:"offered,omitempty"`  // as in [GenerateResult]; nil if Temporal retries the attempt
	Trace    string                `json:"trace,omitempty"`    // as in [GenerateResult]
}

// LostAttempt is the last heartbeat of an attempt. If Ended is false, the attempt is lost: its worker
// stopped sending heartbeats before it saw the end. Until the next attempt is sent, the heartbeats of that
// next attempt repeat this heartbeat, with the number of the next attempt in Unsent.
type LostAttempt struct {
	Attempted
	event.Usage
	Unsent int    `json:"unsent,omitempty"`
	Ended  bool   `json:"ended,omitempty"` // its worker saw the end, and counted the attempt in metrics
	Trace  string `json:"trace,omitempty"` // as in [GenerateResult]
	// RunID is the run that started it, and Deadline its timeout by the clock of the server. Both are zero
	// if the worker has no budgets of labels.
	RunID    string    `json:"runId,omitempty"`
	Deadline time.Time `json:"deadline,omitzero"`
}

var (
	errShutdown = errors.New("the worker is shutting down")
	errTimeout  = errors.New("the attempt took longer than the timeout of the context")
	errTooLong  = errors.New("the answer exceeds the maximum length")
	errObsolete = errors.New("the session has another request or none")
	errOrphaned = errors.New("the run continued as new, and the next run did not adopt the request")
)

type stopped struct{ reason event.Reason }

func (s stopped) Error() string { return "stopped: " + string(s.reason) }

// Generate debounces a request, sends it to the model and publishes the answer's deltas.
// Interrupted and handed back attempts are results; an interrupted one has the text so far. A
// failed attempt returns an error whose detail is a [Failure]; if the error is retryable, Temporal
// schedules the next attempt.
func (a *Activities) Generate(ctx context.Context, in GenerateInput) (GenerateResult, error) {
	info := activity.GetInfo(ctx)
	number := in.FirstAttempt + int(info.Attempt) - 1
	key := attemptKey{in.ContextName, in.RequestID, number}
	handedBack := GenerateResult{
		Attempted: Attempted{Attempt: number}, Outcome: reducer.HandedBack, Lost: in.lostBefore(ctx, number), Trace: tracing.Traceparent(ctx),
	}
	span := trace.SpanFromContext(ctx)
	in.describe(span, number, info.Attempt == 1, a.running.traceOf(attemptKey{in.ContextName, in.RequestID, number - 1}), handedBack.Lost)
	if in.Adopt && info.Attempt == 1 {
		running := a.running.find(key)
		if running == nil {
			return handedBack, nil
		}
		tracing.Link(span, tracing.LinkContinues, running.trace)
		return running.wait(ctx, running.addWaiter(info.WorkflowExecution))
	}
	select {
	case <-a.options.HandBack:
		return handedBack, nil
	default:
	}
	started := &attempt{Activities: a, in: in, key: key, info: info, startedAt: time.Now(), done: make(chan struct{})}
	started.attempted.Attempt, started.trace = number, handedBack.Trace
	started.measured.Metrics = a.metrics
	started.committed = logEnd{event.Counter(in.Through), in.ThroughAt}
	started.lost = handedBack.Lost
	if in.Compaction == nil {
		started.repair = a.repairBefore(ctx, key, in.Fallback)
	}
	// The attempt outlives the activity if the run continues as new.
	detached, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	started.cancel = cancel
	w := started.addWaiter(info.WorkflowExecution)
	a.running.add(started)
	go started.run(detached)
	return started.wait(ctx, w)
}

// lostBefore returns the attempt in the last heartbeat, or else that of an earlier activity, if it was
// sent.
func (in GenerateInput) lostBefore(ctx context.Context, number int) *LostAttempt {
	lost := in.Lost
	if activity.HasHeartbeatDetails(ctx) {
		lost = &LostAttempt{}
		if activity.GetHeartbeatDetails(ctx, lost) != nil {
			return nil
		}
	}
	if lost == nil || !lost.Sent || lost.Attempt >= number {
		return nil
	}
	before := *lost
	before.Unsent = 0
	return &before
}
