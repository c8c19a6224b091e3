package e2e

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

func (w *world) temporalCommand(args ...string) string {
	w.t.Helper()
	args = append(args, "--address", server.Address(), "--color", "never")
	out, err := exec.CommandContext(w.ctx, command, args...).CombinedOutput()
	require.NoError(w.t, err, "temporal %s\n%s", strings.Join(args, " "), out)
	return string(out)
}

func (w *world) await(c *client.Context, found func(event.Event) bool) event.Event {
	w.t.Helper()
	for e, err := range c.Follow(w.ctx, client.FollowOptions{}) {
		require.NoError(w.t, err)
		if found(e) {
			return e
		}
	}
	w.t.Fatal("the log ended before the awaited event")
	return event.Event{}
}

func TestTheTemporalCLIAloneOperatesAContext(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llmtest.Answer("Hello", " yourself"), llmtest.Answer("Again"))
	w.worker()
	c := w.open("plain")
	id := wire.WorkflowID(c.Name())
	w.temporalCommand("workflow", "start", "--workflow-id", id, "--type", "Context", "--task-queue", w.queue)
	for range 2 {
		out := w.temporalCommand("workflow", "update", "execute", "--workflow-id", id, "--name", "append",
			"--update-id", "instructions", "--input", `{"_tag":"SystemPrompt","content":"Be kind."}`)
		require.Contains(t, out, event.FormatID(c.Name(), 2), "a repeated update has the same result")
	}
	w.temporalCommand("workflow", "signal", "--workflow-id", id, "--name", "event",
		"--input", `{"_tag":"UserMessageEvent","content":"Hello"}`)
	w.await(c, isTag(event.TagLLMRequestCompleted))

	var answer struct {
		QueryResult []json.RawMessage `json:"queryResult"`
	}
	out := w.temporalCommand("workflow", "query", "--workflow-id", id, "--type", "state", "--output", "json")
	require.NoError(t, json.Unmarshal([]byte(out), &answer), out)
	var state wire.State
	require.NoError(t, json.Unmarshal(answer.QueryResult[0], &state))
	require.Equal(t, wire.StatusIdle, state.Status)
	require.Equal(t, "Hello yourself", state.Messages[2].Content)

	w.temporalCommand("workflow", "signal", "--workflow-id", id, "--name", "close")
	w.await(c, isTag(event.TagSessionEnded))
	require.NoError(t, w.temporal.GetWorkflow(w.ctx, id, "").Get(w.ctx, nil))
	w.temporalCommand("workflow", "signal-with-start", "--workflow-id", id, "--type", "Context", "--task-queue", w.queue,
		"--signal-name", "event", "--signal-input", `[{"_tag":"SystemPrompt","content":"Be brief."},{"_tag":"UserMessage","content":"Hello again"}]`)
	w.await(c, func(e event.Event) bool {
		b, ok := e.Body.(event.LLMRequestCompleted)
		return ok && event.RequestNumber(b.RequestID) == 2
	})
	require.Equal(t, story(`
		SessionStarted after 0
		SystemPrompt "Be kind."
		UserMessage "Hello"
		LLMRequestStarted 1 scripted attempt 1 through 3
		AssistantMessage "Hello yourself" through 3
		LLMRequestCompleted 1 stop
		SessionEnded closed
		SessionStarted after 7
		SystemPrompt "Be brief."
		UserMessage "Hello again"
		LLMRequestStarted 2 scripted attempt 1 through 10
		AssistantMessage "Again" through 10
		LLMRequestCompleted 2 stop
	`), w.log(c))
	require.Equal(t, []string{"system: Be brief.", "user: Hello", "assistant: Hello yourself", "user: Hello again"},
		contents(w.model.Requests()[1]), "the next session continues the conversation")
	w.replay(c, "plain-signals")
}
