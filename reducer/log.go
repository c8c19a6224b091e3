package reducer

import (
	"slices"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Load returns the session after a log: what [Step] had made of the same
// events, as far as it outlives a session. The events must be those of one
// context, from the first on.
func Load(contextName string, reduce Reducer, events ...event.Event) Session {
	d := decision{Session: NewSession(contextName), reduce: reduce}
	for _, e := range events {
		d.follow(e)
	}
	d.Reduced = reduce(d.Reduced, events...) // in one call, which is faster
	return d.Session
}

// answerOpenToolCalls gives every call a result, since providers refuse a
// conversation with one that has none.
func (d *decision) answerOpenToolCalls() {
	var results []event.Event
	for _, id := range d.OpenToolCalls {
		results = append(results, event.New(event.ToolResult{
			ToolCallID: id, Error: []byte(`"interrupted, outcome unknown"`), IsError: true,
		}))
	}
	d.recordEvents(results...)
}

func (d *decision) record(body event.Body) { d.recordEvents(event.New(body)) }

// recordEvents gives events their place in the log. They are folded in one
// call of the reducer: some events copy the list of messages, once per call.
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
	d.effects = append(d.effects, Record{Events: placed})
}

// follow is what a recorded event means for the session, but for the reduced
// context. Together with the log it is all that the next session has to go by.
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
	case event.LLMRequestCompleted:
		d.rememberEnded(body.RequestID, true)
	case event.LLMRequestFailed:
		d.rememberEnded(body.RequestID, true)
	case event.LLMRequestInterrupted:
		d.rememberEnded(body.RequestID, d.Request != nil && d.Request.Stop == "")
	}
}

func (d *decision) rememberStarted(body event.LLMRequestStarted) {
	r := d.rememberOpen(body.RequestID)
	r.Attempt, r.Through = body.Attempt, body.ThroughEventID
	r.ProviderID, r.Model = body.ProviderID, body.Model
	d.Model = body.Model
}

// rememberOpen returns the running request, which may be known from the log
// alone.
func (d *decision) rememberOpen(requestID string) *Request {
	if d.Request == nil || d.Request.ID != requestID {
		d.Request = &Request{ID: requestID, FirstAttempt: 1}
	}
	d.rememberNumber(requestID)
	return d.Request
}

// rememberEnded ends a request, and with it the wait of all that it was shown if
// that is settled. It is not when the request was asked to stop: what was to go
// without an answer went when that was asked, and what came since got none, even
// if the request was shown it on its way down.
func (d *decision) rememberEnded(requestID string, settled bool) {
	if r := d.Request; settled && r != nil && event.Counter(d.Trigger) <= max(event.Counter(r.Asked), event.Counter(r.Through)) {
		d.Trigger = ""
	}
	d.Request = nil
	d.Turns++
	d.rememberNumber(requestID)
}

// rememberNumber keeps request ids unique in a log: a request that ended before
// any attempt was sent has left no start there.
func (d *decision) rememberNumber(requestID string) {
	d.Requests = max(d.Requests, event.RequestNumber(requestID))
}
