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

// requireAll waits until the notes are in the log, each once.
func (w *world) requireAll(c *client.Context, notes []event.Event) {
	w.t.Helper()
	missing, recorded := map[string]bool{}, map[string]int{}
	for _, n := range notes {
		missing[n.ClientEventID], recorded[n.ClientEventID] = true, 0
	}
	for e, err := range c.Follow(w.ctx, client.FollowOptions{}) {
		require.NoError(w.t, err)
		if delete(missing, e.ClientEventID); len(missing) == 0 {
			break
		}
	}
	require.Empty(w.t, missing)
	w.log(c) // checks ids
	for _, e := range w.from(c, "") {
		if _, ok := recorded[e.ClientEventID]; ok {
			recorded[e.ClientEventID]++
		}
	}
	for id, times := range recorded {
		require.Equal(w.t, 1, times, id)
	}
}

func (w *world) historySize(c *client.Context) int64 {
	w.t.Helper()
	d := w.described(c, "")
	return d.GetWorkflowExecutionInfo().GetHistorySizeBytes()
}

func TestBackpressureEndsWhenAWorkerRuns_Alone(t *testing.T) {
	large(t)
	backpressure(t, 48, 450_000, "20.6 of 50 MiB")
}

func TestBackpressureBeginsAtNineThousandSignals_Long(t *testing.T) {
	long(t)
	onlyHeavy(t)
	backpressure(t, 9_000, 5, "of 10,000 signals")
}

// backpressure fills a run with signals before a worker runs.
func backpressure(t *testing.T, signals, bytes int, full string) {
	w := newWorld(t)
	c := w.open("full")
	var notes []event.Event
	for i := range signals {
		notes = append(notes, note(fmt.Sprintf("plain-%d", i), strings.Repeat("x", bytes)))
	}
	w.signalAll(c, w.dial(nil), notes)
	late := note("late", "One more")
	_, err := c.Send(w.ctx, late)
	require.ErrorIs(t, err, client.ErrFull)
	require.ErrorContains(t, err, "context "+c.Name()+": full until a worker runs: ")
	require.ErrorContains(t, err, full)
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
