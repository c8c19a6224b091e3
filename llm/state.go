package llm

import (
	"bytes"
	"encoding/json"

	"github.com/sashabaranov/go-openai"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// returned is the state to send with an answer. Its exported fields are those of the message.
type returned struct {
	Details   json.RawMessage `json:"reasoning_details,omitempty"`
	Reasoning json.RawMessage `json:"reasoning_content,omitempty"`
	Extra     json.RawMessage `json:"extra_content,omitempty"`

	calls    []json.RawMessage // extra_content of the tool calls; nil: none
	thinking []json.RawMessage // content parts before the text
}

type toolCall struct {
	openai.ToolCall
	Extra json.RawMessage `json:"extra_content,omitempty"`
}

func (r returned) ofCall(i int) json.RawMessage {
	if r.calls == nil {
		return nil
	}
	return r.calls[i]
}

func (r returned) withText(text string) []any {
	var parts []any
	for _, part := range r.thinking {
		parts = append(parts, part)
	}
	if text != "" {
		parts = append(parts, textPart(text))
	}
	return parts
}

// origin identifies the provider, URL and model for which a provider state is valid.
type origin struct{ providerID, baseURL, model string }

// origin is empty if requests to the target contain no provider state.
func (t *Target) origin() origin {
	if t.quirks.state == stateNone {
		return origin{}
	}
	return origin{t.ProviderID, t.BaseURL, t.Model}
}

// returned uses only the fields of the provider's rule: a client may have supplied the state.
func (t *Target) returned(m *reducer.Message) (r returned) {
	s := m.ProviderState
	if s == nil || m.Partial || t.origin() == (origin{}) || (origin{s.ProviderID, s.BaseURL, s.Model}) != t.origin() {
		return returned{}
	}
	var data struct {
		returned
		// Calls are in the order of the tool calls: ids in the log can differ from the provider's.
		Calls    json.RawMessage `json:"tool_calls"`
		Thinking json.RawMessage `json:"thinking"`
	}
	if json.Unmarshal(s.Data, &data) != nil {
		return returned{}
	}
	switch t.quirks.state {
	case stateDetails:
		r.Details = ifBegins(data.Details, '[')
	case stateReasoning:
		r.Reasoning = ifBegins(data.Reasoning, '"')
	case stateSignatures:
		r.Extra = ifBegins(data.Extra, '{')
		var calls []json.RawMessage
		_ = json.Unmarshal(data.Calls, &calls) // any other value is no state
		for i := range m.ToolCalls {
			var extra json.RawMessage
			if i < len(calls) {
				extra = ifBegins(calls[i], '{')
			}
			r.calls = append(r.calls, extra)
		}
	case stateThinking:
		r.thinking = thinkingParts(data.Thinking)
	}
	return r
}

func (t *Target) sendsState(messages []reducer.Message) bool {
	for i := range messages {
		if r := t.returned(&messages[i]); r.Details != nil || r.Reasoning != nil || r.Extra != nil || r.thinking != nil || r.ofCall(0) != nil {
			return true
		}
	}
	return false
}

func ifBegins(value json.RawMessage, begin byte) json.RawMessage {
	if len(value) == 0 || value[0] != begin {
		return nil
	}
	return value
}

func thinkingParts(value json.RawMessage) []json.RawMessage {
	var parts []contentPart
	if json.Unmarshal(value, &parts) != nil {
		return nil
	}
	for _, part := range parts {
		if part.Type != "thinking" {
			return nil
		}
	}
	var raw []json.RawMessage
	_ = json.Unmarshal(value, &raw) // cannot fail: the value was decoded above
	return raw
}

// areCallsText looks only at the first of parallel calls: Gemini signs only that one.
func (t *Target) areCallsText(r returned) bool {
	hasState := r.Reasoning != nil || r.ofCall(0) != nil
	switch q := t.quirks; {
	case q.tools.none:
		return true
	case q.tools.needsState:
		return !hasState
	default:
		return q.toolsAsText && !hasState && !t.offersTools()
	}
}

func isSameState(a, b *event.ProviderState) bool {
	return a == b || a != nil && b != nil && a.ProviderID == b.ProviderID && a.Model == b.Model && a.BaseURL == b.BaseURL &&
		bytes.Equal(a.Data, b.Data)
}
