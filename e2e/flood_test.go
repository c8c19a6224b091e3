package e2e

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// TestPlainSignalsDoNoHarmWhileAWorkerRuns sends more by plain signals during one
// answer than the server lets a run have: 55 MB, or 10,500 signals.
func TestPlainSignalsDoNoHarmWhileAWorkerRuns(t *testing.T) {
	for name, flood := range map[string]struct{ signals, bytes, senders int }{
		"large":     {120, 460_000, 4},
		"just refs": {900, 62_000, 8},
		"many":      {10_500, 20, 16},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "just refs" {
				long(t)
			}
			gate := llmtest.NewGate()
			w := newWorldOn(t, surroundings{patience: largePatience},
				llmtest.Answer("I", " listen").HoldAfter(1, gate), llmtest.Answer("Done."))
			w.worker()
			c := w.open("flood")
			w.send(c, event.New(event.SetDeliveryPolicy{Policy: event.PolicyQueue}), event.New(event.SetTimeout{TimeoutMs: 600_000}))
			turn := w.ask(c, "Listen")
			turn.underWay()
			// The signals come from a client that has no blob store.
			plain := w.dial(nil)
			text := noise(rand.New(rand.NewPCG(5, 6)), flood.bytes)
			var wg sync.WaitGroup
			for s := range flood.senders {
				wg.Go(func() {
					for i := s; i < flood.signals; i += flood.senders {
						e := note(fmt.Sprint(i), text)
						if !assert.NoError(t, plain.SignalWorkflow(w.ctx, wire.WorkflowID(c.Name()), "", wire.SignalEvent, e)) {
							return
						}
					}
				})
			}
			wg.Wait()
			require.False(t, t.Failed())
			gate.Open()
			require.Equal(t, event.TagLLMRequestCompleted, turn.rest().Tag())
			require.Equal(t, "I listen", spoken(turn.seen))
			requireOneAttempt(t, turn.seen)

			recorded := map[string]int{}
			w.await(c, func(e event.Event) bool {
				if body, ok := e.Body.(event.UserMessage); ok && body.Content == text {
					recorded[e.ClientEventID]++
				}
				return len(recorded) == flood.signals
			})
			for id, times := range recorded {
				require.Equal(t, 1, times, id)
			}
			runs := w.runs(c)
			require.Greater(t, len(runs), 1)
			for _, run := range runs[1:] {
				d, err := w.temporal.DescribeWorkflowExecution(w.ctx, wire.WorkflowID(c.Name()), run)
				require.NoError(t, err)
				require.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW, d.GetWorkflowExecutionInfo().GetStatus())
				t.Logf("run of %d entries, %d bytes", d.GetWorkflowExecutionInfo().GetHistoryLength(), d.GetWorkflowExecutionInfo().GetHistorySizeBytes())
			}
		})
	}
}
