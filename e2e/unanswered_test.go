package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/session"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// outcome goes to the end of a turn and returns its error.
func (t *turn) outcome() error {
	for {
		e, err, ok := t.next()
		if !ok || err != nil {
			return err
		}
		t.seen = append(t.seen, e)
	}
}

func TestAskEndsWithTheRunThatWasToAnswer(t *testing.T) {
	gate := llmtest.NewGate()
	defer gate.Open()
	w := newWorld(t, llmtest.Answer("Never", " said").HoldAfter(1, gate))
	w.worker()
	c := w.open("unanswered")
	turn := w.ask(c, "Hello")
	turn.until(func(e event.Event) bool { return e.Tag() == event.TagLLMRequestStarted })
	require.NoError(t, w.temporal.TerminateWorkflow(w.ctx, wire.WorkflowID(c.Name()), "", "by hand"))
	require.ErrorIs(t, turn.outcome(), session.ErrUnanswered)
}

func TestAskEndsWithTheRunThatWasToRecord(t *testing.T) {
	w := newWorld(t) // no worker
	c := w.open("unrecorded")
	done := make(chan error, 1)
	go func() {
		var last error
		for _, err := range c.Ask(w.ctx, event.New(event.UserMessage{Content: "Hello"})) {
			last = err
		}
		done <- last
	}()
	id := wire.WorkflowID(c.Name())
	const started, scheduled, signaled = 1, 1, 1
	for {
		d, err := w.temporal.DescribeWorkflowExecution(w.ctx, id, "")
		if err == nil && d.GetWorkflowExecutionInfo().GetHistoryLength() >= started+scheduled+signaled {
			break
		}
		require.NoError(t, w.ctx.Err())
	}
	require.NoError(t, w.temporal.TerminateWorkflow(w.ctx, id, "", "by hand"))
	require.ErrorIs(t, <-done, session.ErrLost)
}
