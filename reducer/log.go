package reducer

import (
	"slices"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Load restores a session from its log: the state that [Step] had after the same events,
// as far as it survives a session. The events must be the complete log of one context.
func Load(contextName string, reduce Reducer, events ...event.Event) Session {
	d := decision{Session: NewSession(contextName), reduce: reduce}
	for _, e := range events {
		d.follow(e)
	}
	d.Reduced = reduce(d.Reduced, events...) // one call avoids repeated copies
	return d.Session
}

// answerOpenToolCalls gives every open call a placeholder result.
func (d *decision) answerOpenToolCalls() {
	var results []event.Event
	for _, id := range d.OpenToolCalls {
		results = append(results, event.New(event.UnknownResult(id)))
	}
	d.recordEvents(results...)
}

func (d *decision) record(body event.Body) { d.recordEvents(event.New(body)) }

// recordEvents assigns ids and records events. It folds them in one call of the reducer to
// copy the messages at most once.
func (d *decision) recordEvents(events ...event.Event) {
	if len(events) == 0 {
		return
	}
	placed := make([]event.Event, len(events))
	for i, e := range events {
		e.ParentID = d.LastEventID()
		e.ID = event.FormatID(d.ContextName, d.EventCount+1)
		e.ContextName = d.ContextName
		e.Timestamp = d.at.UTC()
		placed[i] = e
		d.follow(e)
	}
	d.Reduced = d.reduce(d.Reduced, placed...)
	if n := len(d.effects); n > 0 {
		if last, ok := d.effects[n-1].(Record); ok {
			d.effects[n-1] = Record{Events: append(last.Events, placed...)}
			return
		}
	}
	d.perform(Record{Events: placed})
}

// follow updates the session, except its reduced context, for a recorded event. It is all
// that [Load] restores besides the reduced context.
func (d *decision) follow(e event.Event) {
	d.EventCount = max(d.EventCount+1, event.Counter(e.ID))
	if e.ClientEventID != "" && e.Tag() != event.TagInputRejected {
		d.remember(Sent{ClientEventID: e.ClientEventID, Counter: d.EventCount})
	}
	switch body := e.Body.(type) {
	case event.UserMessage:
		if body.Triggers() {
			d.Trigger, d.TriggerAt = e.ID, e.Timestamp
		}
	case event.ToolCall:
		if !slices.Contains(d.OpenToolCalls, body.ToolCallID) {
			d.OpenToolCalls = appendCopy(d.OpenToolCalls, body.ToolCallID)
		}
	case event.ToolResult:
		d.OpenToolCalls = slices.DeleteFunc(slices.Clone(d.OpenToolCalls), func(id string) bool { return id == body.ToolCallID })
		if len(d.OpenToolCalls) == 0 {
			d.OpenToolCalls = nil
		}
	case event.SessionStarted:
		d.Started, d.Ended, d.Closing = true, false, ""
	case event.SessionEnded:
		d.Ended, d.Closing = true, ""
	case event.LLMRequestStarted:
		d.rememberStarted(body)
	case event.LLMRequestFellBack:
		d.rememberOpen(body.RequestID)
	case event.LLMRequestInterrupted:
		d.rememberEnded(body.RequestID, d.Request != nil && !d.Phase().IsStopping())
	case event.RequestEnd:
		d.rememberEnded(body.Request(), true)
	}
}

func (d *decision) rememberStarted(body event.LLMRequestStarted) {
	r := d.rememberOpen(body.RequestID)
	r.Attempt, r.Through = body.Attempt, body.ThroughEventID
	r.ProviderID, r.Model = body.ProviderID, body.Model
	d.Model = body.Model
}

// rememberOpen returns the running request. If only the log knows it, it creates the
// request.
func (d *decision) rememberOpen(requestID string) *Request {
	if d.Request == nil || d.Request.ID != requestID {
		d.Request = &Request{ID: requestID, FirstAttempt: 1}
	}
	d.rememberNumber(requestID)
	return d.Request
}

// rememberEnded ends a request. If settled, the request also answered everything it was
// shown. It is not settled if the request was asked to stop: input dropped then stays
// unanswered, and later input is answered by the next request, even if a last attempt was
// shown it.
func (d *decision) rememberEnded(requestID string, settled bool) {
	if r := d.Request; settled && r != nil && event.Counter(d.Trigger) <= max(event.Counter(r.Asked), event.Counter(r.Through)) {
		d.Trigger = ""
	}
	d.Request = nil
	d.Turns++
	d.rememberNumber(requestID)
}

// rememberNumber keeps request ids unique: a request that failed before it was sent has no
// LLMRequestStarted in the log.
func (d *decision) rememberNumber(requestID string) {
	d.Requests = max(d.Requests, event.RequestNumber(requestID))
}
