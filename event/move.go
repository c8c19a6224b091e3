package event

import "strings"

// MovedTo is the event as an event of another context: its name and every id
// of its own context in it, those of requests included, are those of the other
// one. Counters, times and what was said stay. Ids of other contexts stay, too.
func (e Event) MovedTo(contextName string) Event {
	from := e.ContextName + ":"
	move := func(ids ...*string) {
		for _, id := range ids {
			if strings.HasPrefix(*id, from) && (Counter(*id) > 0 || RequestNumber(*id) > 0) {
				*id = contextName + (*id)[len(e.ContextName):]
			}
		}
	}
	move(&e.ID, &e.ParentID)
	switch b := e.Body.(type) {
	case AssistantMessage:
		move(&b.RequestID, &b.ThroughEventID)
		e.Body = b
	case ToolCall:
		move(&b.MessageID)
		e.Body = b
	case LLMRequestStarted:
		move(&b.RequestID, &b.ThroughEventID)
		e.Body = b
	case LLMRequestCompleted:
		move(&b.RequestID)
		e.Body = b
	case LLMRequestInterrupted:
		move(&b.RequestID, &b.ThroughEventID)
		e.Body = b
	case LLMRequestFailed:
		move(&b.RequestID, &b.ThroughEventID)
		e.Body = b
	case LLMRequestFellBack:
		move(&b.RequestID)
		e.Body = b
	case TextDelta:
		move(&b.RequestID, &b.ThroughEventID)
		e.Body = b
	}
	e.ContextName = contextName
	return e
}
