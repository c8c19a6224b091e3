package reducer

import (
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Rules is the version of the reducer, which a run keeps so that its history replays.
type Rules int

// Versions of the rules.
const (
	Rules1 Rules = 1 // of release 0.1.0
	// Rules2 are the rules of release 0.2.0:
	//   - They accept [event.SetRequestSettings] and execute tool calls.
	//   - They record the end of every attempt, what hooks did, and answers interrupted during reasoning.
	//   - They reject invalid values of fields that 0.1.0 did not define.
	Rules2 Rules = 2

	CurrentRules = Rules2 // of new runs
)

// releases are the first releases with each version of the rules.
var releases = map[Rules]string{Rules1: "0.1.0", Rules2: "0.2.0"}

// Session is the complete, immutable state of a session. Fields of its JSON keep name and meaning.
type Session struct {
	ContextName string `json:"contextName"`
	Rules       Rules  `json:"rules,omitempty"`
	EventCount  int    `json:"eventCount"`
	// LastEventAt is zero if unknown. It distinguishes logs with the same number of events, because
	// each workflow task has its own time.
	LastEventAt time.Time      `json:"lastEventAt,omitzero"`
	Reduced     ReducedContext `json:"reduced"`
	// Trigger is the newest message that still requires an answer; "" for none.
	Trigger         string                 `json:"trigger,omitempty"`
	TriggerAt       time.Time              `json:"triggerAt,omitzero"`
	TriggerSettings *event.RequestSettings `json:"triggerSettings,omitempty"`
	Request         *Request               `json:"request,omitempty"`
	// Requests counts the requests of the context, Turns those that ended.
	Requests      int      `json:"requests"`
	Turns         int      `json:"turns"`
	ProviderID    string   `json:"providerId,omitempty"`    // of the newest attempt, like Model; "" before the first
	Model         string   `json:"model,omitempty"`         // "" before the first attempt
	Usage         Usage    `json:"usage,omitzero"`          // of ended attempts; in a fork, since the fork
	ContextTokens int      `json:"contextTokens,omitempty"` // up to the newest answer; 0: no answer since the newest compaction
	OpenToolCalls []string `json:"openToolCalls,omitempty"` // ids of calls without a result
	Offered       *Offered `json:"offered,omitempty"`       // nil: no tools of a worker were offered
	Recent        []Sent   `json:"recent,omitempty"`        // the newest [MaxRecent], oldest first
	Windows       []Window `json:"windows,omitempty"`       // learned from rejections, the newest last
	Removed       bool     `json:"removed,omitempty"`       // a compaction has removed messages
	Started       bool     `json:"started,omitempty"`
	Ended         bool     `json:"ended,omitempty"`
	Closing       string   `json:"closing,omitempty"` // why the session ends after its request; or ""
}

// Request is a running request.
//
//schema:rules {"properties":{"asked":{"$ref":"EventID"},"through":{"$ref":"EventID"},"dropped":{"$ref":"EventID"},"limit":{"$ref":"EventID"}}}
type Request struct {
	ID           string `json:"id"`
	Asked        string `json:"asked,omitempty"`        // the Limit if it is set, else the newest event when the request was enqueued; every attempt includes this event
	Through      string `json:"through,omitempty"`      // newest event in the known attempt; "" for none
	Attempt      int    `json:"attempt,omitempty"`      // newest known attempt, from 1; 0 for none
	AttemptEnded bool   `json:"attemptEnded,omitempty"` // the log contains the end of that attempt
	FirstAttempt int    `json:"firstAttempt"`           // first attempt since the request was last enqueued
	ProviderID   string `json:"providerId,omitempty"`
	Model        string `json:"model,omitempty"`
	Worker       string `json:"worker,omitempty"` // task queue of the attempt's process; "" if unknown
	Fallback     bool   `json:"fallback,omitempty"`
	// Stop is why the request was asked to stop; "" if it was not. Dropped is the newest message
	// that a cancellation left unanswered.
	Stop    event.Reason `json:"stop,omitempty"`
	Dropped string       `json:"dropped,omitempty"`
	Returns int          `json:"returns,omitempty"` // how often it was handed back since its last step or summary
	Steps   int          `json:"steps,omitempty"`   // answers with tool calls
	// Limit is the newest event that attempts include besides the answers and results of the request
	// itself; "" for no limit. The delivery policy queue sets it after the first step.
	Limit    string                 `json:"limit,omitempty"`
	Settings *event.RequestSettings `json:"settings,omitempty"` // of its newest message; nil for none
	Calls    []Call                 `json:"calls,omitempty"`    // of the newest answer, without a result
	// Hooks are the keys of recorded reports of hooks, about the newest attempt that has any.
	Hooks []string `json:"hooks,omitempty"`
	// Compaction is the summary that the attempts write; nil: they answer. Compactions counts the
	// attempts since the last step or fallback that were too long, or whose summary failed.
	Compaction  *Compaction `json:"compaction,omitempty"`
	Compactions int         `json:"compactions,omitempty"`
	// Refusals counts the [event.ContentRefused] since the last step or fallback.
	Refusals int `json:"refusals,omitempty"`
}

// MaxReturns bounds how often a request is handed back without a step or a summary in between, since a
// request may crash its workers.
const MaxReturns = 10

// SpareAttempts is the maximum number of attempts, beyond the retry settings, after workers died.
const SpareAttempts = 2

// Limits far above those of providers bound the cost of a [Step].
const (
	MaxPendingAttachments = 100
	MaxOpenToolCalls      = 1000
	// MaxPlaceBack bounds how far back a client may place a message or a result: the fold moves all later messages.
	MaxPlaceBack = 1000
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
