package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/session"
	"github.com/seed-9ed7edd4/chronicle/wire"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

// echo answers each message by its words.
func echo(r llmtest.Request) llmtest.Step { return llmtest.Answer("You said: ", r.LastUser()) }

func shortRuns(o *contexts.Options) { o.ContinueAfter = 60 }

// runs are the runs of a context, newest first.
func (w *world) runs(c *session.Context) (runs []string) {
	w.t.Helper()
	d, err := w.temporal.DescribeWorkflowExecution(w.ctx, wire.WorkflowID(c.Name()), "")
	require.NoError(w.t, err)
	for run := d.GetWorkflowExecutionInfo().GetExecution().GetRunId(); run != ""; {
		runs = append(runs, run)
		h, err := w.temporal.GetWorkflowHistory(w.ctx, wire.WorkflowID(c.Name()), run, false, 0).Next()
		require.NoError(w.t, err)
		run = h.GetWorkflowExecutionStartedEventAttributes().GetContinuedExecutionRunId()
	}
	return runs
}

func TestAConversationGoesOnOverTheEndsOfRuns(t *testing.T) {
	w := newWorld(t, llmtest.Func(echo))
	w.worker(shortRuns)
	c := w.open("long")
	const turns = 40
	for i := range turns {
		text := fmt.Sprintf("Message %d", i)
		said := w.say(c, text)
		require.Equal(t, event.TagLLMRequestCompleted, said[len(said)-1].Tag())
	}
	require.Greater(t, len(w.runs(c)), 5)
	w.log(c) // dense ids, an unbroken chain
	state, err := c.State(w.ctx)
	require.NoError(t, err)
	require.Equal(t, turns, state.Turns)
	require.Equal(t, 2*turns, state.MessageCount)
	for i, m := range state.Messages {
		want := fmt.Sprintf("Message %d", i/2)
		if i%2 == 1 {
			want = "You said: " + want
		}
		require.Equal(t, want, m.Content)
	}
	require.Equal(t, 1, countOf(w, c, event.TagSessionStarted), "it is one session")
}

// countOf is how many events of a tag the log has.
func countOf(w *world, c *session.Context, tag event.Tag) (n int) {
	w.t.Helper()
	for e, err := range c.Events(w.ctx, "") {
		require.NoError(w.t, err)
		if e.Tag() == tag {
			n++
		}
	}
	return n
}
