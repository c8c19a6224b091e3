package ordering

import (
	"bytes"
	"encoding/json"
	"strings"
)

// request is the body of a chat completion request.
type request struct {
	Model      string          `json:"model"`
	Messages   []message       `json:"messages"`
	Tools      []tool          `json:"tools"`
	ToolChoice json.RawMessage `json:"tool_choice"`
	Parallel   *bool           `json:"parallel_tool_calls"`
	Thinking   struct {
		Type string `json:"type"`
	} `json:"thinking"`
}

type message struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCalls  []call          `json:"tool_calls"`
	ToolCallID string          `json:"tool_call_id"`
	Reasoning  *string         `json:"reasoning_content"`
}

type call struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
	Extra struct {
		Google struct {
			Signature string `json:"thought_signature"`
		} `json:"google"`
	} `json:"extra_content"`
}

type tool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

// part is a content part.
type part struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// parts returns the content of a message as parts; nil without any.
func (m message) parts() (parts []part) {
	var text string
	if json.Unmarshal(m.Content, &text) == nil && !m.isNull() {
		return []part{{Type: "text", Text: text}}
	}
	_ = json.Unmarshal(m.Content, &parts) // any other value has no parts
	return parts
}

// isNull reports whether there is no content.
func (m message) isNull() bool {
	return len(m.Content) == 0 || bytes.Equal(bytes.TrimSpace(m.Content), []byte("null"))
}

// isString reports whether the content is a string.
func (m message) isString() bool { return len(m.Content) > 0 && m.Content[0] == '"' }

// isBlank reports whether the content has no part, or only parts of blank text.
func (m message) isBlank() bool {
	for _, p := range m.parts() {
		if p.Type != "text" || strings.TrimSpace(p.Text) != "" {
			return false
		}
	}
	return true
}

// isAnswer reports whether a message is an answer of the model.
func (m message) isAnswer() bool { return m.Role == "assistant" }

// arguments returns the arguments of a call; false if they are not a JSON object in a string.
func (c call) arguments() (object map[string]any, ok bool) {
	var text string
	return object, json.Unmarshal(c.Function.Arguments, &text) == nil && json.Unmarshal([]byte(text), &object) == nil && object != nil
}

// withoutSystem returns the messages after the system message.
func (r request) withoutSystem() []message {
	if len(r.Messages) > 0 && r.Messages[0].Role == "system" {
		return r.Messages[1:]
	}
	return r.Messages
}

// choice returns the mode of the tool choice, and the name of the tool that must be called.
func (r request) choice() (mode, name string) {
	var named struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	if json.Unmarshal(r.ToolChoice, &mode) != nil {
		_ = json.Unmarshal(r.ToolChoice, &named)
	}
	return mode, named.Function.Name
}

// turns returns the messages between user messages, excluding the user messages.
func (r request) turns() (turns [][]message) {
	turn := []message(nil)
	for _, m := range r.withoutSystem() {
		if m.Role == "user" {
			turns, turn = append(turns, turn), nil
			continue
		}
		turn = append(turn, m)
	}
	return append(turns, turn)
}
