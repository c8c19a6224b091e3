package index

import (
	"slices"
	"strings"
	"time"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/preview"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// Context is a context in the list.
type Context struct {
	client.Summary
	// The beginning of the first user message.
	Preview  string `json:"preview,omitempty"`
	Owner    string `json:"owner,omitempty"`
	Archived bool   `json:"archived,omitempty"`
	// The time of the first event, in a fork of the first event of its own.
	CreatedAt time.Time `json:"createdAt,omitzero"`
	// The time of the newest event but for the start and the end of sessions and changes of details.
	LastActiveAt time.Time `json:"lastActiveAt"`
}

// record is what the index knows of a context. A published record is not changed.
type record struct {
	Context
	// The newest event that was read: its counter and its time, which differ from those of another log of the same name,
	// or after a reset. 0: none.
	Through   int             `json:"through,omitempty"`
	ThroughAt time.Time       `json:"throughAt,omitzero"`
	Details   reducer.Details `json:"details,omitzero"` // as of this event
	Session   session         `json:"session,omitzero"` // as of this event
	Forks     []fork          `json:"forks,omitempty"`  // events of the log at which it was forked from another context

	// isForgotten: only the blob store has the context.
	isForgotten bool

	folded string    // name and title, in lower case
	readAt time.Time // when the log was read; zero: not by this process
}

// session is what a summary has of a log.
type session struct {
	StartedAt time.Time `json:"startedAt,omitzero"`
	Turns     int       `json:"turns,omitempty"`
	Model     string    `json:"model,omitempty"`
}

// fork is the start of a fork. The messages before it are those of the origin, and are indexed there.
type fork struct {
	Origin  string    `json:"origin"`
	At      time.Time `json:"at"`
	Omitted bool      `json:"omitted,omitempty"` // the messages before it, since the index has those of the origin
}

// newRecord returns the record of a context whose log was not read.
func newRecord(s client.Summary) *record {
	r := &record{Context: Context{Summary: s, LastActiveAt: s.StartedAt}}
	if s.ClosedAt.After(s.StartedAt) {
		r.LastActiveAt = s.ClosedAt
	}
	return r
}

// with returns a copy with a newer summary.
func (r *record) with(s client.Summary) *record {
	next := *r
	next.isForgotten = false
	next.Summary, next.Forks = s, slices.Clone(r.Forks)
	return &next
}

// show sets what is shown of the details in the log. Search attributes may lag, and be cut.
func (r *record) show() {
	if r.Through > 0 {
		r.Title, r.Labels, r.Owner, r.Archived = r.Details.Title, r.Details.Labels, r.Details.Owner, r.Details.Archived
	}
}

const statusClosed client.Status = "closed"

// summarize sets the summary that Temporal does not have any more from the log. What Temporal said stays.
func (r *record) summarize() {
	if r.StartedAt.IsZero() {
		r.StartedAt, r.Turns, r.Model = r.Session.StartedAt, r.Session.Turns, r.Session.Model
		if len(r.Forks) > 0 {
			r.Root = r.Forks[0].Origin
		}
	}
	if r.ClosedAt.IsZero() {
		r.ClosedAt = r.ThroughAt
	}
}

// sameSummary compares what does not come from the log.
func sameSummary(a, b client.Summary) bool {
	return a.Status == b.Status && a.Turns == b.Turns && a.Model == b.Model && a.Root == b.Root &&
		a.StartedAt.Equal(b.StartedAt) && a.ClosedAt.Equal(b.ClosedAt)
}

const maxText = 256 << 10 // bytes of a message that are indexed

// fold adds an event. isMessage is false if there is nothing to index.
func (r *record) fold(e event.Event) (m message, isMessage bool) {
	isFirst := r.Through == 0
	r.Through, r.ThroughAt = event.Counter(e.ID), e.Timestamp
	if isFirst {
		r.CreatedAt, r.LastActiveAt = e.Timestamp, e.Timestamp
	}
	r.Details = r.Details.With(e.Body)
	m = message{counter: r.Through, at: e.Timestamp}
	switch body := e.Body.(type) {
	case event.SessionStarted:
		r.Session.StartedAt = e.Timestamp
		if body.ForkedFrom != "" {
			r.CreatedAt, r.LastActiveAt = e.Timestamp, e.Timestamp
		}
	case event.UserMessage:
		m.role, m.text = "user", body.Content
		if r.Preview == "" {
			r.Preview = preview.Of(body.Content)
		}
	case event.LLMRequestStarted:
		r.Session.Model = body.Model
	case event.AssistantMessage:
		m.role, m.text = "assistant", body.Content
	}
	if e.Tag().EndsRequest() {
		r.Session.Turns++
	}
	if e.Tag().IsActivity() {
		r.LastActiveAt = e.Timestamp
	}
	m.text = strings.ToValidUTF8(m.text[:min(len(m.text), maxText)], "")
	return m, m.text != ""
}

// compare orders a list: the latest activity first.
func compare(a, b *record) int {
	return comparePositions(a.LastActiveAt, a.ContextName, b.LastActiveAt, b.ContextName)
}

func comparePositions(at time.Time, name string, otherAt time.Time, otherName string) int {
	if c := otherAt.Compare(at); c != 0 {
		return c
	}
	return strings.Compare(name, otherName)
}
