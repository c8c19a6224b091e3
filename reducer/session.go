package reducer

import (
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Rules is the version of a session's decisions. A run keeps the rules it started with, so
// that its history replays. Zero is invalid.
type Rules int

const (
	// Rules1 are the rules of release 0.1.0.
	Rules1 Rules = 1

	// CurrentRules are the rules of new runs.
	CurrentRules = Rules1
)

// Session is the complete state of a session. It can be restored from the log, except for
// stop requests to the running request. It is an immutable value.
type Session struct {
	ContextName string `json:"contextName"`
	Rules       Rules  `json:"rules,omitempty"`
	// EventCount is the number of events in the log and the counter of the newest.
	EventCount int            `json:"eventCount"`
	Reduced    ReducedContext `json:"reduced"`
	// Trigger is the newest event to be answered; "" if there is none. TriggerAt is when
	// it was recorded.
	Trigger   string    `json:"trigger,omitempty"`
	TriggerAt time.Time `json:"triggerAt,omitzero"`
	// Request is the running request; nil if the session is idle.
	Request *Request `json:"request,omitempty"`
	// Requests counts the requests of the context, Turns those that ended.
	Requests int `json:"requests"`
	Turns    int `json:"turns"`
	// Model is the model of the newest request that was sent; "" before the first.
	Model string `json:"model,omitempty"`
	// OpenToolCalls are the ids of calls without a result.
	OpenToolCalls []string `json:"openToolCalls,omitempty"`
	// Recent holds the newest events with a ClientEventID, at most [MaxRecent], oldest
	// first, for deduplication.
	Recent []Sent `json:"recent,omitempty"`
	// Started and Ended are the lifecycle state. An ended session restarts if input
	// arrives before its workflow completes.
	Started bool `json:"started,omitempty"`
	Ended   bool `json:"ended,omitempty"`
	// Closing is the reason for ending the session once its request ends; "" if it is not
	// closing.
	Closing string `json:"closing,omitempty"`
}

// Request is a running request.
type Request struct {
	ID string `json:"id"`
	// Asked is the newest event when the request was made. Every attempt sees at least
	// that event.
	Asked string `json:"asked,omitempty"`
	// Through is the newest event in the newest attempt known to the session; "" before
	// any. Until then the request is in its quiet period or was just sent.
	Through string `json:"through,omitempty"`
	// Attempt is the newest known attempt, from 1; 0 before any.
	Attempt int `json:"attempt,omitempty"`
	// FirstAttempt is the number of the first attempt with the current provider.
	FirstAttempt int    `json:"firstAttempt"`
	ProviderID   string `json:"providerId,omitempty"`
	Model        string `json:"model,omitempty"`
	// Worker is the task queue of the process that makes the newest attempt; "" if
	// unknown.
	Worker string `json:"worker,omitempty"`
	// Fallback is set if the request uses the fallback provider.
	Fallback bool `json:"fallback,omitempty"`
	// Stop is why the request was asked to stop; "" if it was not. Dropped is the newest
	// event that was to be answered then and remains unanswered.
	Stop    event.Reason `json:"stop,omitempty"`
	Dropped string       `json:"dropped,omitempty"`
	// Returns counts how often a worker returned the request unfinished.
	Returns int `json:"returns,omitempty"`
}

// MaxReturns is how often a request may be returned, by a shutdown or death of its worker,
// before it fails. It stops requests that keep killing their workers.
const MaxReturns = 10

// SpareAttempts is how many attempts Temporal may make beyond the retry settings to replace
// attempts that ended with their worker.
const SpareAttempts = 2

// Limits of waiting elements, far above those of providers, which bound the cost of a
// decision.
const (
	MaxPendingAttachments = 100
	MaxOpenToolCalls      = 1000
)

// NewSession returns the session of a context without a log.
func NewSession(contextName string) Session {
	return Session{ContextName: contextName, Rules: CurrentRules, Reduced: Initial()}
}

// LastEventID returns the id of the newest event; "" if there is none.
func (s Session) LastEventID() string {
	if s.EventCount == 0 {
		return ""
	}
	return event.FormatID(s.ContextName, s.EventCount)
}
