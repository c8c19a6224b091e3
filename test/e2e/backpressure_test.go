package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	sdkclient "go.temporal.io/sdk/client"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

func (w *world) signalAll(c *client.Context, temporal sdkclient.Client, notes []event.Event) {
	w.t.Helper()
	id := wire.WorkflowID(c.Name())
	const senders = 16
	failed := make(chan error, senders)
	for i := range senders {
		go func() {
			var err error
			for n := i; n < len(notes) && err == nil; n += senders {
				_, err = temporal.SignalWithStartWorkflow(w.ctx, id, wire.SignalEvent, notes[n],
					sdkclient.StartWorkflowOptions{ID: id, TaskQueue: w.queue}, wire.WorkflowType)
			}
			failed <- err
		}()
	}
	for range senders {
		require.NoError(w.t, <-failed)
	}
}

func (w *world) requireAll(c *client.Context, notes []event.Event) {
	w.t.Helper()
	missing := map[string]bool{}
	for _, n := range notes {
		missing[n.ClientEventID] = true
	}
	for e, err := range c.Follow(w.ctx, client.FollowOptions{}) {
		require.NoError(w.t, err)
		if delete(missing, e.ClientEventID); len(missing) == 0 {
			break
		}
	}
	require.Empty(w.t, missing)
	w.log(c) // checks ids
	seen := map[string]int{}
	for e, err := range c.Events(w.ctx, "") {
		require.NoError(w.t, err)
		if e.ClientEventID != "" {
			seen[e.ClientEventID]++
		}
	}
	require.Len(w.t, seen, len(notes))
	for id, times := range seen {
		require.Equal(w.t, 1, times, id)
	}
}

func TestLargeMessagesWithoutAWorkerDoNotTerminateTheRun_Alone(t *testing.T) {
	large(t)
	w := newWorldOn(t, environment{timeout: largeTimeout})
	c := w.open("large-waiting")
	var notes []event.Event
	for i := range 30 { // 57 MB; the server terminates a run at 50 MiB
		n := note(fmt.Sprintf("large-%d", i), strings.Repeat("x", 1_890_000))
		_, err := c.Send(w.ctx, n)
		require.NoError(t, err)
		notes = append(notes, n)
	}
	w.worker()
	w.requireAll(c, notes)
	require.Less(t, w.historySize(c), int64(1<<20))
}

func (w *world) historySize(c *client.Context) int64 {
	w.t.Helper()
	d, err := w.temporal.DescribeWorkflowExecution(w.ctx, wire.WorkflowID(c.Name()), "")
	require.NoError(w.t, err)
	return d.GetWorkflowExecutionInfo().GetHistorySizeBytes()
}

func TestBackpressureEndsWhenAWorkerRuns_Alone(t *testing.T) {
	large(t)
	w := newWorldOn(t, environment{timeout: largeTimeout})
	c := w.open("full-bytes")
	var notes []event.Event
	for i := range 48 {
		notes = append(notes, note(fmt.Sprintf("plain-%d", i), strings.Repeat("x", 450_000)))
	}
	w.signalAll(c, w.dial(nil), notes)
	late := note("late", "One more")
	_, err := c.Send(w.ctx, late)
	require.ErrorIs(t, err, client.ErrFull)
	require.ErrorContains(t, err, "context "+c.Name()+": full until a worker runs: 20.6 of 50 MiB")
	line, err := late.MarshalJSON()
	require.NoError(t, err)
	_, errOut, err := w.tryStarter(string(line), "script", "-n", c.Name())
	require.Error(t, err)
	require.Contains(t, errOut, "full until a worker runs")

	w.worker()
	for {
		if _, err = c.Send(w.ctx, late); !errors.Is(err, client.ErrFull) {
			break
		}
	}
	require.NoError(t, err)
	w.requireAll(c, append(slices.Clone(notes), late))
}

func TestBackpressureBeginsAtNineThousandSignals_Long(t *testing.T) {
	long(t)
	onlyHeavy(t)
	w := newWorldOn(t, environment{timeout: largeTimeout})
	c := w.open("full-signals")
	var notes []event.Event
	for i := range 9_000 {
		notes = append(notes, note(fmt.Sprintf("plain-%d", i), "Hello"))
	}
	w.signalAll(c, w.dial(nil), notes)
	late := note("late", "One more")
	_, err := c.Send(w.ctx, late)
	require.ErrorIs(t, err, client.ErrFull)
	require.ErrorContains(t, err, "full until a worker runs: 9,00")
	require.ErrorContains(t, err, "of 10,000 signals")

	w.worker()
	for {
		if _, err = c.Send(w.ctx, late); !errors.Is(err, client.ErrFull) {
			break
		}
	}
	require.NoError(t, err)
	w.requireAll(c, append(slices.Clone(notes), late))
}
