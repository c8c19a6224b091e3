package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/tracing"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

func TestATraceIsLinkedOverAFork(t *testing.T) {
	t.Parallel()
	w := newTraced(t, llmtest.Answer("One"), llmtest.Answer("Two"))
	w.worker()
	c, fork := w.open("origin"), w.open("fork")
	var at string
	w.in("origin", func() {
		said := w.say(c, "1")
		at = said[len(said)-1].ID
	})
	w.in("fork", func() { require.NoError(t, c.Fork(w.ctx, at, fork.Name())) })
	w.in("turn", func() { w.say(fork, "2") })
	require.Equal(t, story(`
		turn
		- UpdateWithStartWorkflow:append
		- - HandleUpdate:append
		- - StartActivity:Generate
		- - - RunActivity:Generate [forks StartWorkflow:Context in fork]
		- - - - chat scripted
	`), w.tree("turn"))
	w.replay(fork, "")
}

func TestATraceContinuesWithItsRun(t *testing.T) {
	t.Parallel()
	p := newProbe(t, echoed)
	w := newTraced(t, llmtest.Calls(p.call("probe", "a")), llmtest.Answer("Done."))
	w.worker(shortRuns)
	c := w.open("continued")
	w.send(c, event.New(event.SetTools{Tools: event.ToolList{{Pattern: "*"}}, Approve: event.ApprovalRules{{Tool: "probe*"}}}))
	var turn *turn
	w.in("turn", func() {
		turn = w.ask(c, "Look")
		turn.until(isTag(event.TagApprovalRequested))
	})
	w.continueAsNew(c)
	w.send(c, event.New(event.ApprovalDecided{Decision: event.Approve}))
	require.Equal(t, event.TagLLMRequestCompleted, turn.rest().Tag())
	require.Regexp(t, `(?m)^- - - RunActivity:Generate outcome=completed$`, w.tree("turn", tracing.Outcome))
	require.NotContains(t, w.tree("turn"), "error")
	for _, run := range w.runs(c) {
		w.replayRun(c, run, "")
	}
}
