package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

// The run of an idle context completes, and the next input opens the next session. A call that waits keeps a session open.
func TestAnIdleSessionEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llmtest.Calls(llmtest.Call{ID: "call_a", Name: askUser.Name, Arguments: `{"question":"Which?"}`}),
		llmtest.Answer("Hi."), llmtest.Answer("Welcome back."), llmtest.Answer("Blue."))
	w.worker(func(o *contexts.Options) { o.IdleClose = 2 * time.Second })
	waits := w.open("waits")
	w.send(waits, event.New(event.SetTools{Tools: event.ToolList{askUser}}), event.New(event.UserMessage{Content: "Paint it"}))
	w.await(waits, isTag(event.TagLLMAttemptEnded))

	c := w.open("idle")
	require.Equal(t, "Hi.", deltaText(w.say(c, "Hello")))
	w.awaitEnd(c)
	require.Equal(t, "Welcome back.", deltaText(w.say(c, "Again")))
	w.awaitEnd(c)
	require.Equal(t, story(`
		SessionStarted after 0
		UserMessage "Hello"
		LLMRequestStarted 1 scripted attempt 1 through 2
		AssistantMessage "Hi." through 2
		LLMRequestCompleted 1 stop
		SessionEnded idle
		SessionStarted after 6
		UserMessage "Again"
		LLMRequestStarted 2 scripted attempt 1 through 8
		AssistantMessage "Welcome back." through 8
		LLMRequestCompleted 2 stop
		SessionEnded idle
	`), w.log(c))
	w.replay(c, "idle")

	require.Zero(t, countOf(w, waits, event.TagSessionEnded))
	w.send(waits, event.New(event.ToolResult{ToolCallID: "call_a", Value: []byte(`"blue"`)}))
	w.await(waits, isTag(event.TagLLMRequestCompleted))
	w.replay(waits, "")
}

// awaitEnd waits until the newest run of a context has completed.
func (w *world) awaitEnd(c *client.Context) {
	w.t.Helper()
	require.NoError(w.t, w.temporal.GetWorkflow(w.ctx, wire.WorkflowID(c.Name()), "").Get(w.ctx, nil))
}
