package reducer

import (
	"encoding/json"
	"slices"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Reducer is the signature of [Reduce]. It must be pure and independent of how a log is split.
type Reducer func(current ReducedContext, events ...event.Event) ReducedContext

// ReducedContext is what a model receives. It is immutable.
type ReducedContext struct {
	Messages           []Message    `json:"messages"`                     // the system message, if any, first
	PendingAttachments []Attachment `json:"pendingAttachments,omitempty"` // of the next user message
	Config             Config       `json:"config"`
	// Refused is the content that requests to its model do not contain.
	Refused []event.ContentRefused `json:"refused,omitempty"`
}

// Role is the author of a message, as in the OpenAI API.
type Role string

// Roles of a [Message].
const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Message is a message of a conversation. ProviderState must not be modified.
//
//schema:rules {"properties":{"eventId":{"$ref":"EventID"}}}
type Message struct {
	Role          Role                 `json:"role"`
	Content       string               `json:"content"`
	EventID       string               `json:"eventId,omitempty"`
	Attachments   []Attachment         `json:"attachments,omitempty"`
	ToolCalls     []ToolCall           `json:"toolCalls,omitempty"`  // of the assistant; Content may be empty
	ToolCallID    string               `json:"toolCallId,omitempty"` // the call of a tool message
	Partial       bool                 `json:"partial,omitempty"`    // interrupted
	ProviderState *event.ProviderState `json:"providerState,omitempty"`
	RequestID     string               `json:"requestId,omitempty"` // only of an answer with tool calls
	Summary       bool                 `json:"summary,omitempty"`   // of removed messages ([event.Compacted])
	// Refused maps the content that the model refused to the reason. Only [ReducedContext.ForModel] sets it.
	Refused map[event.Content]string `json:"-"`

	freeCount int32 // see shared; 0 in a message
}

func (m *Message) free() *int32 { return &m.freeCount }

func (m Message) hasCall(id string) bool {
	return slices.ContainsFunc(m.ToolCalls, func(c ToolCall) bool { return c.ID == id })
}

// Attachment is a file of a message ([event.FileAttachment]).
type Attachment struct {
	Source    event.Source `json:"source"`
	MediaType string       `json:"mediaType"`
	FileName  string       `json:"fileName,omitempty"`
	Size      int64        `json:"size,omitempty"`
}

// Name returns the file name, or the source if there is none.
func (a Attachment) Name() string {
	if a.FileName != "" {
		return a.FileName
	}
	return a.Source.String()
}

// ToolCall is a tool call of an assistant message ([event.ToolCall]).
//
//schema:rules {"properties":{"arguments":{"contentMediaType":"application/json"}}}
type ToolCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments,omitempty"` // JSON; empty if there are none
}

// Reduce folds events in order. Of the lifecycle and ephemeral events, only [event.Compacted] and
// [event.ContentRefused] have an effect, and the failures that withdraw the latter.
func Reduce(current ReducedContext, events ...event.Event) ReducedContext {
	f := fold{ReducedContext: current}
	for _, e := range events {
		f.apply(e)
	}
	return f.ReducedContext
}

type fold struct {
	ReducedContext
	ownMessages bool // this call made the array of the messages, and may modify it
}

func (f *fold) append(m Message) {
	messages, isCopy := shared[Message, *Message](f.Messages).append(m, len(f.Messages)+7)
	f.Messages, f.ownMessages = messages, f.ownMessages || isCopy
}

// own copies the messages once per fold. The spare capacity is small, because each event may be folded
// by a call of its own.
func (f *fold) own() {
	if !f.ownMessages {
		f.Messages = shared[Message, *Message](f.Messages).clone(len(f.Messages)/8 + 8)
		f.ownMessages = true
	}
}

func (f *fold) insert(i int, m Message) {
	if i == len(f.Messages) {
		f.append(m)
		return
	}
	f.own()
	f.append(m)
	copy(f.Messages[i+1:], f.Messages[i:])
	f.Messages[i] = m
}

func appendCopy[T any](list []T, item T) []T {
	return append(slices.Clip(list), item)
}

func (f *fold) apply(e event.Event) {
	switch body := e.Body.(type) {
	case event.SystemPrompt:
		f.setSystem(Message{Role: RoleSystem, Content: body.Content, EventID: e.ID})
	case event.UserMessage:
		f.append(Message{Role: RoleUser, Content: body.Content, EventID: e.ID, Attachments: f.PendingAttachments})
		f.PendingAttachments = nil
	case event.AssistantMessage:
		f.insert(f.placeAfter(body.ThroughEventID, body.RequestID), Message{
			Role: RoleAssistant, Content: body.Content, EventID: e.ID, Partial: body.Partial, ProviderState: body.ProviderState,
		})
	case event.FileAttachment:
		f.PendingAttachments = appendCopy(f.PendingAttachments, Attachment(body))
	case event.ToolCall:
		f.addToolCall(e.ID, body)
	case event.ToolResult:
		f.addToolResult(e.ID, body)
	case event.ApprovalDecided:
		f.editToolCall(body)
	case event.Compacted:
		f.compact(e.ID, body)
	case event.ContentRefused:
		f.refuse(body)
	default:
		f.withdrawRefusals(body)
		f.Config = f.Config.apply(body)
	}
}

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

// placeAfter returns the index after the last message in a request, after earlier answers of the
// request, and after the results of their calls; the end if the request is unknown. Inserted
// answers are newer than the messages after them, so the ids are not sorted.
func (f *fold) placeAfter(throughEventID, requestID string) int {
	through := event.Counter(throughEventID)
	i := len(f.Messages)
	if through == 0 {
		return i
	}
	for i > 0 && f.Messages[i-1].Role != RoleSystem && !f.Messages[i-1].Summary && event.Counter(f.Messages[i-1].EventID) > through {
		i--
	}
	i = skipResults(f.Messages, i)
	for step := len(f.Messages) - 1; step >= i && requestID != ""; step-- {
		if f.Messages[step].RequestID == requestID {
			return skipResults(f.Messages, step+1)
		}
	}
	return i
}

func skipResults(messages []Message, i int) int {
	for i < len(messages) && messages[i].Role == RoleTool {
		i++
	}
	return i
}

// addToolCall adds a call to the assistant message that it names, else to the newest one after the
// last user message, or to a new empty one.
func (f *fold) addToolCall(eventID string, body event.ToolCall) {
	call := ToolCall{ID: body.ToolCallID, Name: body.ToolName, Arguments: string(body.Parameters)}
	named := event.Counter(body.MessageID) > 0
	for i := len(f.Messages) - 1; i >= 0; i-- {
		m := f.Messages[i]
		if m.Role == RoleAssistant && (!named || m.EventID == body.MessageID) {
			// Providers reject duplicate ids in a message. Without a result, the call is a repeat.
			if m.hasCall(call.ID) {
				if f.hasResult(i, call.ID) {
					break
				}
				return
			}
			f.own()
			f.Messages[i].ToolCalls = appendCopy(m.ToolCalls, call)
			if body.RequestID != "" {
				f.Messages[i].RequestID = body.RequestID
			}
			return
		}
		if m.Role == RoleUser && !named {
			break
		}
	}
	f.append(Message{Role: RoleAssistant, EventID: eventID, ToolCalls: []ToolCall{call}, RequestID: body.RequestID})
}

func (f *fold) editToolCall(body event.ApprovalDecided) {
	if len(body.Parameters) == 0 {
		return
	}
	for i, m := range slices.Backward(f.Messages) {
		for k, call := range m.ToolCalls {
			if call.ID != body.ToolCallID {
				continue
			}
			f.own()
			calls := slices.Clone(m.ToolCalls)
			calls[k].Arguments = string(body.Parameters)
			f.Messages[i].ToolCalls = calls
			return
		}
	}
}

// addToolResult inserts a result after its call and the results that follow it. It replaces an earlier
// result of the same call.
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
		if m.hasCall(body.ToolCallID) {
			f.insert(skipResults(f.Messages, i+1), result)
			return
		}
	}
	f.append(result)
}

func (f *fold) hasResult(i int, callID string) bool {
	results := f.Messages[i+1 : skipResults(f.Messages, i+1)]
	return slices.ContainsFunc(results, func(m Message) bool { return m.ToolCallID == callID })
}

func plain(value json.RawMessage) string {
	var s string
	if json.Unmarshal(value, &s) == nil {
		return s
	}
	return string(value)
}
