package activities

import (
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// DefaultFailover is the heartbeat timeout of attempts and tool calls unless [Options] set another one.
const DefaultFailover = 3 * time.Second

// AttemptInput is the input of [Activities.Generate]: one attempt, as [reducer.StartAttempt] decides it.
type AttemptInput struct {
	ContextName string `json:"contextName"`
	RequestID   string `json:"requestId"`
	Attempt     int    `json:"attempt"` // among those of the request, from 1
	// Through is the newest event of the session that the attempt is about, recorded at ThroughAt.
	Through   string    `json:"throughEventId"`
	ThroughAt time.Time `json:"throughAt"`
	// SendAt is when the attempt is sent, by the clock of the server, or up to JitterMs earlier. Zero: at once.
	SendAt   time.Time `json:"sendAt,omitzero"`
	JitterMs int64     `json:"jitterMs,omitempty"`
	Fallback bool      `json:"fallback,omitempty"` // to the fallback provider
	// TimeoutMs bounds the attempt from SendAt on, except for waits for a budget.
	TimeoutMs int64 `json:"timeoutMs"`
	// MaxAttempts is the maximum number of attempts of the activity. An error before the attempt was sent is an
	// error of the activity, which Temporal retries, and for the last time a result.
	MaxAttempts int `json:"maxAttempts"`
	// Steps, Limit and Compaction are those of the [reducer.Request], for a session that is read from the log.
	Steps      int                 `json:"steps,omitempty"`
	Limit      string              `json:"limit,omitempty"`
	Compaction *reducer.Compaction `json:"compaction,omitempty"`
	MayCompact bool                `json:"mayCompact,omitempty"` // a request that is too long is not sent
	Repair     *reducer.Repair     `json:"repair,omitempty"`     // the invalid answer to correct; nil: none
	// Previous is the attempt before this one, if it failed or was lost. Nil: neither.
	Previous *PreviousAttempt `json:"previous,omitempty"`
	Links    []TraceLink      `json:"links,omitempty"` // of the span of the attempt
}

// PreviousAttempt is what an attempt needs to know of the failed or lost one before it.
type PreviousAttempt struct {
	Outcome   reducer.Outcome `json:"outcome"`
	Fallback  bool            `json:"fallback,omitempty"`  // it was sent to the fallback provider
	Heartbeat *Heartbeat      `json:"heartbeat,omitempty"` // its last heartbeat, if it was lost; nil: none
}

// Heartbeat is the detail of the heartbeats of an attempt.
type Heartbeat struct {
	Sent        bool   `json:"sent,omitempty"` // to the provider
	ProviderID  string `json:"providerId,omitempty"`
	Model       string `json:"model,omitempty"`
	event.Usage        // so far
	// Reservation is the key of the attempt in the budgets of labels; empty: none. The worker may use what it
	// has reserved until Deadline, by the clock of the server.
	Reservation string    `json:"reservation,omitempty"`
	Deadline    time.Time `json:"deadline,omitzero"`
	Trace       string    `json:"trace,omitempty"` // as in [AttemptResult]
}

// AttemptResult is what happened to an attempt. Its fields are those of [reducer.AttemptEnded].
type AttemptResult struct {
	Outcome       reducer.Outcome      `json:"outcome"`
	ProviderID    string               `json:"providerId,omitempty"` // as resolved by the worker; empty: not resolved
	Model         string               `json:"model,omitempty"`
	Text          string               `json:"text,omitempty"`
	Reasoning     string               `json:"reasoning,omitempty"`     // the part that the settings keep
	ProviderState *event.ProviderState `json:"providerState,omitempty"` // of a complete answer; nil: none
	Calls         []CalledTool         `json:"calls,omitempty"`         // if the outcome is [reducer.Called]
	Reason        event.Reason         `json:"reason,omitempty"`        // of an interruption
	// Kind, Retryable, Final, Error and RetryAfterMs describe a failure, and a timeout with text, which is an
	// interruption if no attempt follows.
	Kind         event.FailureKind `json:"kind,omitempty"`
	Retryable    bool              `json:"retryable,omitempty"` // the same request may succeed later
	Final        bool              `json:"final,omitempty"`     // although retryable, it was retried enough
	Error        string            `json:"error,omitempty"`     // redacted
	RetryAfterMs int64             `json:"retryAfterMs,omitempty"`
	DurationMs   int64             `json:"durationMs,omitempty"`
	event.Usage
	FinishReason string                `json:"finishReason,omitempty"`
	Hooks        []event.HookApplied   `json:"hooks,omitempty"`
	Offered      *event.ToolsOffered   `json:"offered,omitempty"`  // all tools of the worker, if the log lacks this set
	Overflow     *reducer.Overflow     `json:"overflow,omitempty"` // of a request that is or was too long
	Suspects     []reducer.Suspect     `json:"suspects,omitempty"` // content that the provider may have refused
	Omitted      int                   `json:"omitted,omitempty"`  // messages that a summary omits
	Exceeded     *event.BudgetExceeded `json:"exceeded,omitempty"` // a budget that prevented the attempt
	Repair       *reducer.Repair       `json:"repair,omitempty"`   // the next attempt shall correct the answer
	Trace        string                `json:"trace,omitempty"`    // traceparent, unless the answer is complete
}
