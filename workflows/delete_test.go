package workflows_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/workflows"
)

// deleting is what a deletion meets.
type deleting struct {
	ended  activities.EndedSession
	active []string                 // contexts that are active
	runs   []activities.DeletedRuns // found by each round; then none
	forks  []string
	fail   func(step string) error                  // nil: nothing fails
	during func(*testsuite.TestWorkflowEnvironment) // while stray writes may follow; nil: nothing

	mu    sync.Mutex
	steps []string
	at    []time.Duration // of the steps, since the start
}

func found(runs int, wasBusy bool) activities.DeletedRuns {
	return activities.DeletedRuns{Removed: []wire.Removed{{Place: wire.PlaceRuns, Count: runs}}, WasBusy: wasBusy}
}

// run runs a deletion of the context demo.
func (d *deleting) run(t *testing.T, in wire.Delete) (receipt wire.Deletion) {
	t.Helper()
	env := d.start(t, in)
	require.NoError(t, env.GetWorkflowError())
	require.NoError(t, env.GetWorkflowResult(&receipt))
	return receipt
}

func (d *deleting) start(t *testing.T, in wire.Delete) *testsuite.TestWorkflowEnvironment {
	t.Helper()
	env := newEnvironment(wire.DeletionID(in.ContextName))
	env.RegisterWorkflowWithOptions(workflows.Delete, workflow.RegisterOptions{Name: wire.WorkflowDelete})
	began := env.Now()
	step := func(name string) error {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.fail != nil {
			if err := d.fail(name); err != nil {
				return err
			}
		}
		d.steps, d.at = append(d.steps, name), append(d.at, env.Now().Sub(began))
		return nil
	}
	env.OnActivity(acts.EndSession, mock.Anything, mock.Anything).Return(func(_ context.Context, in activities.EndSessionInput) (activities.EndedSession, error) {
		ended := d.ended
		ended.IsActive = ended.IsActive || !in.InactiveSince.IsZero() && slices.Contains(d.active, in.ContextName)
		return ended, step("session of " + in.ContextName)
	})
	env.OnActivity(acts.DeleteRuns, mock.Anything, mock.Anything).Return(func(_ context.Context, in activities.DeleteInput) (runs activities.DeletedRuns, err error) {
		if err := step("runs of " + in.ContextName); err != nil {
			return runs, err
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		if in.ContextName == "demo" && len(d.runs) > 0 {
			runs, d.runs = d.runs[0], d.runs[1:]
		}
		return runs, nil
	})
	env.OnActivity(acts.ListForks, mock.Anything, mock.Anything).Return(func(_ context.Context, in activities.DeleteInput) (forks []string, err error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		if n := min(len(d.forks), activities.MaxListedForks); in.ContextName == "demo" {
			forks, d.forks = d.forks[:n], d.forks[n:]
		}
		return forks, nil
	})
	env.OnActivity(acts.DetachFork, mock.Anything, mock.Anything).Return(func(_ context.Context, in activities.DeleteInput) error {
		return step("detach " + in.ContextName)
	})
	env.OnActivity(acts.DeleteStored, mock.Anything, mock.Anything).Return(func(_ context.Context, in activities.DeleteInput) ([]wire.Removed, error) {
		return []wire.Removed{{Place: wire.PlaceLog, Count: 4}, {Place: wire.PlaceCursors}}, step("store of " + in.ContextName)
	})
	if d.during != nil {
		env.RegisterDelayedCallback(func() { d.during(env) }, activities.StrayWrites/2)
	}
	env.ExecuteWorkflow(wire.WorkflowDelete, in, wire.Deletion{})
	require.True(t, env.IsWorkflowCompleted())
	return env
}

func TestADeletionEndsWhenNoRunIsLeft(t *testing.T) {
	// Temporal lists a run late, twice.
	d := deleting{runs: []activities.DeletedRuns{found(3, false), found(1, false), found(1, false)}}
	receipt := d.run(t, wire.Delete{ContextName: "demo"})
	round := []string{"runs of demo", "store of demo"}
	require.Equal(t, slices.Concat([]string{"session of demo"}, round, round, round, []string{"runs of demo"}), d.steps)
	require.Equal(t, "demo", receipt.ContextName)
	require.False(t, receipt.StartedAt.IsZero())
	require.False(t, receipt.EndedAt.Before(receipt.StartedAt))
	require.Equal(t, wire.Remains, receipt.Remains)
	removed := map[wire.Place]int{}
	for _, r := range receipt.Removed {
		removed[r.Place] = r.Count
		require.Equal(t, r.Count == 0, r.At.IsZero())
	}
	require.Equal(t, map[wire.Place]int{wire.PlaceRuns: 5, wire.PlaceLog: 12, wire.PlaceCursors: 0}, removed)
}

func TestTheStoreIsDeletedWhenNoWorkerWritesToItAnyMore(t *testing.T) {
	d := deleting{runs: []activities.DeletedRuns{found(1, true)}}
	d.run(t, wire.Delete{ContextName: "demo"})
	require.Equal(t, []string{"session of demo", "runs of demo", "store of demo", "runs of demo"}, d.steps)
	require.GreaterOrEqual(t, d.at[2]-d.at[1], activities.StrayWrites)
	terminated := deleting{ended: activities.EndedSession{WasTerminated: true}, runs: []activities.DeletedRuns{found(1, false), found(1, false)}}
	terminated.run(t, wire.Delete{ContextName: "demo"})
	require.GreaterOrEqual(t, terminated.at[2]-terminated.at[1], activities.StrayWrites)
	require.Less(t, terminated.at[4]-terminated.at[3], time.Second, "once is enough")
	idle := deleting{runs: []activities.DeletedRuns{found(1, false)}}
	idle.run(t, wire.Delete{ContextName: "demo"})
	require.Less(t, idle.at[2]-idle.at[1], time.Second)
}

func TestForksAreDetachedBeforeTheirOriginIsDeleted(t *testing.T) {
	d := deleting{runs: []activities.DeletedRuns{found(1, false)}, forks: []string{"a", "b"}}
	receipt := d.run(t, wire.Delete{ContextName: "demo", Forks: wire.KeepForks})
	require.ElementsMatch(t, []string{"detach a", "detach b"}, d.steps[1:3])
	require.Equal(t, []string{"runs of demo", "store of demo", "runs of demo"}, d.steps[3:])
	require.ElementsMatch(t, []string{"a", "b"}, receipt.KeptForks)
	require.Empty(t, receipt.DeletedForks)
}

func TestForksAreDeletedOnRequest(t *testing.T) {
	d := deleting{runs: []activities.DeletedRuns{found(1, false)}, forks: []string{"a"}}
	receipt := d.run(t, wire.Delete{ContextName: "demo", Forks: wire.DeleteForks})
	require.Equal(t, []string{
		"session of demo", "session of a", "runs of a", "store of a", "runs of a", "runs of demo", "store of demo", "runs of demo",
	}, d.steps)
	require.Empty(t, receipt.KeptForks)
	require.Equal(t, []string{"a"}, receipt.DeletedForks)
	require.Equal(t, 8, removedFrom(receipt, wire.PlaceLog), "with that of the fork")
}

func removedFrom(d wire.Deletion, place wire.Place) (n int) {
	for _, r := range d.Removed {
		if r.Place == place {
			n += r.Count
		}
	}
	return n
}

func TestForksAreDetachedConcurrentlyAndInParts(t *testing.T) {
	var forks []string
	for i := range activities.MaxListedForks + 50 {
		forks = append(forks, fmt.Sprintf("fork%03d", i))
	}
	d := deleting{forks: slices.Clone(forks)}
	receipt := d.run(t, wire.Delete{ContextName: "demo"})
	require.ElementsMatch(t, forks, receipt.KeptForks)
	require.Less(t, slices.Index(d.steps, "detach fork149"), slices.Index(d.steps, "runs of demo"), "all are detached before")
}

func TestAReceiptNamesALimitedNumberOfForks(t *testing.T) {
	var receipt wire.Deletion
	for range 3 {
		receipt.AddFork(wire.Deletion{ContextName: "a", DeletedForks: make([]string, 600), KeptForks: make([]string, 600)})
		receipt.Keep("b")
	}
	require.Len(t, receipt.DeletedForks, 1000)
	require.Len(t, receipt.KeptForks, 1000)
}

func TestADeletionThatRequiresInactivityKeepsAnActiveContext(t *testing.T) {
	d := deleting{ended: activities.EndedSession{IsActive: true}, forks: []string{"a"}}
	receipt := d.run(t, wire.Delete{ContextName: "demo", InactiveSince: time.Unix(1, 0)})
	require.Equal(t, []string{"session of demo"}, d.steps)
	require.Equal(t, wire.StillActive, receipt.Error)
	require.False(t, receipt.EndedAt.IsZero())
	require.Empty(t, receipt.Removed)
	require.Empty(t, receipt.Remains)
}

func TestADeletionThatRequiresInactivityKeepsActiveForks(t *testing.T) {
	d := deleting{forks: []string{"used", "old"}, active: []string{"used"}}
	receipt := d.run(t, wire.Delete{ContextName: "demo", Forks: wire.DeleteForks, InactiveSince: time.Unix(1, 0)})
	require.Equal(t, []string{"old"}, receipt.DeletedForks)
	require.Equal(t, []string{"used"}, receipt.KeptForks)
	require.Contains(t, d.steps, "detach used")
	require.NotContains(t, d.steps, "runs of used")
	require.Contains(t, d.steps, "store of demo")
}

func TestAFailedDeletionReportsWhatItDid(t *testing.T) {
	lost := func(step string) error {
		if step == "detach b" {
			return temporal.NewNonRetryableApplicationError("events 1 to 3 are missing (delete the forks, too)", "Lost", nil)
		}
		return nil
	}
	d := deleting{forks: []string{"a", "b"}, fail: lost}
	var failed *temporal.ApplicationError
	require.ErrorAs(t, d.start(t, wire.Delete{ContextName: "demo"}).GetWorkflowError(), &failed)
	require.Equal(t, "events 1 to 3 are missing (delete the forks, too)", failed.Message())
	var receipt wire.Deletion
	require.NoError(t, failed.Details(&receipt))
	require.Equal(t, []string{"a"}, receipt.KeptForks)
	require.NotContains(t, d.steps, "runs of demo")
}

func TestARunningDeletionReportsWhatItHasRemoved(t *testing.T) {
	var receipt wire.Deletion
	d := deleting{runs: []activities.DeletedRuns{found(3, true)}, during: func(env *testsuite.TestWorkflowEnvironment) {
		value, err := env.QueryWorkflow(wire.QueryDeletion)
		require.NoError(t, err)
		require.NoError(t, value.Get(&receipt))
	}}
	d.run(t, wire.Delete{ContextName: "demo"})
	require.Equal(t, 3, removedFrom(receipt, wire.PlaceRuns))
	require.Zero(t, receipt.EndedAt)
}

func TestADeletionRetriesWhileAPlaceIsUnavailable(t *testing.T) {
	failures := 0
	d := deleting{runs: []activities.DeletedRuns{found(1, false)}, fail: func(string) error {
		if failures++; failures%3 != 0 {
			return errors.New("no route")
		}
		return nil
	}}
	receipt := d.run(t, wire.Delete{ContextName: "demo"})
	require.Equal(t, []string{"session of demo", "runs of demo", "store of demo", "runs of demo"}, d.steps)
	require.False(t, receipt.EndedAt.IsZero())
}
