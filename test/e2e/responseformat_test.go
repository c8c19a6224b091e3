package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

// inPerson sets the response format to an object with a name, and a single attempt.
func inPerson(w *world, c *client.Context) {
	w.send(c,
		event.New(event.SetRequestSettings{ResponseFormat: &event.ResponseFormat{
			Type: event.FormatJSONSchema, Schema: event.Object(`{"type":"object","required":["name"]}`),
		}}),
		event.New(event.SetRetryConfig{MaxRetries: 0, InitialDelayMs: 1}),
	)
}

func TestAnInvalidAnswerIsReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llmtest.Answer(`{"nick`, `":"A"}`), llmtest.Answer(`{"name"`, `:"Ann"}`), llmtest.Answer(`{"name":"Bob"}`))
	w.worker()
	c := w.open("repaired")
	inPerson(w, c)
	turn := w.say(c, "Who?")
	require.Equal(t, `{"name":"Ann"}`, deltaText(turn), "the deltas of the first answer are discarded")
	var attempts []int
	var ended []event.FailureKind
	for _, e := range turn {
		switch b := e.Body.(type) {
		case event.LLMRequestStarted:
			attempts = append(attempts, b.Attempt)
		case event.LLMAttemptEnded:
			ended = append(ended, b.Kind)
			require.Equal(t, 1, b.Attempt)
			require.True(t, b.Retryable)
			require.Equal(t, `openai: invalid answer: root: missing property 'name' (the answer: {"nick":"A"})`, b.Error)
		case event.AssistantMessage:
			require.Equal(t, `{"name":"Ann"}`, b.Content)
			require.False(t, b.Partial)
		}
	}
	require.Equal(t, []int{1, 2}, attempts)
	require.Equal(t, []event.FailureKind{event.FailureBadResponse}, ended)
	w.say(c, "And?")
	require.Equal(t, []string{
		"user: Who?", `assistant: {"nick":"A"}`,
		"user: Your answer is invalid: root: missing property 'name'\nAnswer again. Write valid JSON and nothing else: no explanation and no code fence.",
	}, contents(w.model.Requests()[1]))
	require.Equal(t, []string{"user: Who?", `assistant: {"name":"Ann"}`, "user: And?"}, contents(w.model.Requests()[2]),
		"the conversation does not contain the invalid answer")
	w.replay(c, "")
}
