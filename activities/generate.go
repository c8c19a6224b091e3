package activities

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

const (
	// HeartbeatTimeout is the silence after which Temporal gives a request to another worker.
	HeartbeatTimeout = 3 * time.Second
	// heartbeatInterval is the interval of heartbeats, and of stop checks in case a stop message
	// was lost.
	heartbeatInterval = time.Second
)

// MaxAnswerBytes is the maximum length of an answer, which a history must be able to store. A
// longer one is truncated and has the finish reason "length".
const MaxAnswerBytes = 768 << 10

// GenerateInput is the input of [Activities.Generate].
type GenerateInput struct {
	ContextName string `json:"contextName"`
	RequestID   string `json:"requestId"`
	// FirstAttempt is the number of the activity's first attempt, counted over all activities of
	// the request.
	FirstAttempt int `json:"firstAttempt"`
	// MaxAttempts is the number of attempts of the activity.
	MaxAttempts int `json:"maxAttempts"`
	// Steps and Limit are as in [reducer.StartRequest].
	Steps    int    `json:"steps,omitempty"`
	Limit    string `json:"limit,omitempty"`
	Fallback bool   `json:"fallback,omitempty"`
	// Through is the newest event when the request was scheduled. A session without it is stale.
	Through string `json:"throughEventId"`
	// ThroughAt is the time at which that event was recorded; zero if unknown.
	ThroughAt time.Time `json:"throughAt,omitzero"`
	// TimeoutMs bounds each attempt. The timeouts of the activity depend on it, so later settings
	// do not change it.
	TimeoutMs int64 `json:"timeoutMs"`
	// Adopt waits for attempt FirstAttempt, which an activity of the previous run started in
	// this process.
	Adopt bool `json:"adopt,omitempty"`
}

// Attempted describes an attempt. Unknown fields are zero.
type Attempted struct {
	Attempt int `json:"attempt"`
	// Sent means that the request was sent to the provider.
	Sent       bool   `json:"sent,omitempty"`
	Through    string `json:"throughEventId,omitempty"`
	ProviderID string `json:"providerId,omitempty"`
	Model      string `json:"model,omitempty"`
}

// GenerateResult is the result of a successful, interrupted or handed back attempt.
type GenerateResult struct {
	Attempted
	Outcome reducer.Outcome `json:"outcome"`
	Text    string          `json:"text,omitempty"`
	// Reasoning is the part of the reasoning that the request settings keep
	// ([event.RequestSettings]).
	Reasoning string `json:"reasoning,omitempty"`
	// ProviderState is the provider state of a complete answer; nil for none.
	ProviderState *event.ProviderState `json:"providerState,omitempty"`
	// Calls are the tool calls of an answer with the outcome [reducer.Called].
	Calls      []CalledTool `json:"calls,omitempty"`
	Reason     event.Reason `json:"reason,omitempty"`
	DurationMs int64        `json:"durationMs,omitempty"`
	event.Usage
	FinishReason string `json:"finishReason,omitempty"`
	// Lost is a preceding attempt whose worker died. Nil: none.
	Lost *LostAttempt `json:"lost,omitempty"`
}

// Failure contains the error details of a failed attempt.
type Failure struct {
	Attempted
	Kind event.FailureKind `json:"kind,omitempty"`
	// Retryable means that the same request may succeed later.
	Retryable  bool  `json:"retryable,omitempty"`
	DurationMs int64 `json:"durationMs,omitempty"`
	event.Usage
	// Repairs means that the next attempt repairs the answer. It is not a retry.
	Repairs bool `json:"repairs,omitempty"`
	// Lost is as in [GenerateResult].
	Lost *LostAttempt `json:"lost,omitempty"`
}

// LostAttempt is the last report of an attempt whose worker died. It is part of the heartbeat
// details.
type LostAttempt struct {
	Attempted
	event.Usage
}

// Causes for which an attempt is cancelled.
var (
	errShutdown = errors.New("the worker is shutting down")
	errTimeout  = errors.New("the attempt took longer than the timeout of the context")
	errTooLong  = errors.New("the answer exceeds the maximum length")
	errObsolete = errors.New("the session has another request or none")
	errOrphaned = errors.New("the run continued as new and did not adopt the request")
)

// stopped is the cause of an attempt that was stopped.
type stopped struct{ reason event.Reason }

func (s stopped) Error() string { return "stopped: " + string(s.reason) }

// Generate debounces a request, sends it to the model and publishes the answer's deltas.
//
// An interrupted attempt returns a result, which keeps the text so far. So does an attempt that
// is handed back when the worker shuts down. A failed attempt returns an error with a
// [Failure] in its details; if the error is retryable, Temporal schedules the next attempt.
func (a *Activities) Generate(ctx context.Context, in GenerateInput) (GenerateResult, error) {
	info := activity.GetInfo(ctx)
	number := in.FirstAttempt + int(info.Attempt) - 1
	key := attemptKey{in.ContextName, in.RequestID, number}
	handedBack := GenerateResult{Attempted: Attempted{Attempt: number}, Outcome: reducer.HandedBack, Lost: lostBefore(ctx, number)}
	if in.Adopt && info.Attempt == 1 {
		running := a.running.find(key)
		if running == nil {
			return handedBack, nil
		}
		return running.wait(ctx, running.addWaiter(info.WorkflowExecution))
	}
	select {
	case <-a.options.HandBack:
		return handedBack, nil
	default:
	}
	started := &attempt{Activities: a, in: in, key: key, info: info, startedAt: time.Now(), done: make(chan struct{})}
	started.attempted.Attempt = number
	started.committed = logEnd{event.Counter(in.Through), in.ThroughAt}
	started.lost = handedBack.Lost
	started.repair = a.repairBefore(ctx, key, in.Fallback)
	// The attempt outlives this activity if the run continues as new.
	detached, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	started.cancel = cancel
	w := started.addWaiter(info.WorkflowExecution)
	a.running.add(started)
	go started.run(detached)
	return started.wait(ctx, w)
}

// lostBefore returns the attempt in the last heartbeat of the activity, if its request was
// sent. That attempt may have ended since.
func lostBefore(ctx context.Context, number int) *LostAttempt {
	var lost LostAttempt
	if !activity.HasHeartbeatDetails(ctx) || activity.GetHeartbeatDetails(ctx, &lost) != nil || !lost.Sent || lost.Attempt >= number {
		return nil
	}
	return &lost
}
