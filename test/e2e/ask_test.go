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
	signal, update := enumspb.RESET_REAPPLY_EXCLUDE_TYPE_SIGNAL, enumspb.RESET_REAPPLY_EXCLUDE_TYPE_UPDATE
	for name, test := range map[string]struct {
		to       int
		excluded []enumspb.ResetReapplyExcludeType
		want     error // nil: answered
	}{
		"after the message":                              {to: message},
		"after the message, excluding later input":       {message, []enumspb.ResetReapplyExcludeType{signal, update}, nil},
		"after the previous turn":                        {to: turn},
		"after the previous turn, excluding later input": {turn, []enumspb.ResetReapplyExcludeType{signal, update}, client.ErrLost},
		"after the first event":                          {to: beginning},
		"after the first event, excluding later input":   {beginning, []enumspb.ResetReapplyExcludeType{signal, update}, client.ErrLost},
		"to the first task":                              {to: first},
		"to the first task, excluding later input":       {first, []enumspb.ResetReapplyExcludeType{signal, update}, client.ErrLost},
	} {
		for which, isSecond := range map[string]bool{"in the first session": false, "in the second session": true} {
			t.Run(name+" "+which, func(t *testing.T) {
				t.Parallel()
				gate := llmtest.NewGate()
				t.Cleanup(gate.Open)
				var isHeld atomic.Bool
				w := newWorldOn(t, environment{timeout: faultTimeout}, llmtest.Func(func(r llmtest.Request) llmtest.Step {
					if r.LastUser() == "Listen" && isHeld.CompareAndSwap(false, true) {
						return llmtest.Answer("I", " listen").HoldAfter(1, gate)
					}
					return echo(r)
				}))
				w.worker()
				c := w.open("asked")
				began := 1
				if isSecond {
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
				w.resetWithout(c, w.runs(c)[0], counter, test.excluded...)
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
}
