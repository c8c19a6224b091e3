package reducer

import (
	"slices"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Load restores a session from its complete log. A running request lacks what the log does not
// contain, such as its worker, a stop and the options of its tools.
func Load(contextName string, reduce Reducer, events ...event.Event) Session {
	d := decision{Session: NewSession(contextName), reduce: reduce}
	for _, e := range events {
		d.follow(e)
		d.hash(e)
	}
	d.Reduced = reduce(d.Reduced, events...) // one call avoids repeated copies
	return d.Session
}

func (d *decision) answerOpenToolCalls() {
	var results []event.Event
	for _, id := range d.OpenToolCalls {
		results = append(results, event.New(event.UnknownResult(id)))
	}
	d.recordEvents(results...)
}

func (d *decision) record(body event.Body) { d.recordEvents(event.New(body)) }

// recordEvents folds all events in one call of the reducer, which copies the messages at most once.
func (d *decision) recordEvents(events ...event.Event) {
	if len(events) == 0 {
		return
	}
	placed := d.placed(events)
	for _, e := range placed {
		d.follow(e)
		d.hash(e)
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

// placed returns events as the next ones of the log.
func (d *decision) placed(events []event.Event) []event.Event {
	placed, parent := make([]event.Event, len(events)), d.LastEventID()
	for i, e := range events {
		e.ParentID, e.ID = parent, event.FormatID(d.ContextName, d.EventCount+1+i)
		e.ContextName, e.Timestamp = d.ContextName, d.at.UTC()
		placed[i], parent = e, e.ID
	}
	return placed
}

// follow updates the session for a recorded event, except for the reduced context. [Load] uses it too.
func (d *decision) follow(e event.Event) {
	d.EventCount, d.LastEventAt = max(d.EventCount+1, event.Counter(e.ID)), e.Timestamp
	if isKeyed(e) {
		d.remember(Sent{ClientEventID: e.ClientEventID, Counter: d.EventCount})
	}
	d.Details = d.Details.With(e.Body)
	switch body := e.Body.(type) {
	case event.UserMessage:
		if body.Triggers() {
			d.Trigger, d.TriggerAt, d.TriggerSettings = e.ID, e.Timestamp, body.Settings
		}
	case event.AnswerRequested:
		d.Trigger, d.TriggerAt, d.TriggerSettings = e.ID, e.Timestamp, body.Settings
	case event.ToolCall:
		d.followCall(body)
		if !slices.Contains(d.OpenToolCalls, body.ToolCallID) {
			d.OpenToolCalls = appendCopy(d.OpenToolCalls, body.ToolCallID)
		}
	case event.ToolResult:
		d.OpenToolCalls = slices.DeleteFunc(slices.Clone(d.OpenToolCalls), func(id string) bool { return id == body.ToolCallID })
		if len(d.OpenToolCalls) == 0 {
			d.OpenToolCalls = nil
		}
		d.followResult(body)
	case event.ApprovalRequested:
		d.followApprovalRequest(body)
	case event.ApprovalDecided:
		d.followApproval(body)
	case event.SessionStarted:
		d.Started, d.Ended, d.Closing = true, false, ""
		if body.ForkedFrom != "" {
			// Earlier usage belongs to the other context, also that of an attempt that still runs there.
			d.Usage = Usage{}
			if d.Request != nil {
				d.Request.AttemptEnded = true
			}
		}
	case event.SessionEnded:
		d.Ended, d.Closing = true, ""
	case event.Compacted:
		d.followCompaction(body)
	default:
		d.followRequest(e)
	}
}

// followRequest updates the session for an event about an attempt.
func (d *decision) followRequest(e event.Event) {
	switch body := e.Body.(type) {
	case event.LLMRequestStarted:
		r := d.openRequest(body.RequestID)
		r.Attempt, r.AttemptEnded, r.Through = body.Attempt, false, body.ThroughEventID
		r.ProviderID, r.Model = body.ProviderID, body.Model
		if event.Counter(d.Trigger) <= event.Counter(r.Through) {
			r.Settings = d.TriggerSettings
		}
		d.ProviderID, d.Model = body.ProviderID, body.Model
	case event.ToolsOffered:
		d.Offered = &Offered{EventID: e.ID, Patterns: body.Patterns, Hash: body.Hash(), Withheld: body.Withheld}
	case event.ContentRefused:
		d.openRequest(body.RequestID).Refusals++
	case event.LLMRequestFellBack:
		d.endAttempt(body.RequestID, body.Usage, false)
	case event.LLMAttemptEnded:
		if body.Outcome == event.AttemptToolCalls || body.Outcome == event.AttemptCompacted {
			d.followAccepted(body.RequestID, body.Usage)
		}
		d.endAttempt(body.RequestID, body.Usage, body.Outcome == event.AttemptToolCalls)
	case event.LLMRequestInterrupted:
		d.endAttempt(body.RequestID, body.Usage, body.PartialResponse != "")
		d.endRequest(body)
	case event.LLMRequestFailed:
		d.endAttempt(body.RequestID, body.Usage, false)
		d.endRequest(body)
	case event.LLMRequestCompleted:
		d.followAccepted(body.RequestID, body.Usage)
		d.endAttempt(body.RequestID, body.Usage, true)
		d.endRequest(body)
	}
}

// endAttempt counts the usage of an attempt. isAnswer: the conversation contains its text or tool calls.
func (d *decision) endAttempt(requestID string, usage event.Usage, isAnswer bool) {
	r := d.Request
	if r == nil || r.ID != requestID || !r.hasAttempt() {
		return
	}
	r.AttemptEnded = true
	d.Usage = d.Usage.Add(usage)
	if tokens := usage.InputTokens + usage.OutputTokens; isAnswer && tokens > 0 {
		d.ContextTokens = tokens
	}
}

// openRequest returns the running request, and creates it during [Load].
func (d *decision) openRequest(requestID string) *Request {
	if d.Request == nil || d.Request.ID != requestID {
		d.Request = &Request{ID: requestID}
	}
	d.countRequest(requestID)
	return d.Request
}

// endRequest ends a request. Its messages, and those that stay unanswered, no longer require an answer.
func (d *decision) endRequest(body event.RequestEnd) {
	done := event.Counter(body.Unanswered())
	if d.Request != nil {
		done = max(done, event.Counter(d.Request.Through))
	}
	if event.Counter(d.Trigger) <= done {
		d.Trigger, d.TriggerSettings = "", nil
	}
	d.Request = nil
	d.Turns++
	d.countRequest(body.Request())
}

// countRequest keeps request ids unique: a request that was never sent has no LLMRequestStarted.
func (d *decision) countRequest(requestID string) {
	d.Requests = max(d.Requests, event.RequestNumber(requestID))
}
