package llm

import (
	"encoding/json"
	"slices"

	"github.com/sashabaranov/go-openai"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// returned is the state to send with an answer. Its exported fields are those of the message.
type returned struct {
	Details          json.RawMessage `json:"reasoning_details,omitempty"`
	ReasoningContent json.RawMessage `json:"reasoning_content,omitempty"`
	Reasoning        json.RawMessage `json:"reasoning,omitempty"`
	ReasoningText    json.RawMessage `json:"reasoning_text,omitempty"`
	Extra            json.RawMessage `json:"extra_content,omitempty"`

	calls    []json.RawMessage // extra_content of the tool calls; nil: none
	thinking []json.RawMessage // content parts before the text
}

// plainReasoning are the fields with reasoning as a text, which go back under the same name.
var plainReasoning = []string{"reasoning_content", "reasoning", "reasoning_text"}

// stateFields are the fields of messages with provider state.
var stateFields = append([]string{"reasoning_details", "extra_content"}, plainReasoning...)

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

func (r returned) isEmpty() bool {
	return r.Details == nil && r.ReasoningContent == nil && r.Reasoning == nil && r.ReasoningText == nil && r.Extra == nil && r.thinking == nil &&
		!slices.ContainsFunc(r.calls, func(extra json.RawMessage) bool { return extra != nil })
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

func (t *Target) origin() origin { return origin{t.ProviderID, t.BaseURL, t.Model} }

// stateOf returns the state of an answer of the target; nil for none.
func (t *Target) stateOf(m *reducer.Message) *event.ProviderState {
	if s := m.ProviderState; s != nil && !m.Partial && (origin{s.ProviderID, s.BaseURL, s.Model}) == t.origin() {
		return s
	}
	return nil
}

// returned uses only known fields: a client may have supplied the state.
func (t *Target) returned(m *reducer.Message) (r returned) {
	s := t.stateOf(m)
	if s == nil || s.Data == nil {
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
	r.Details = t.ifBegins("reasoning_details", data.Details, '[')
	r.ReasoningContent = t.ifBegins("reasoning_content", data.ReasoningContent, '"')
	r.Reasoning = t.ifBegins("reasoning", data.Reasoning, '"')
	r.ReasoningText = t.ifBegins("reasoning_text", data.ReasoningText, '"')
	r.Extra = t.ifBegins("extra_content", data.Extra, '{')
	r.thinking = thinkingParts(valueOf(data.Thinking))
	var calls []json.RawMessage
	if json.Unmarshal(data.Calls, &calls) == nil { // any other value is no state
		for i := range m.ToolCalls {
			var extra json.RawMessage
			if i < len(calls) {
				extra = t.ifBegins("extra_content", calls[i], '{')
			}
			r.calls = append(r.calls, extra)
		}
	}
	return r
}

func (t *Target) sendsState(messages []reducer.Message) bool {
	return slices.ContainsFunc(messages, func(m reducer.Message) bool { return !t.returned(&m).isEmpty() })
}

// ifBegins returns nil for a value of another type, and for a field that the server refuses.
func (t *Target) ifBegins(field string, value json.RawMessage, begin byte) json.RawMessage {
	if len(value) == 0 || value[0] != begin || t.lessons.has("-"+field) {
		return nil
	}
	return value
}

func thinkingParts(parts value) (raw []json.RawMessage) {
	for part := range parts.elements() {
		if part.field("type").text() != "thinking" {
			return nil
		}
		raw = append(raw, json.RawMessage(part))
	}
	return raw
}

// areCallsText looks only at the first of parallel calls: Gemini signs only that one.
func (t *Target) areCallsText(r returned) bool {
	hasState := t.quirks.needsReasoning && r.ReasoningContent != nil || r.ofCall(0) != nil
	switch q := t.quirks; {
	case q.tools.none:
		return true
	case q.tools.needsState:
		return !hasState
	default:
		return q.toolsAsText && !hasState && !t.offersTools()
	}
}
