package event

// MovedTo returns the event under another context name. All ids of events and requests of
// its own context are renamed and keep their counters. Ids of other contexts and
// [Event.Extra] do not change. Moving the event back restores it, unless it refers to the
// other context.
func (e Event) MovedTo(contextName string) Event {
	from := e.ContextName
	e.ContextName = contextName
	return e.MapIDs(func(id string) string {
		if n := Counter(id); n > 0 && id == FormatID(from, n) {
			return FormatID(contextName, n)
		}
		if n := RequestNumber(id); n > 0 && id == FormatRequestID(from, n) {
			return FormatRequestID(contextName, n)
		}
		return id
	})
}

// MapIDs returns the event with f applied to each nonempty id of an event or a request in
// it, including its own and its parent's. It does not change ids of tool calls, clients and
// Temporal runs, or the event that a context was forked from, which belongs to another
// context.
func (e Event) MapIDs(f func(id string) string) Event {
	each := func(ids ...*string) {
		for _, id := range ids {
			if *id != "" {
				*id = f(*id)
			}
		}
	}
	each(&e.ID, &e.ParentID)
	switch body := e.Body.(type) {
	case AssistantMessage:
		each(&body.RequestID, &body.ThroughEventID)
		e.Body = body
	case ToolCall:
		each(&body.MessageID)
		e.Body = body
	case LLMRequestStarted:
		each(&body.RequestID, &body.ThroughEventID)
		e.Body = body
	case LLMRequestCompleted:
		each(&body.RequestID, &body.ThroughEventID)
		e.Body = body
	case LLMRequestInterrupted:
		each(&body.RequestID, &body.ThroughEventID)
		e.Body = body
	case LLMRequestFailed:
		each(&body.RequestID, &body.ThroughEventID)
		e.Body = body
	case LLMRequestFellBack:
		each(&body.RequestID)
		e.Body = body
	case TextDelta:
		each(&body.RequestID, &body.ThroughEventID)
		e.Body = body
	}
	return e
}
