package llm_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// person is a response format: an object with a name.
var person = &event.ResponseFormat{Type: event.FormatJSONSchema, Schema: event.Object(`{"type":"object","required":["name"]}`)}

func TestAnswersHaveTheResponseFormat(t *testing.T) {
	object := &event.ResponseFormat{Type: event.FormatJSONObject}
	for name, test := range map[string]struct {
		format  *event.ResponseFormat
		step    llmtest.Step
		message string // of the error
		problem string
	}{
		"text":               {format: &event.ResponseFormat{Type: event.FormatText}, step: llmtest.Answer("Hi")},
		"a valid answer":     {format: person, step: llmtest.Answer(`{"na`, `me":"Ann"}`)},
		"another object":     {format: person, step: llmtest.Answer(`{}`), message: "root: missing property 'name'", problem: "root: missing property 'name'"},
		"text for an object": {format: person, step: llmtest.Answer("Ann"), message: "not JSON: invalid character 'A' looking for beginning of value", problem: "not JSON: invalid character 'A' looking for beginning of value"},
		"no text":            {format: person, step: llmtest.Answer(), message: "not JSON: EOF", problem: "not JSON: EOF"},
		"any object":         {format: object, step: llmtest.Answer(`{}`)},
		"no object":          {format: object, step: llmtest.Answer(`[]`), message: "want a JSON object", problem: "want a JSON object"},
		"a valid answer with another finish reason": {format: person, step: llmtest.Answer(`{"name":"Ann"}`).Finish("length")},
		"an answer that is too long": {format: person, step: llmtest.Answer(`{"name":"An`).Finish("length"),
			message: `the answer reached the maximum length before its JSON was complete (raise maxTokens, or ask for less): not JSON: unexpected EOF`},
		"an answer that a content filter cuts off": {format: person, step: llmtest.Answer(`{"name":"An`).Finish("content_filter"),
			message: `the provider's content filter cut the answer off before its JSON was complete (change the message): not JSON: unexpected EOF`},
		"a refusal": {format: person, step: llmtest.Raw("text/event-stream", llmtest.Chunk(`{"refusal":"No"}`, ""), llmtest.Chunk(`{}`, "stop"))},
	} {
		t.Run(name, func(t *testing.T) {
			to := target(t, llmtest.Start(t, test.step))
			to.Settings.ResponseFormat = test.format
			result, err := to.Stream(within(t), hello, nil)
			if test.message == "" {
				require.NoError(t, err)
				require.NotEmpty(t, result.FinishReason)
				return
			}
			failed := requireKind(t, llm.KindInvalidAnswer, err)
			require.Equal(t, test.message, failed.Message)
			require.Equal(t, test.problem, failed.Problem)
			require.False(t, failed.Retryable(), "the same request")
			require.Empty(t, result.FinishReason)
		})
	}
}

func TestASchemaThatNoAnswerCanBeValidatedWithIsAConfigurationError(t *testing.T) {
	to := target(t, llmtest.Start(t, llmtest.Answer(`{"a":1}`)))
	to.Settings.ResponseFormat = &event.ResponseFormat{Type: event.FormatJSONSchema, Schema: event.Object(`{"properties":{"a":{"$dynamicRef":"#/properties/a"}}}`)}
	result, err := to.Stream(within(t), hello, nil)
	failed := requireKind(t, llm.KindConfiguration, err)
	require.ErrorContains(t, failed, "the schema of the response format is invalid: a reference leads back to itself: /a: ")
	require.Empty(t, failed.Problem, "another answer would not help")
	require.Empty(t, result.FinishReason)
}

func TestSettingsAreCheckedWithoutARequest(t *testing.T) {
	to := target(t, llmtest.Start(t))
	require.NoError(t, to.Check())
	to.Settings.ResponseFormat = person
	require.NoError(t, to.Check())
	to.Settings.ResponseFormat = &event.ResponseFormat{Type: event.FormatJSONSchema, Schema: event.Object(`{"type":"strin"}`)}
	_, err := to.Stream(within(t), hello, nil)
	for _, err := range []error{to.Check(), err} {
		require.ErrorContains(t, requireKind(t, llm.KindConfiguration, err), "the schema of the response format is invalid: /type: ")
	}
}

func TestARepairFollowsTheConversation(t *testing.T) {
	model := llmtest.Start(t, llmtest.Answer(`{"name":"Ann"}`), llmtest.Answer(`{"name":"Ann"}`), llmtest.Answer(`{"name":"Bob"}`))
	to := target(t, model)
	to.Conversation, to.Settings.ResponseFormat = "demo", person
	to.Repair = &reducer.Repair{Answer: "Ann", Problem: "not JSON"}
	_, err := to.Stream(within(t), hello, nil)
	require.NoError(t, err)
	to.Repair = &reducer.Repair{Problem: "not JSON"}
	_, err = to.Stream(within(t), hello, nil)
	require.NoError(t, err)
	to.Repair = nil
	_, err = to.Stream(within(t), append(hello[:1:1], reducer.Message{Role: reducer.RoleAssistant, Content: "x"}, hello[0]), nil)
	require.NoError(t, err)
	var sent [][]string
	for _, request := range model.Requests() {
		var messages []string
		for _, m := range request.Messages {
			messages = append(messages, m.Role+": "+m.Content)
		}
		sent = append(sent, messages)
	}
	const again = "user: Your answer is invalid: not JSON\nAnswer again. Write valid JSON and nothing else: no explanation and no code fence."
	require.Equal(t, [][]string{
		{"user: Hello", "assistant: Ann", again},
		{"user: Hello", again},
		{"user: Hello", "assistant: x", "user: Hello"},
	}, sent)
}
