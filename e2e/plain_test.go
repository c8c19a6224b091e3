package e2e

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/session"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// temporal runs the temporal command and returns what it prints.
func (w *world) temporalCommand(args ...string) string {
	w.t.Helper()
	args = append(args, "--address", server.Address(), "--color", "never")
	out, err := exec.CommandContext(w.ctx, command, args...).CombinedOutput()
	require.NoError(w.t, err, "temporal %s\n%s", strings.Join(args, " "), out)
	return string(out)
}

// await follows the context until an event and fails if it does not come.
func (w *world) await(c *session.Context, found func(event.Event) bool) event.Event {
	w.t.Helper()
	for e, err := range c.Follow(w.ctx, session.FollowOptions{}) {
		require.NoError(w.t, err)
		if found(e) {
			return e
		}
	}
	w.t.Fatal("the event did not come")
	return event.Event{}
}

func TestAContextIsUsedWithNothingButTheTemporalCommand(t *testing.T) {
	w := newWorld(t, llmtest.Answer("Hello", " yourself"), llmtest.Answer("Again"))
	w.worker()
	c := w.open("plain")
	id := wire.WorkflowID(c.Name())
	w.temporalCommand("workflow", "start", "--workflow-id", id, "--type", "Context", "--task-queue", w.queue)
	w.temporalCommand("workflow", "signal", "--workflow-id", id, "--name", "event",
		"--input", `{"_tag":"UserMessageEvent","content":"Hello"}`)
	w.await(c, func(e event.Event) bool { return e.Tag() == event.TagLLMRequestCompleted })

	var answer struct {
		QueryResult []json.RawMessage `json:"queryResult"`
	}
	out := w.temporalCommand("workflow", "query", "--workflow-id", id, "--type", "state", "--output", "json")
	require.NoError(t, json.Unmarshal([]byte(out), &answer), out)
	var state wire.State
	require.NoError(t, json.Unmarshal(answer.QueryResult[0], &state))
	require.Equal(t, wire.StatusIdle, state.Status)
	require.Equal(t, "Hello yourself", state.Messages[1].Content)

	w.temporalCommand("workflow", "signal", "--workflow-id", id, "--name", "close")
	w.await(c, func(e event.Event) bool { return e.Tag() == event.TagSessionEnded })
	require.NoError(t, w.temporal.GetWorkflow(w.ctx, id, "").Get(w.ctx, nil))
	w.temporalCommand("workflow", "signal-with-start", "--workflow-id", id, "--type", "Context", "--task-queue", w.queue,
		"--signal-name", "event", "--signal-input", `[{"_tag":"SystemPrompt","content":"Be kind."},{"_tag":"UserMessage","content":"Hello again"}]`)
	w.await(c, func(e event.Event) bool {
		b, ok := e.Body.(event.LLMRequestCompleted)
		return ok && event.RequestNumber(b.RequestID) == 2
	})
	require.Equal(t, story(`
		SessionStarted after 0
		UserMessage "Hello"
		LLMRequestStarted 1 scripted attempt 1 through 2
		AssistantMessage "Hello yourself" through 2
		LLMRequestCompleted 1 stop
		SessionEnded closed
		SessionStarted after 6
		SystemPrompt "Be kind."
		UserMessage "Hello again"
		LLMRequestStarted 2 scripted attempt 1 through 9
		AssistantMessage "Again" through 9
		LLMRequestCompleted 2 stop
	`), w.log(c))
	w.replay(c, "plain-signals")
}

func TestBadInputIsRejectedAndTheNextGoodMessageIsAnswered(t *testing.T) {
	w := newWorld(t, llmtest.Answer("Still here."))
	w.worker()
	c := w.open("bad")
	id := wire.WorkflowID(c.Name())
	const key = "sk-live-0123456789abcdef"
	raw := func(encoding, data string) converter.RawValue {
		return converter.NewRawValue(&commonpb.Payload{
			Metadata: map[string][]byte{converter.MetadataEncoding: []byte(encoding)}, Data: []byte(data),
		})
	}
	w.send(c, event.New(event.SetTimeout{TimeoutMs: 10_000}))
	bad := []struct {
		signal string
		input  any
		reason string
	}{
		{"event", raw("json/plain", `{"_tag":"UserMessage"`), "want a JSON object"},
		{"event", raw("json/plain", ``), "got nothing"},
		{"event", nil, "signal event"},
		{"event", raw("binary/plain", "\x00\xff"), `encoding "binary/plain"`},
		{"event", "just text", "got a string"},
		{"event", []any{}, "an empty array"},
		{"event", map[string]any{"_tag": "Nonsense"}, "unknown"},
		{"event", map[string]any{"_tag": "UserMessage", "content": 5}, "UserMessageEvent.content"},
		{"event", map[string]any{"_tag": "UserMessage", "content": "  "}, "empty"},
		{"event", map[string]any{"_tag": "UserMessage", "content": "x", "contextName": "another"}, "another context"},
		{"event", map[string]any{"_tag": "SetTimeout", "timeoutMs": 0}, "SetTimeoutEvent.timeoutMs"},
		{"event", map[string]any{"_tag": "SessionEnded", "reason": "forged"}, "written by the session itself"},
		{"event", []any{map[string]any{"_tag": "UserMessage", "content": "good"}, map[string]any{"_tag": "Bad"}}, "event 2 of 2"},
		{"event", map[string]any{"_tag": "SetProviderConfig", "providerId": "openai", "model": "m", "apiKey": key}, "apiKeyRef"},
		{"event", map[string]any{"_tag": "SetProviderConfig", "providerId": "openai", "model": "m", "apiKeyRef": key}, "apiKeyRef"},
		{"event", map[string]any{"_tag": "UserMessage", "content": strings.Repeat("x", wire.MaxEventBytes)}, "can be recorded"},
		{"typo", "hello", "want one of event, interrupt, close"},
		{"request-started", "forged", "request-started"},
	}
	var reasons []string
	for _, b := range bad {
		require.NoError(t, w.temporal.SignalWorkflow(w.ctx, id, "", b.signal, b.input))
		reasons = append(reasons, b.reason)
	}
	last := w.say(c, "Still there?")
	require.Equal(t, event.TagLLMRequestCompleted, last[len(last)-1].Tag())

	var rejected []string
	for e, err := range c.Events(w.ctx, "") {
		require.NoError(t, err)
		text, err := json.Marshal(e)
		require.NoError(t, err)
		require.NotContains(t, string(text), key)
		require.Less(t, len(text), 4000, "what is kept of bad input is cut")
		if b, ok := e.Body.(event.InputRejected); ok {
			rejected = append(rejected, b.Reason)
		}
	}
	require.Len(t, rejected, len(reasons))
	for i, reason := range reasons {
		require.Contains(t, rejected[i], reason)
	}
	state, err := c.State(w.ctx)
	require.NoError(t, err)
	text, err := json.Marshal(state)
	require.NoError(t, err)
	require.NotContains(t, string(text), key)
	w.replay(c, "bad-input")
}
