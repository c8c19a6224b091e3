package ordering

import (
	"bytes"
	"encoding/json"
	"strings"
)

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

type part struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func (m message) parts() (parts []part) {
	var text string
	if json.Unmarshal(m.Content, &text) == nil && !m.isNull() {
		return []part{{Type: "text", Text: text}}
	}
	_ = json.Unmarshal(m.Content, &parts) // any other value has no parts
	return parts
}

func (m message) isNull() bool {
	return len(m.Content) == 0 || bytes.Equal(bytes.TrimSpace(m.Content), []byte("null"))
}

func (m message) isString() bool { return len(m.Content) > 0 && m.Content[0] == '"' }

func (m message) isBlank() bool {
	for _, p := range m.parts() {
		if p.Type != "text" || strings.TrimSpace(p.Text) != "" {
			return false
		}
	}
	return true
}

func (m message) isAnswer() bool { return m.Role == "assistant" }

func (c call) arguments() (object map[string]any, ok bool) {
	var text string
	return object, json.Unmarshal(c.Function.Arguments, &text) == nil && json.Unmarshal([]byte(text), &object) == nil && object != nil
}

func (r request) withoutSystem() []message {
	if len(r.Messages) > 0 && r.Messages[0].Role == "system" {
		return r.Messages[1:]
	}
	return r.Messages
}

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

// turns returns the messages between user messages, which it excludes.
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
