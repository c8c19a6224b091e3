package reducer

import (
	"encoding/json"
	"slices"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Reducer folds events into a reduced context. [Reduce] is the one that a
// worker uses unless it is given another, which must be pure like it and give
// the same for every split of a log into calls.
type Reducer func(current ReducedContext, events ...event.Event) ReducedContext

// ReducedContext is what the events of a context amount to: what the model is
// shown and how it is asked. It is an immutable value.
type ReducedContext struct {
	// Messages is the conversation, the system message first when there is one.
	Messages []Message `json:"messages"`
	// PendingAttachments wait for the next user message.
	PendingAttachments []Attachment `json:"pendingAttachments,omitempty"`
	// Config is how the model is asked.
	Config Config `json:"config"`
}

// Role says who speaks in a message, in the words of the OpenAI API.
type Role string

// The roles.
const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Message is one message of a conversation.
type Message struct {
	Role    Role   `json:"role"`
	Content string `json:"content"`
	// EventID is the event that the message came from; empty when the event
	// had no id.
	EventID string `json:"eventId,omitempty"`
	// Attachments go with a user message.
	Attachments []Attachment `json:"attachments,omitempty"`
	// ToolCalls go with an assistant message, which may have no content then.
	ToolCalls []ToolCall `json:"toolCalls,omitempty"`
	// ToolCallID is, in a tool message, the call that it answers.
	ToolCallID string `json:"toolCallId,omitempty"`
	// Partial marks an answer that was cut off.
	Partial bool `json:"partial,omitempty"`
}

// calls reports whether the message has a tool call with the id.
func (m Message) calls(id string) bool {
	return slices.ContainsFunc(m.ToolCalls, func(c ToolCall) bool { return c.ID == id })
}

// Attachment is a file that goes with a message, see [event.FileAttachment].
type Attachment struct {
	Source    event.Source `json:"source"`
	MediaType string       `json:"mediaType"`
	FileName  string       `json:"fileName,omitempty"`
	Size      int64        `json:"size,omitempty"`
}

// Name is what to call the attachment: its file name, else its source.
func (a Attachment) Name() string {
	if a.FileName != "" {
		return a.FileName
	}
	return a.Source.String()
}

// ToolCall is a call in an assistant message.
type ToolCall struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Arguments is the JSON of the parameters; empty when there were none.
	Arguments string `json:"arguments,omitempty"`
}

// Reduce applies events in order and returns the result. It changes nothing
// that it is given. Events of the lifecycle and ephemeral ones leave the
// context as it is.
func Reduce(current ReducedContext, events ...event.Event) ReducedContext {
	f := fold{ReducedContext: current}
	for _, e := range events {
		f.apply(e)
	}
	return f.ReducedContext
}

// fold is a reduction at work: the context so far, and which of its slices
// belong to this call alone and so may be changed in place.
type fold struct {
	ReducedContext
	ownMessages bool
}

func (f *fold) apply(e event.Event) {
	switch body := e.Body.(type) {
	case event.SystemPrompt:
		f.setSystem(Message{Role: RoleSystem, Content: body.Content, EventID: e.ID})
	case event.UserMessage:
		f.append(Message{Role: RoleUser, Content: body.Content, EventID: e.ID, Attachments: f.PendingAttachments})
		f.PendingAttachments = nil
	case event.AssistantMessage:
		f.insert(f.placeAfter(body.ThroughEventID), Message{
			Role: RoleAssistant, Content: body.Content, EventID: e.ID, Partial: body.Partial,
		})
	case event.FileAttachment:
		f.PendingAttachments = appendCopy(f.PendingAttachments, Attachment(body))
	case event.ToolCall:
		f.addToolCall(e.ID, body)
	case event.ToolResult:
		f.addToolResult(e.ID, body)
	default:
		f.Config = f.Config.apply(e.Body)
	}
}

// setSystem keeps the one system message in front.
func (f *fold) setSystem(m Message) {
	has := len(f.Messages) > 0 && f.Messages[0].Role == RoleSystem
	switch {
	case has && m.Content == "":
		f.own()
		f.Messages = f.Messages[1:]
	case has:
		f.own()
		f.Messages[0] = m
	case m.Content != "":
		f.insert(0, m)
	}
}

// placeAfter is the index behind the last message that a request had seen,
// which is the end when the request is unknown. Messages stand in the order of
// what they answer, not of their ids, so the search goes from the end. It never
// parts a tool call from its results, nor goes before the system message.
func (f *fold) placeAfter(throughEventID string) int {
	through := event.Counter(throughEventID)
	i := len(f.Messages)
	if through == 0 {
		return i
	}
	for i > 0 && f.Messages[i-1].Role != RoleSystem && event.Counter(f.Messages[i-1].EventID) > through {
		i--
	}
	return f.skipResults(i)
}

// skipResults is the first index from i on without a tool message.
func (f *fold) skipResults(i int) int {
	for i < len(f.Messages) && f.Messages[i].Role == RoleTool {
		i++
	}
	return i
}

// addToolCall adds the call to the assistant message that it names. When it
// names none of this context, that is the newest one since the last user
// message; when nothing was said since, it is an empty one of its own.
func (f *fold) addToolCall(eventID string, body event.ToolCall) {
	call := ToolCall{ID: body.ToolCallID, Name: body.ToolName, Arguments: string(body.Parameters)}
	named := event.Counter(body.MessageID) > 0
	for i := len(f.Messages) - 1; i >= 0; i-- {
		m := f.Messages[i]
		if m.Role == RoleAssistant && (!named || m.EventID == body.MessageID) {
			// Providers refuse two calls with the same id in a message. It is the
			// same call, come twice, or when it had its result, another one.
			if m.calls(call.ID) && f.hasResult(i, call.ID) {
				break
			} else if m.calls(call.ID) {
				return
			}
			f.own()
			f.Messages[i].ToolCalls = appendCopy(m.ToolCalls, call)
			return
		}
		if m.Role == RoleUser && !named {
			break
		}
	}
	f.append(Message{Role: RoleAssistant, EventID: eventID, ToolCalls: []ToolCall{call}})
}

// addToolResult puts the result behind its call and the results that are there
// already. A second result of a call takes the place of the first: the true
// outcome may come after one that stood in for it.
func (f *fold) addToolResult(eventID string, body event.ToolResult) {
	content := body.Value
	if len(content) == 0 {
		content = body.Error
	}
	result := Message{Role: RoleTool, Content: plain(content), EventID: eventID, ToolCallID: body.ToolCallID}
	for i := len(f.Messages) - 1; i >= 0; i-- {
		m := f.Messages[i]
		if m.Role == RoleTool && m.ToolCallID == body.ToolCallID {
			f.own()
			f.Messages[i] = result
			return
		}
		if m.calls(body.ToolCallID) {
			f.insert(f.skipResults(i+1), result)
			return
		}
	}
	f.append(result)
}

// hasResult reports whether a call of message i has its result behind it.
func (f *fold) hasResult(i int, callID string) bool {
	results := f.Messages[i+1 : f.skipResults(i+1)]
	return slices.ContainsFunc(results, func(m Message) bool { return m.ToolCallID == callID })
}

// plain is a JSON value as text for a model: a string as it is, anything else
// as its JSON.
func plain(value json.RawMessage) string {
	var s string
	if json.Unmarshal(value, &s) == nil {
		return s
	}
	return string(value)
}
