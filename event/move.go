package event

// MovedTo is the event as it stands in another context: under that name, with
// the counters that it has. Every id of an event or a request of its own context
// goes with it; those of other contexts stay, and so does what is in
// [Event.Extra]. Moved back, it is the same event again, unless it names
// something of the other context.
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

// MapIDs is the event with what f makes of each id of an event or a request in
// it, its own and its parent's among them. Empty ones stay empty, and f is not
// asked for the ids of tool calls, clients and Temporal runs, nor for the event
// that a context was forked from, which is always another's.
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
