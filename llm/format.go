package llm

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// defaultSchemaName is the name of a schema without one. OpenAI requires a name.
const defaultSchemaName = "answer"

// responseFormat returns the parameter for a response format.
func (t *Target) responseFormat(f event.ResponseFormat) any {
	if f.Type != event.FormatJSONSchema {
		return map[string]any{"type": f.Type}
	}
	if t.quirks.schemaAsText {
		return map[string]any{"type": event.FormatJSONObject}
	}
	return map[string]any{"type": f.Type, "json_schema": map[string]any{
		"name": cmp.Or(f.Name, defaultSchemaName), "schema": json.RawMessage(f.Schema), "strict": f.Strict,
	}}
}

// withFormat returns the messages of a request. For a provider without JSON Schema, the system
// message contains the schema.
func (t *Target) withFormat(messages []reducer.Message) []reducer.Message {
	f := t.settings().ResponseFormat
	if f == nil || f.Type != event.FormatJSONSchema || !t.quirks.schemaAsText {
		return messages
	}
	text := "Answer with JSON that matches this JSON Schema, and with nothing else:\n" + string(f.Schema)
	if len(messages) > 0 && messages[0].Role == reducer.RoleSystem {
		messages = slices.Clone(messages)
		messages[0].Content += "\n\n" + text
		return messages
	}
	return slices.Insert(slices.Clone(messages), 0, reducer.Message{Role: reducer.RoleSystem, Content: text})
}
