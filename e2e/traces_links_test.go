package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/tracing"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/wire"
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
	gate := llmtest.NewGate()
	w := newTraced(t, llmtest.Answer("Once", " upon a time").HoldAfter(1, gate))
	w.worker(shortRuns)
	c := w.open("continued")
	w.send(c, event.New(event.SetDeliveryPolicy{Policy: event.PolicyQueue}), event.New(event.SetTimeout{TimeoutMs: 600_000}))
	var turn *turn
	w.in("turn", func() {
		turn = w.ask(c, "Tell me a story")
		turn.underWay()
	})
	for len(w.runs(c)) < 2 {
		for range 100 {
			err := w.temporal.SignalWorkflow(w.ctx, wire.WorkflowID(c.Name()), "", wire.SignalEvent, note("", "x"))
			require.True(t, err == nil || isDelayed(err), "%v", err)
		}
	}
	gate.Open()
	turn.rest()
	require.Regexp(t, `(?m)^- - - RunActivity:Generate outcome=completed \[continues RunActivity:Generate in turn\]$`, w.tree("turn", tracing.Outcome))
	require.NotContains(t, w.tree("turn"), "error")
	for _, run := range w.runs(c) {
		w.replayRun(c, run, "")
	}
}
