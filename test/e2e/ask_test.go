package e2e

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

func (t *turn) outcome() error {
	for {
		e, err, ok := t.next()
		if !ok || err != nil {
			return err
		}
		t.seen = append(t.seen, e)
	}
}

func TestAskFailsWhenItsRunIsTerminatedDuringTheAnswer(t *testing.T) {
	t.Parallel()
	gate := llmtest.NewGate()
	defer gate.Open()
	w := newWorld(t, llmtest.Answer("Never", " said").HoldAfter(1, gate))
	w.worker()
	c := w.open("unanswered")
	turn := w.ask(c, "Hello")
	turn.until(func(e event.Event) bool { return e.Tag() == event.TagTextDelta })
	require.NoError(t, w.temporal.TerminateWorkflow(w.ctx, wire.WorkflowID(c.Name()), "", "by hand"))
	require.ErrorIs(t, turn.outcome(), client.ErrUnanswered)
}

func TestAskFailsWhenItsRunIsTerminatedBeforeRecording(t *testing.T) {
	t.Parallel()
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
	require.ErrorIs(t, <-done, client.ErrLost)
}

func TestAskReturnsWhenTheRunIsReset(t *testing.T) {
	t.Parallel()
	const (
		message   = iota // reset to after the message and the start of its request
		turn             // reset to after the previous turn
		beginning        // reset to after the first event of the session
		first            // reset to the first workflow task
	)
	for name, test := range map[string]struct {
		session  int
		to       int
		excludes bool  // later input
		want     error // nil: answered
	}{
		"after the message":                                             {2, message, false, nil},
		"after the message, excluding later input":                      {2, message, true, nil},
		"after the previous turn":                                       {2, turn, false, nil},
		"after the previous turn, excluding later input":                {2, turn, true, client.ErrLost},
		"after the first event":                                         {2, beginning, false, nil},
		"after the first event, excluding later input":                  {2, beginning, true, client.ErrLost},
		"to the first task":                                             {2, first, false, nil},
		"to the first task, excluding later input":                      {2, first, true, client.ErrLost},
		"to the first task of the first session":                        {1, first, false, nil},
		"to the first task of the first session, excluding later input": {1, first, true, client.ErrLost},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gate := llmtest.NewGate()
			t.Cleanup(gate.Open)
			var isHeld atomic.Bool
			w := newWorld(t, llmtest.Func(func(r llmtest.Request) llmtest.Step {
				if r.LastUser() == "Listen" && isHeld.CompareAndSwap(false, true) {
					return llmtest.Answer("I", " listen").HoldAfter(1, gate)
				}
				return echo(r)
			}))
			w.worker()
			c := w.open("asked")
			began := 1
			if test.session == 2 {
				w.say(c, "m0")
				w.close(c, "for today")
				began = len(w.from(c, "")) + 1
			}
			w.say(c, "m1")
			before := len(w.from(c, ""))
			asked := w.ask(c, "Listen")
			asked.underWay()
			if test.to == message {
				w.send(c, note("", "later")) // a workflow task after that of the message
			}
			counter := map[int]int{message: before + 2, turn: before, beginning: began, first: began - 1}[test.to]
			var excluded []enumspb.ResetReapplyExcludeType
			if test.excludes {
				excluded = allInput
			}
			w.resetWithout(c, w.runs(c)[0], counter, excluded...)
			err := asked.outcome()
			if test.want != nil {
				require.ErrorIs(t, err, test.want)
				return
			}
			require.NoError(t, err)
			require.Equal(t, event.TagLLMRequestCompleted, asked.seen[len(asked.seen)-1].Tag())
			require.Contains(t, texts(asked.seen), "You said: Listen")
		})
	}
}
