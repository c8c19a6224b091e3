package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
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

func TestAnAnswerThatIsInvalidTwiceFails(t *testing.T) {
	w := newWorld(t, llmtest.Answer(`{}`), llmtest.Answer(`{"nick":"A"}`))
	w.worker()
	c := w.open("invalid")
	inPerson(w, c)
	turn := w.say(c, "Who?")
	failed, ok := turn[len(turn)-1].Body.(event.LLMRequestFailed)
	require.True(t, ok)
	require.Equal(t, `openai: invalid answer: root: missing property 'name' (the answer: {"nick":"A"})`, failed.Error)
	require.Equal(t, event.FailureBadResponse, failed.Kind)
	require.False(t, failed.Retryable)
	w.replay(c, "")
}

func TestAKilledWorkersRepairIsRepeatedByAnother_Alone(t *testing.T) {
	needsTimelyHeartbeats(t)
	w := newWorldOn(t, environment{timeout: faultTimeout},
		llmtest.Answer(`{"nick":"A"}`), llmtest.Answer(`{"name"`, `:"Ann"}`).HoldAfter(0, llmtest.NewGate()), llmtest.Answer(`{"name":"Bob"}`))
	first := w.process(contexts.Both)
	c := w.open("killed-repair")
	inPerson(w, c)
	turn := w.ask(c, "Who?")
	_, err := w.model.Request(w.ctx, 2)
	require.NoError(t, err)
	turn.until(func(e event.Event) bool {
		started, ok := e.Body.(event.LLMRequestStarted)
		return ok && started.Attempt == 2
	})
	first.kill()
	w.process(contexts.Both)
	require.Equal(t, event.TagLLMRequestCompleted, turn.rest().Tag())
	requests := w.model.Requests()
	require.Len(t, requests, 3)
	require.Equal(t, []string{
		"user: Who?", `assistant: {"nick":"A"}`,
		"user: Your answer is invalid: root: missing property 'name'\nAnswer again. Write valid JSON and nothing else: no explanation and no code fence.",
	}, contents(requests[1]))
	require.Equal(t, contents(requests[1]), contents(requests[2]), "the other worker repairs the same answer")
	require.Contains(t, w.log(c), `AssistantMessage "{\"name\":\"Bob\"}"`)
	require.Equal(t, 3, w.usageOf(c).Attempts)
	w.replay(c, "")
}

// A client of this project would reject the schema.
func TestARequestWithAnInvalidSchemaIsNotSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llmtest.Answer("Hi"))
	w.worker()
	c := w.open("invalid-schema")
	w.say(c, "Hello")
	before := w.usageOf(c)
	require.NoError(t, w.temporal.SignalWorkflow(w.ctx, wire.WorkflowID(c.Name()), "", wire.SignalEvent, map[string]any{
		"_tag": "UserMessage", "content": "Who?", "clientEventId": "who",
		"settings": map[string]any{"responseFormat": map[string]any{"type": "json_schema", "schema": map[string]any{"type": "strin"}}},
	}))
	var failed event.LLMRequestFailed
	for e, err := range c.Follow(w.ctx, client.FollowOptions{}) {
		require.NoError(t, err)
		if body, ok := e.Body.(event.LLMRequestFailed); ok {
			failed = body
			break
		}
	}
	require.Equal(t, event.FailureConfiguration, failed.Kind)
	require.Contains(t, failed.Error, "the schema of the response format is invalid: /type: ")
	require.Equal(t, event.Usage{}, failed.Usage)
	before.Attempts++
	require.Equal(t, before, w.usageOf(c))
	require.Len(t, w.model.Requests(), 1)
	w.replay(c, "")
}
