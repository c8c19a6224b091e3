package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	updatepb "go.temporal.io/api/update/v1"
	"go.temporal.io/api/workflowservice/v1"
	sdkclient "go.temporal.io/sdk/client"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

type flood struct{ signals, bytes, senders int }

func TestAFloodOfSignalsDuringAnAnswer_Alone(t *testing.T) {
	large(t)
	floodDuringAnAnswer(t, flood{200, 62_000, 8}) // 12 MB
}

// A server with its defaults fails the workflow tasks during a flood of large plain signals, and terminates a run of more than
// 50 MiB, see docs/limits.md. The next run records what the server had accepted.
func TestAFloodOfMoreThanAHistoryHoldsIsRecordedOnce_Long(t *testing.T) {
	long(t)
	onlyHeavy(t)
	w := newWorld(t, llmtest.Func(func(llmtest.Request) llmtest.Step { return llmtest.Answer("Done.") }))
	w.worker()
	c := w.open("flood")
	require.Equal(t, "Done.", deltaText(w.say(c, "Hello?")))
	plain := w.dial(nil)
	text := noise(rand.New(rand.NewPCG(5, 6)), 62_000)
	accepted := make([][]string, 8)
	var senders sync.WaitGroup
	for s := range accepted {
		senders.Go(func() {
			for i := s; i < 900; i += 8 { // 56 MB
				id := fmt.Sprintf("flood-%d", i)
				err := plain.SignalWorkflow(w.ctx, wire.WorkflowID(c.Name()), "", wire.SignalEvent, note(id, text))
				if err == nil {
					accepted[s] = append(accepted[s], id)
				} else if !isDelayed(err) {
					return // the run was terminated
				}
			}
		})
	}
	senders.Wait()
	t.Log(len(slices.Concat(accepted...)), "signals accepted")
	w.awaitRoom(c)
	require.Equal(t, "Done.", deltaText(w.say(c, "And now?")))
	recorded := map[string]int{}
	for _, e := range w.from(c, "") {
		if strings.HasPrefix(e.ClientEventID, "flood-") {
			recorded[e.ClientEventID]++
			require.Equal(t, 1, recorded[e.ClientEventID], "%s is recorded twice", e.ClientEventID)
		}
	}
	for _, id := range slices.Concat(accepted...) {
		require.Contains(t, recorded, id)
	}
	t.Log(len(recorded), "signals of", len(w.runs(c)), "runs")
}

// This flood exceeds the number of signals that a server accepts for a run, 10,000.
func TestAFloodOfMoreSignalsThanARunMayHave_Long(t *testing.T) {
	long(t)
	onlyHeavy(t)
	floodDuringAnAnswer(t, flood{12_000, 20, 16})
}

// floodDuringAnAnswer requires that all signals are recorded once, and the server terminates no run. A run that
// continues as new hands the answer back, and viewers see a reset.
func floodDuringAnAnswer(t *testing.T, f flood) {
	gate := llmtest.NewGate()
	w := newWorld(t, llmtest.Func(func(r llmtest.Request) llmtest.Step {
		if r.LastUser() == "And now?" {
			return llmtest.Answer("Done.")
		}
		return llmtest.Answer("I", " listen").HoldAfter(1, gate)
	}))
	w.worker()
	c := w.open("flood")
	w.send(c, event.New(event.SetDeliveryPolicy{Policy: event.PolicyQueue}), event.New(event.SetTimeout{TimeoutMs: 600_000}))
	turn := w.ask(c, "Listen")
	turn.underWay()

	w.flood(c, f)
	gate.Open()
	require.Equal(t, event.TagLLMRequestCompleted, turn.rest().Tag())
	require.Equal(t, "I listen", deltaText(turn.seen))
	w.awaitRoom(c)
	require.Equal(t, "Done.", deltaText(w.say(c, "And now?")))
	w.requireFlood(c, f)
	runs := w.runs(c)
	require.Greater(t, len(runs), 1)
	w.requireNoRunEnded(c)
	for _, run := range runs {
		w.replayRun(c, run, "")
	}
}

// Signals that Temporal delays for so long that the client gives up are sent again.
func (w *world) flood(c *client.Context, f flood) {
	w.t.Helper()
	plain := w.dial(nil)
	text := noise(rand.New(rand.NewPCG(5, 6)), f.bytes)
	var senders sync.WaitGroup
	for s := range f.senders {
		senders.Go(func() {
			for i := s; i < f.signals; i += f.senders {
				e := note(fmt.Sprintf("flood-%d", i), text)
				err := context.DeadlineExceeded
				for isDelayed(err) && w.ctx.Err() == nil {
					err = plain.SignalWorkflow(w.ctx, wire.WorkflowID(c.Name()), "", wire.SignalEvent, e)
				}
				if !assert.NoError(w.t, err) {
					return
				}
			}
		})
	}
	senders.Wait()
	require.False(w.t, w.t.Failed())
}

// awaitRoom sends until the backlog of a context is small enough for the client: until
// then, Send fails with ErrFull.
func (w *world) awaitRoom(c *client.Context) {
	w.t.Helper()
	err := client.ErrFull
	for errors.Is(err, client.ErrFull) {
		_, err = c.Send(w.ctx, note("room", "Is there room?"))
	}
	require.NoError(w.t, err)
}

func isDelayed(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) ||
		errors.As(err, new(*serviceerror.DeadlineExceeded)) || errors.As(err, new(*serviceerror.ResourceExhausted))
}

func (w *world) requireFlood(c *client.Context, f flood) {
	w.t.Helper()
	want := map[string]int{}
	for i := range f.signals {
		want[fmt.Sprintf("flood-%d", i)] = 1
	}
	recorded := map[string]int{}
	counter := 0
	for _, e := range w.from(c, "") {
		counter++
		require.Equal(w.t, event.FormatID(c.Name(), counter), e.ID, "ids are dense")
		if _, ok := want[e.ClientEventID]; ok {
			recorded[e.ClientEventID]++
		}
	}
	require.Equal(w.t, want, recorded)
}

// The run accepts the update and continues as new before it processes it. The next run records the
// events, and a sender that repeats them receives their ids.
func TestAnUpdateOfARunThatContinuesAsNewIsRecordedOnce_Long(t *testing.T) {
	long(t)
	onlyHeavy(t)
	w := newWorld(t)
	c := w.open("update")
	id := wire.WorkflowID(c.Name())
	_, err := c.Send(w.ctx, note("first", "One")) // no worker: starts the run with a signal
	require.NoError(t, err)
	f := flood{80, 440_000, 4} // 42 MB
	w.flood(c, f)
	updated := make(chan error, 1)
	go func() {
		handle, err := w.temporal.UpdateWorkflow(w.ctx, sdkclient.UpdateWorkflowOptions{
			WorkflowID: id, UpdateID: "update", UpdateName: wire.UpdateAppend, Args: []any{note("appended", "Two")},
			WaitForStage: sdkclient.WorkflowUpdateStageCompleted,
		})
		if err == nil {
			err = handle.Get(w.ctx, nil)
		}
		updated <- err
	}()
	w.awaitAdmitted(c, "update")
	w.worker()
	require.ErrorContains(t, <-updated, "the Workflow completed before the Update completed")

	sent := w.sendForIDs(c, note("appended", "Two"))
	w.requireFlood(c, f)
	var found []string
	for _, e := range w.from(c, "") {
		if e.ClientEventID == "appended" {
			found = append(found, e.ID)
		}
	}
	require.Equal(t, sent, found)
	require.Greater(t, len(w.runs(c)), 1)
	w.requireNoRunEnded(c)
}

// awaitAdmitted waits until the server has an update for the next workflow task.
func (w *world) awaitAdmitted(c *client.Context, updateID string) {
	w.t.Helper()
	for {
		_, err := w.temporal.WorkflowService().PollWorkflowExecutionUpdate(w.ctx, &workflowservice.PollWorkflowExecutionUpdateRequest{
			Namespace: sdkclient.DefaultNamespace,
			UpdateRef: &updatepb.UpdateRef{
				WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: wire.WorkflowID(c.Name())}, UpdateId: updateID,
			},
			WaitPolicy: &updatepb.WaitPolicy{LifecycleStage: enumspb.UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_ADMITTED},
		})
		if err == nil {
			return
		}
		require.ErrorAs(w.t, err, new(*serviceerror.NotFound))
	}
}

// The server terminates the run. The next run records the signals in their order, before its own input; see docs/limits.md.
func TestAFloodOfSignalsWithoutAWorkerIsRecordedByTheNextRun_Long(t *testing.T) {
	long(t)
	onlyHeavy(t)
	w := newWorld(t, llmtest.Answer("Hello"), llmtest.Answer("Again"))
	stop := w.worker()
	c := w.open("unattended")
	require.Equal(t, "Hello", deltaText(w.say(c, "Hello?")))
	stop()
	id := wire.WorkflowID(c.Name())
	run := w.runs(c)[0]
	plain := w.dial(nil)
	text := noise(rand.New(rand.NewPCG(7, 8)), 440_000)
	var err error
	want := []string{"Hello?"}
	for err == nil {
		next := fmt.Sprint(len(want), text)
		if err = plain.SignalWorkflow(w.ctx, id, run, wire.SignalEvent, note("", next)); err == nil {
			want = append(want, next)
		}
	}
	t.Log(len(want)-1, "signals, then:", err)
	d, err := w.temporal.DescribeWorkflowExecution(w.ctx, id, run)
	require.NoError(t, err)
	require.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED, d.GetWorkflowExecutionInfo().GetStatus())
	require.Greater(t, d.GetWorkflowExecutionInfo().GetHistorySizeBytes(), int64(50<<20))

	w.worker()
	require.Equal(t, "Again", deltaText(w.say(c, "Again?")))
	require.Equal(t, append(want, "Again?"), w.users(c))
}
