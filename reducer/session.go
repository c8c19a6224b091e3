package reducer

import (
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Rules is the version of the reducer's behavior. A run keeps the version that it started
// with, so that its history replays.
type Rules int

const (
	// Rules1 are the rules of release 0.1.0.
	Rules1 Rules = 1
	// Rules2 are the rules of release 0.2.0: [event.SetRequestSettings] is accepted, an answer
	// that was interrupted during reasoning is recorded, an event records the end of every attempt,
	// see [event.LLMAttemptEnded], input with an invalid value of a field that 0.1.0 did not
	// define is rejected, see [event.DecodeEarlierInput], and the tool calls of an answer are
	// executed, see [event.SetTools].
	Rules2 Rules = 2

	// CurrentRules are the rules of new runs.
	CurrentRules = Rules2
)

// Session is the complete state of a session. It is immutable. Its JSON is persisted: fields
// keep their names and meanings.
type Session struct {
	ContextName string `json:"contextName"`
	Rules       Rules  `json:"rules,omitempty"`
	// EventCount is the number of events in the log.
	EventCount int `json:"eventCount"`
	// LastEventAt is the time at which the newest event was recorded; zero if unknown. Each
	// workflow task has its own time, so it distinguishes logs with the same number of events.
	LastEventAt time.Time      `json:"lastEventAt,omitzero"`
	Reduced     ReducedContext `json:"reduced"`
	// Trigger is the newest message that wants an answer and has none; "" for none.
	// TriggerAt is when it was recorded.
	Trigger   string    `json:"trigger,omitempty"`
	TriggerAt time.Time `json:"triggerAt,omitzero"`
	// TriggerSettings are the settings of the trigger; nil for none.
	TriggerSettings *event.RequestSettings `json:"triggerSettings,omitempty"`
	// Request is the running request; nil for none.
	Request *Request `json:"request,omitempty"`
	// Requests counts the requests of the context, Turns those that ended.
	Requests int `json:"requests"`
	Turns    int `json:"turns"`
	// Model is that of the newest attempt; "" before the first.
	Model string `json:"model,omitempty"`
	// Usage is the sum over the ended attempts of the context. The usage of a fork starts at
	// the fork.
	Usage Usage `json:"usage,omitzero"`
	// OpenToolCalls are the ids of tool calls without a result.
	OpenToolCalls []string `json:"openToolCalls,omitempty"`
	// Recent is the newest [MaxRecent] events with a ClientEventID, oldest first, for
	// deduplication.
	Recent  []Sent `json:"recent,omitempty"`
	Started bool   `json:"started,omitempty"`
	Ended   bool   `json:"ended,omitempty"`
	// Closing is the reason to end the session when its request ends; "" for none.
	Closing string `json:"closing,omitempty"`
}

// Request is a running request.
type Request struct {
	ID string `json:"id"`
	// Asked is the newest event when the request was enqueued. Every attempt includes it.
	Asked string `json:"asked,omitempty"`
	// Through is the newest event in the newest known attempt; "" if none is known.
	Through string `json:"through,omitempty"`
	// Attempt is the number of the newest known attempt, from 1; 0 if none is known.
	Attempt int `json:"attempt,omitempty"`
	// AttemptEnded means that the log contains the end of the newest known attempt.
	AttemptEnded bool `json:"attemptEnded,omitempty"`
	// FirstAttempt is the number of the first attempt since the request was last enqueued.
	FirstAttempt int    `json:"firstAttempt"`
	ProviderID   string `json:"providerId,omitempty"`
	Model        string `json:"model,omitempty"`
	// Worker is the task queue of the process with the newest attempt; "" if unknown.
	Worker   string `json:"worker,omitempty"`
	Fallback bool   `json:"fallback,omitempty"`
	// Stop is why the request was asked to stop; "" if it was not. Dropped is the newest
	// message that a cancellation left unanswered.
	Stop    event.Reason `json:"stop,omitempty"`
	Dropped string       `json:"dropped,omitempty"`
	// Returns counts how often the request was handed back.
	Returns int `json:"returns,omitempty"`
	// Steps counts the answers with tool calls of the request.
	Steps int `json:"steps,omitempty"`
	// Limit is the newest event that the attempts of a step include, besides the answers and
	// results of the request; "" for no limit. The delivery policy queue sets it after the first
	// step.
	Limit string `json:"limit,omitempty"`
	// Settings are the settings of the newest message in the request; nil for none.
	Settings *event.RequestSettings `json:"settings,omitempty"`
	// Calls are the tool calls of the newest answer that have no result, in its order.
	Calls []Call `json:"calls,omitempty"`
}

// MaxReturns is how often a request may be handed back before it fails. It stops requests
// that crash their workers.
const MaxReturns = 10

// SpareAttempts is how many attempts Temporal may make beyond the retry settings, to replace
// those of workers that died.
const SpareAttempts = 2

// Limits far above those of providers. They bound the cost of a decision.
const (
	MaxPendingAttachments = 100
	MaxOpenToolCalls      = 1000
)

// NewSession returns the session of a new context.
func NewSession(contextName string) Session {
	return Session{ContextName: contextName, Rules: CurrentRules, Reduced: Initial()}
}

// LastEventID returns the id of the newest event; "" for none.
func (s Session) LastEventID() string {
	if s.EventCount == 0 {
		return ""
	}
	return event.FormatID(s.ContextName, s.EventCount)
}
