package llm

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"

	"github.com/sashabaranov/go-openai"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/schema"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

const defaultSchemaName = "answer" // OpenAI requires a name

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

// prompt appends the repair. If the provider does not support the format json_schema, it also adds the
// schema to the system message.
func (t *Target) prompt(messages []reducer.Message) []reducer.Message {
	messages = t.withSchema(messages)
	if t.Repair == nil {
		return messages
	}
	return append(slices.Clip(messages),
		reducer.Message{Role: reducer.RoleAssistant, Content: t.Repair.Answer},
		reducer.Message{Role: reducer.RoleUser, Content: "Your answer is invalid: " + t.Repair.Problem +
			"\nAnswer again. Write valid JSON and nothing else: no explanation and no code fence."})
}

func (t *Target) withSchema(messages []reducer.Message) []reducer.Message {
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

// formatCheck returns why a text does not match the response format; nil if it does.
type formatCheck func(text string) error

// Check validates the response format and the tools without sending a request. Errors of the
// format are of [KindConfiguration], those of the tools of [KindBadRequest].
func (t *Target) Check() error {
	if failure := t.checkTools(); failure != nil {
		return failure
	}
	if _, failure := t.formatCheck(); failure != nil {
		return failure
	}
	return nil
}

// formatCheck returns a nil check if every text is valid.
func (t *Target) formatCheck() (formatCheck, *Error) {
	check, err := schema.OfFormat(t.settings().ResponseFormat)
	if err != nil {
		return nil, t.schemaError(err)
	}
	return check, nil
}

func (t *Target) check(result *Result, check formatCheck) *Error {
	if check == nil {
		return nil
	}
	err := check(result.Text)
	if err == nil {
		return nil
	}
	finishReason := openai.FinishReason(result.FinishReason)
	result.FinishReason = ""
	if errors.As(err, new(*schema.Fault)) {
		return t.schemaError(err)
	}
	failure := &Error{ProviderID: t.ProviderID, Kind: KindInvalidAnswer, Message: t.clean(err.Error(), maxMessage)}
	switch finishReason {
	// A repair would be cut short, too.
	case openai.FinishReasonLength:
		failure.Message = "the answer reached the maximum length before its JSON was complete (raise maxTokens, or ask for less): " + failure.Message
	case openai.FinishReasonContentFilter:
		failure.Message = "the provider's content filter cut the answer off before its JSON was complete (change the message): " + failure.Message
	default:
		failure.Problem = failure.Message
	}
	return failure
}

func (t *Target) schemaError(err error) *Error {
	return &Error{ProviderID: t.ProviderID, Kind: KindConfiguration,
		Message: t.clean("the schema of the response format is invalid: "+err.Error(), maxMessage)}
}
