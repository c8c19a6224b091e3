package workflows_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/workflows"
)

// deleting is what a deletion meets.
type deleting struct {
	runs  []activities.DeletedRuns // found by each round; then none
	forks []string
	fail  func(step string) error // nil: nothing fails
	steps []string
	at    []time.Duration // of the steps, since the start
}

func found(runs int, wasBusy bool) activities.DeletedRuns {
	return activities.DeletedRuns{Removed: []wire.Removed{{Place: wire.PlaceRuns, Count: runs}}, WasBusy: wasBusy}
}

// run runs a deletion of the context demo.
func (d *deleting) run(t *testing.T, in wire.Delete) (receipt wire.Deletion) {
	t.Helper()
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(10 * time.Second)
	env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: wire.DeletionID(in.ContextName)})
	env.RegisterActivity(activities.New(activities.Options{}))
	env.RegisterWorkflowWithOptions(workflows.Delete, workflow.RegisterOptions{Name: wire.WorkflowDelete})
	began := env.Now()
	step := func(name string) error {
		if d.fail != nil {
			if err := d.fail(name); err != nil {
				return err
			}
		}
		d.steps, d.at = append(d.steps, name), append(d.at, env.Now().Sub(began))
		return nil
	}
	env.OnActivity(acts.DeleteRuns, mock.Anything, mock.Anything).Return(func(_ context.Context, in activities.DeleteInput) (runs activities.DeletedRuns, err error) {
		if err := step("runs of " + in.ContextName); err != nil {
			return runs, err
		}
		if in.ContextName == "demo" && len(d.runs) > 0 {
			runs, d.runs = d.runs[0], d.runs[1:]
		}
		return runs, nil
	})
	env.OnActivity(acts.ListForks, mock.Anything, mock.Anything).Return(func(_ context.Context, in activities.DeleteInput) (forks []string, err error) {
		if in.ContextName == "demo" {
			forks, d.forks = d.forks, nil
		}
		return forks, nil
	})
	env.OnActivity(acts.DetachFork, mock.Anything, mock.Anything).Return(func(_ context.Context, in activities.DeleteInput) error {
		return step("detach " + in.ContextName)
	})
	env.OnActivity(acts.DeleteStored, mock.Anything, mock.Anything).Return(func(_ context.Context, in activities.DeleteInput) ([]wire.Removed, error) {
		return []wire.Removed{{Place: wire.PlaceLog, Count: 4}, {Place: wire.PlaceCursors}}, step("store of " + in.ContextName)
	})
	env.ExecuteWorkflow(wire.WorkflowDelete, in)
	require.True(t, env.IsWorkflowCompleted())
	require.NoError(t, env.GetWorkflowError())
	require.NoError(t, env.GetWorkflowResult(&receipt))
	return receipt
}

func TestADeletionEndsWhenNoRunIsLeft(t *testing.T) {
	// A message arrives twice in the meantime.
	d := deleting{runs: []activities.DeletedRuns{found(3, false), found(1, false), found(1, false)}}
	receipt := d.run(t, wire.Delete{ContextName: "demo"})
	round := []string{"runs of demo", "store of demo"}
	require.Equal(t, append(append(append(round, round...), round...), "runs of demo"), d.steps)
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
	require.Equal(t, []string{"runs of demo", "store of demo", "runs of demo"}, d.steps)
	require.GreaterOrEqual(t, d.at[1]-d.at[0], activities.StrayWrites)
	idle := deleting{runs: []activities.DeletedRuns{found(1, false)}}
	idle.run(t, wire.Delete{ContextName: "demo"})
	require.Less(t, idle.at[1]-idle.at[0], time.Second)
}

func TestForksAreDetachedBeforeTheirOriginIsDeleted(t *testing.T) {
	d := deleting{runs: []activities.DeletedRuns{found(1, false)}, forks: []string{"a", "b"}}
	receipt := d.run(t, wire.Delete{ContextName: "demo", Forks: wire.KeepForks})
	require.Equal(t, []string{"detach a", "detach b", "runs of demo", "store of demo", "runs of demo"}, d.steps)
	require.Equal(t, []string{"a", "b"}, receipt.KeptForks)
	require.Empty(t, receipt.DeletedForks)
}

func TestForksAreDeletedOnRequest(t *testing.T) {
	d := deleting{runs: []activities.DeletedRuns{found(1, false)}, forks: []string{"a"}}
	receipt := d.run(t, wire.Delete{ContextName: "demo", Forks: wire.DeleteForks})
	require.Equal(t, []string{"runs of a", "store of a", "runs of a", "runs of demo", "store of demo", "runs of demo"}, d.steps)
	require.Empty(t, receipt.KeptForks)
	require.Len(t, receipt.DeletedForks, 1)
	require.Equal(t, "a", receipt.DeletedForks[0].ContextName)
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
	require.Equal(t, []string{"runs of demo", "store of demo", "runs of demo"}, d.steps)
	require.False(t, receipt.EndedAt.IsZero())
}
