package agui

import (
	"encoding/json"

	"github.com/seed-9ed7edd4/chronicle/gateway"
)

// message is a Message of AG-UI. Its fields depend on the role.
type message struct {
	ID         string          `json:"id"`
	Role       role            `json:"role"`
	Content    json.RawMessage `json:"content,omitempty"` // a string, or an array of [part]s
	ToolCalls  []toolCall      `json:"toolCalls,omitempty"`
	ToolCallID string          `json:"toolCallId,omitempty"`
	Error      string          `json:"error,omitempty"`
}

type role string

const (
	roleUser      role = "user"
	roleAssistant role = "assistant"
	roleReasoning role = "reasoning"
	roleTool      role = "tool"
	roleSystem    role = "system"
	roleDeveloper role = "developer"
	roleActivity  role = "activity"
)

type toolCall struct {
	ID       string   `json:"id"`
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// part is a ContentPart of AG-UI.
type part struct {
	Type   string  `json:"type"`
	Text   string  `json:"text,omitempty"`
	Source *source `json:"source,omitempty"`
}

type source struct {
	Type     string `json:"type"`
	Value    string `json:"value"`
	MIMEType string `json:"mimeType,omitempty"`
}

// frame is an event of AG-UI. Its fields depend on the type.
type frame struct {
	Type            string          `json:"type"`
	ThreadID        string          `json:"threadId,omitempty"`
	RunID           string          `json:"runId,omitempty"`
	ProtocolVersion string          `json:"protocolVersion,omitempty"`
	MessageID       string          `json:"messageId,omitempty"`
	Role            role            `json:"role,omitempty"`
	Delta           string          `json:"delta,omitempty"`
	Messages        []message       `json:"messages,omitempty"`
	ToolCallID      string          `json:"toolCallId,omitempty"`
	ToolCallName    string          `json:"toolCallName,omitempty"`
	ParentMessageID string          `json:"parentMessageId,omitempty"`
	Content         json.RawMessage `json:"content,omitempty"`
	ActivityType    string          `json:"activityType,omitempty"`
	Outcome         *outcome        `json:"outcome,omitempty"`
	Usage           []usage         `json:"usage,omitempty"`
	Message         string          `json:"message,omitempty"`
	Code            string          `json:"code,omitempty"`
}

type outcome struct {
	Type       string      `json:"type"`
	Pending    []string    `json:"pendingToolCallIds,omitempty"`
	Interrupts []interrupt `json:"interrupts,omitempty"`
}

// interrupt asks for a decision. Its id is that of the call.
type interrupt struct {
	ID             string          `json:"id"`
	Reason         string          `json:"reason"`
	Message        string          `json:"message,omitempty"`
	ToolCallID     string          `json:"toolCallId"`
	ResponseSchema json.RawMessage `json:"responseSchema"`
	ExpiresAt      string          `json:"expiresAt,omitempty"`
}

type usage struct {
	Provider          string `json:"provider,omitempty"`
	Model             string `json:"model,omitempty"`
	InputTokens       int    `json:"inputTokens"`
	OutputTokens      int    `json:"outputTokens"`
	TotalTokens       int    `json:"totalTokens"`
	ReasoningTokens   int    `json:"reasoningTokens,omitempty"`
	CachedInputTokens int    `json:"cachedInputTokens,omitempty"`
}

// quoted returns the JSON of a text.
func quoted(text string) json.RawMessage {
	data, _ := json.Marshal(text) // a string always encodes
	return data
}

// key identifies a message. A client may give the result of a call another id.
func (m message) key() string {
	if m.Role == roleTool {
		return "tool " + m.ToolCallID
	}
	return m.ID
}

// hasContent reports whether the content has one of its types.
func (m message) hasContent() bool {
	var text string
	var parts []part
	return json.Unmarshal(m.Content, &text) == nil || json.Unmarshal(m.Content, &parts) == nil
}

// text returns the text of a message, without its files.
func (m message) text() string {
	var parts []part
	if json.Unmarshal(m.Content, &parts) != nil {
		return gateway.PlainText(m.Content)
	}
	text := ""
	for _, p := range parts {
		text += p.Text
	}
	return text
}
