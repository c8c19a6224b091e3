package reducer

import (
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Rules is the version of the reducer, which a run keeps so that its history replays.
type Rules int

// Versions of the rules.
const (
	Rules2 Rules = 2 // of release 0.2.0

	CurrentRules = Rules2 // of new runs
)

// Session is the complete, immutable state of a session. Fields of its JSON keep name and meaning.
type Session struct {
	ContextName string `json:"contextName"` // without the tenant, like the log
	Rules       Rules  `json:"rules,omitempty"`
	EventCount  int    `json:"eventCount"`
	// LastEventAt is zero if unknown. It distinguishes logs with the same number of events, because
	// each workflow task has its own time.
	LastEventAt time.Time      `json:"lastEventAt,omitzero"`
	Reduced     ReducedContext `json:"reduced"`
	Details     Details        `json:"details,omitzero"`
	// Trigger is the newest message that still requires an answer; "" for none.
	Trigger         string                 `json:"trigger,omitempty"`
	TriggerAt       time.Time              `json:"triggerAt,omitzero"`
	TriggerSettings *event.RequestSettings `json:"triggerSettings,omitempty"`
	Request         *Request               `json:"request,omitempty"`
	// Requests counts the requests of the context, Turns those that ended.
	Requests      int       `json:"requests"`
	Turns         int       `json:"turns"`
	ProviderID    string    `json:"providerId,omitempty"`    // of the newest attempt, like Model; "" before the first
	Model         string    `json:"model,omitempty"`         // "" before the first attempt
	Usage         Usage     `json:"usage,omitzero"`          // of ended attempts; in a fork, since the fork
	ContextTokens int       `json:"contextTokens,omitempty"` // up to the newest answer; 0: no answer since the newest compaction
	OpenToolCalls []string  `json:"openToolCalls,omitempty"` // ids of calls without a result
	Offered       *Offered  `json:"offered,omitempty"`       // nil: no tools of a worker were offered
	Recent        []Sent    `json:"recent,omitempty"`        // the newest [MaxRecent], oldest first
	Windows       []Window  `json:"windows,omitempty"`       // learned from rejections, the newest last
	Removed       bool      `json:"removed,omitempty"`       // a compaction has removed messages
	Started       bool      `json:"started,omitempty"`
	Ended         bool      `json:"ended,omitempty"`
	Closing       string    `json:"closing,omitempty"` // why the session ends after its request; or ""
	Options       Options   `json:"options,omitzero"`
	Timer         time.Time `json:"timer,omitzero"` // time of the newest [WakeAt] of the run; zero: none, or it has fired
}

// Request is a running request.
//
//schema:rules {"properties":{"through":{"$ref":"EventID"},"taken":{"$ref":"EventID"},"dropped":{"$ref":"EventID"},"limit":{"$ref":"EventID"}}}
type Request struct {
	ID           string `json:"id"`
	Through      string `json:"through,omitempty"`      // newest event in the newest attempt
	Attempt      int    `json:"attempt,omitempty"`      // number of the newest attempt, from 1
	AttemptEnded bool   `json:"attemptEnded,omitempty"` // the log contains the end of that attempt
	ProviderID   string `json:"providerId,omitempty"`   // of the newest attempt, like Model
	Model        string `json:"model,omitempty"`
	Fallback     bool   `json:"fallback,omitempty"`
	// SendAt is when the newest attempt is to be sent; zero: at once. Since is the time of the first message
	// of its quiet period.
	SendAt time.Time `json:"sendAt,omitzero"`
	Since  time.Time `json:"since,omitzero"`
	// Taken is the newest message that the next attempt includes because it arrived before the newest one
	// was to be sent; "" for none.
	Taken string `json:"taken,omitempty"`
	// Stop is why the attempt was asked to stop; "" if it was not. Dropped is the newest message
	// that a cancellation left unanswered.
	Stop    event.Reason `json:"stop,omitempty"`
	Dropped string       `json:"dropped,omitempty"`
	// Retries counts the retries since the last step, fallback, compaction or interruption. RetryAt is when the newest
	// is to be sent, up to JitterMs earlier.
	Retries  int       `json:"retries,omitempty"`
	RetryAt  time.Time `json:"retryAt,omitzero"`
	JitterMs int64     `json:"jitterMs,omitempty"`
	Messages int       `json:"messages,omitempty"` // number in the newest attempt
	// Repair is what the next attempt repairs, and its retries, while Messages stays the same; nil: nothing.
	Repair  *Repair `json:"repair,omitempty"`
	Returns int     `json:"returns,omitempty"` // how often it was handed back since its last step or summary
	Steps   int     `json:"steps,omitempty"`   // answers with tool calls
	// Limit is the newest event that attempts include besides the answers and results of the request
	// itself; "" for no limit. The delivery policy queue sets it after the first step.
	Limit    string                 `json:"limit,omitempty"`
	Settings *event.RequestSettings `json:"settings,omitempty"` // of its newest message; nil for none
	Calls    []Call                 `json:"calls,omitempty"`    // of the newest answer, without a result
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

// Limits far above those of providers bound the cost of a [Step].
const (
	MaxPendingAttachments = 100
	MaxOpenToolCalls      = 1000
	// MaxPlaceBack bounds how far back a client may place a message or a result: the fold moves all later messages.
	MaxPlaceBack = 1000
)

// NewSession returns the session of a new context.
func NewSession(contextName string) Session {
	_, local := event.CutTenant(contextName)
	return Session{ContextName: local, Rules: CurrentRules, Reduced: Initial()}
}

// LastEventID returns the id of the newest event; "" for none.
func (s Session) LastEventID() string {
	if s.EventCount == 0 {
		return ""
	}
	return event.FormatID(s.ContextName, s.EventCount)
}
