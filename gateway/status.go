package gateway

import (
	"reflect"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/reducer/usage"
)

// status is derived from the log, which does not show that a session was terminated from outside. If an answer was
// running, a probe finds out.
type status struct {
	status  wire.Status
	since   time.Time
	request string    // the running request
	began   int       // counter of its first event
	created time.Time // of the first event, in a fork of the first event of its own
	budget  spending
	details *reducer.Details // nil: none were set
	waiting *waitingView     // nil: no work waits for a worker
}

// spending is the budget of a context and its usage. Zero: it has no budget.
type spending struct {
	Limit event.Budget `json:"limit"`
	Used  event.Amount `json:"used"`
}

// apply folds an event. The usage in spent already includes it.
func (s *status) apply(e event.Event, spent *usage.Table) {
	set := func(to wire.Status, request string) { s.status, s.since, s.request = to, e.Timestamp, request }
	if started, ok := e.Body.(event.SessionStarted); s.created.IsZero() || ok && started.ForkedFrom != "" {
		s.created = e.Timestamp
	}
	switch body := e.Body.(type) {
	case event.LLMRequestStarted:
		if body.RequestID != s.request {
			s.began = event.Counter(e.ID)
		}
		set(wire.StatusAnswering, body.RequestID)
	case event.SessionEnded:
		set(wire.StatusClosed, "")
	case event.SessionStarted:
		set(wire.StatusIdle, "")
	default:
		if s.status == "" || s.request != "" && e.Tag().EndsRequest() && s.request == event.RequestOf(e.Body) {
			set(wire.StatusIdle, "")
		}
	}
	var before reducer.Details
	if s.details != nil {
		before = *s.details
	}
	if details := before.With(e.Body); !reflect.DeepEqual(details, before) {
		s.details = &details
	}
	limit := s.budget.Limit
	if body, ok := e.Body.(event.BudgetSet); ok {
		limit = event.Budget(body)
	}
	s.budget = spending{}
	if !limit.IsZero() {
		s.budget = spending{limit, spent.Total().Amount()}
	}
}

// statusChange is the data of a `status` event in the stream of a transcript.
type statusChange struct {
	Status wire.Status `json:"status"`
	Since  time.Time   `json:"since"`           // the timestamp of the event that caused the status
	Budget spending    `json:"budget,omitzero"` // the budget of the context and its usage; absent: none
	// What people know the context by; absent: nothing.
	Details *reducer.Details `json:"details,omitempty"`
	*waitingView
}

func (s status) frame() []byte {
	return frame("", "status", encode(statusChange{s.status, s.since, s.budget, s.details, s.waiting}))
}
