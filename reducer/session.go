package reducer

import (
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Rules is the version of a session's decisions. A run keeps the rules it began
// with, so that its history replays. Zero is invalid.
type Rules int

const (
	// Rules1 are the rules of release 0.1.0.
	Rules1 Rules = 1

	// CurrentRules are the rules of new runs.
	CurrentRules = Rules1
)

// Session is everything that a session decides from. Most of it follows from
// the log; the rest, what was asked of a running request, does not outlive the
// session. It is an immutable value.
type Session struct {
	ContextName string `json:"contextName"`
	Rules       Rules  `json:"rules,omitempty"`
	// EventCount is the number of events in the log, which is the counter in
	// the id of the newest one.
	EventCount int            `json:"eventCount"`
	Reduced    ReducedContext `json:"reduced"`
	// Trigger is the newest event that wants an answer and has none yet; ""
	// when nothing does. TriggerAt is when it was recorded.
	Trigger   string    `json:"trigger,omitempty"`
	TriggerAt time.Time `json:"triggerAt,omitzero"`
	// Request is the running request; nil when the session is idle.
	Request *Request `json:"request,omitempty"`
	// Requests counts the requests of the context so far, Turns those that
	// ended.
	Requests int `json:"requests"`
	Turns    int `json:"turns"`
	// Model is the model of the newest request that started; "" before.
	Model string `json:"model,omitempty"`
	// OpenToolCalls are the ids of the calls without a result.
	OpenToolCalls []string `json:"openToolCalls,omitempty"`
	// Recent are the newest events with an id of their sender, at most
	// [MaxRecent], oldest first. One that comes again is not taken again.
	Recent []Sent `json:"recent,omitempty"`
	// Started and Ended say where in its life the session is. An ended session
	// starts again when input comes before its workflow could complete.
	Started bool `json:"started,omitempty"`
	Ended   bool `json:"ended,omitempty"`
	// Closing is the reason for which the session ends as soon as its request
	// has; "" when it is not closing.
	Closing string `json:"closing,omitempty"`
}

// Request is a running request.
type Request struct {
	ID string `json:"id"`
	// Asked is the newest event when the request was made: every attempt sees
	// at least that much.
	Asked string `json:"asked,omitempty"`
	// Through is the newest event that the provider was shown in the newest
	// attempt that the session has heard of; "" before any. The request is then
	// in its quiet period, or was sent a moment ago.
	Through string `json:"through,omitempty"`
	// Attempt is the newest attempt heard of, from 1; 0 before any was sent.
	Attempt int `json:"attempt,omitempty"`
	// FirstAttempt is the number of the first attempt with the current
	// provider.
	FirstAttempt int    `json:"firstAttempt"`
	ProviderID   string `json:"providerId,omitempty"`
	Model        string `json:"model,omitempty"`
	// Worker is the task queue of the process that makes the newest attempt; ""
	// when it is unknown.
	Worker string `json:"worker,omitempty"`
	// Fallback says that the fallback has taken over.
	Fallback bool `json:"fallback,omitempty"`
	// Stop is why the request was asked to stop; "" when it was not. Dropped is
	// the newest event that wanted an answer then and goes without.
	Stop    event.Reason `json:"stop,omitempty"`
	Dropped string       `json:"dropped,omitempty"`
	// Returns counts how often a worker gave the request back unfinished.
	Returns int `json:"returns,omitempty"`
}

// MaxReturns is how often workers may give a request back, by a shutdown or by
// dying, before it counts as failed. It keeps a request that kills its worker
// from doing so for ever.
const MaxReturns = 10

// SpareAttempts is how many attempts Temporal makes beyond the retry settings, in
// place of those that ended with their worker.
const SpareAttempts = 2

// Bounds of what waits in a session. They are far beyond what providers take,
// and keep each decision short.
const (
	MaxPendingAttachments = 100
	MaxOpenToolCalls      = 1000
)

// NewSession is a session of a context without a log.
func NewSession(contextName string) Session {
	return Session{ContextName: contextName, Rules: CurrentRules, Reduced: Initial()}
}

// LastEventID is the id of the newest event; "" when there is none.
func (s Session) LastEventID() string {
	if s.EventCount == 0 {
		return ""
	}
	return event.FormatID(s.ContextName, s.EventCount)
}
