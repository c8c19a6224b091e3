package event

// MovedTo returns the event under another context name. Ids of events and requests of the old context
// are renamed and keep their counters. Ids of other contexts and [Event.Extra] do not change.
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

// MapIDs applies f to each nonempty id of an event or request, including ID and ParentID, but not to
// the origin of a fork.
func (e Event) MapIDs(f func(id string) string) Event {
	mapped := func(id string) string {
		if id == "" {
			return ""
		}
		return f(id)
	}
	e.ID, e.ParentID = mapped(e.ID), mapped(e.ParentID)
	if body, ok := e.Body.(idHolder); ok {
		e.Body = body.mapIDs(mapped)
	}
	return e
}

type idHolder interface {
	mapIDs(f func(id string) string) Body
}

func (b ToolCall) mapIDs(f func(string) string) Body {
	b.MessageID, b.RequestID = f(b.MessageID), f(b.RequestID)
	return b
}

func (b ApprovalRequested) mapIDs(f func(string) string) Body {
	b.RequestID = f(b.RequestID)
	return b
}

func (b ToolProgress) mapIDs(f func(string) string) Body {
	b.RequestID = f(b.RequestID)
	return b
}

func (b LLMRequestFellBack) mapIDs(f func(string) string) Body {
	b.RequestID = f(b.RequestID)
	return b
}

func (b LLMAttemptEnded) mapIDs(f func(string) string) Body {
	b.RequestID = f(b.RequestID)
	return b
}

func (b BudgetExceeded) mapIDs(f func(string) string) Body {
	b.RequestID = f(b.RequestID)
	return b
}

func (b AssistantMessage) mapIDs(f func(string) string) Body {
	b.RequestID, b.ThroughEventID = f(b.RequestID), f(b.ThroughEventID)
	return b
}

func (b LLMRequestStarted) mapIDs(f func(string) string) Body {
	b.RequestID, b.ThroughEventID = f(b.RequestID), f(b.ThroughEventID)
	return b
}

func (b LLMRequestCompleted) mapIDs(f func(string) string) Body {
	b.RequestID, b.ThroughEventID = f(b.RequestID), f(b.ThroughEventID)
	return b
}

func (b LLMRequestInterrupted) mapIDs(f func(string) string) Body {
	b.RequestID, b.ThroughEventID = f(b.RequestID), f(b.ThroughEventID)
	return b
}

func (b LLMRequestFailed) mapIDs(f func(string) string) Body {
	b.RequestID, b.ThroughEventID = f(b.RequestID), f(b.ThroughEventID)
	return b
}

func (b TextDelta) mapIDs(f func(string) string) Body {
	b.RequestID, b.ThroughEventID = f(b.RequestID), f(b.ThroughEventID)
	return b
}

func (b ReasoningDelta) mapIDs(f func(string) string) Body {
	b.RequestID, b.ThroughEventID = f(b.RequestID), f(b.ThroughEventID)
	return b
}
