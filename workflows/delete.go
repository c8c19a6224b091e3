package workflows

import (
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// listLag is the time after which Temporal lists new runs and schedules.
const listLag = 2 * time.Second

// maxDeletionRounds bounds the history of a run of Delete. Only senders that do not stop cause further rounds.
const maxDeletionRounds = 100

// Delete deletes a context, and returns the receipt. It repeats its steps until it finds no run: input that arrives in
// the meantime starts one, and is deleted, too. Its own history contains no content. Register it as
// [wire.WorkflowDelete].
func Delete(ctx workflow.Context, in wire.Delete, earlier wire.Deletion) (wire.Deletion, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: activities.DeleteTimeout,
		HeartbeatTimeout:    activities.DefaultFailover,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: time.Second, MaximumInterval: time.Minute},
	})
	d := &deletion{in: in, receipt: earlier}
	if d.receipt.StartedAt.IsZero() {
		d.receipt = wire.Deletion{ContextName: in.ContextName, StartedAt: workflow.Now(ctx)}
	}
	for range maxDeletionRounds {
		isGone, err := d.round(ctx)
		if err != nil {
			return d.receipt, err
		}
		if isGone {
			d.receipt.EndedAt, d.receipt.Remains = workflow.Now(ctx), wire.Remains
			return d.receipt, nil
		}
		if err := workflow.Sleep(ctx, listLag); err != nil {
			return d.receipt, err
		}
	}
	return d.receipt, workflow.NewContinueAsNewError(ctx, wire.WorkflowDelete, in, d.receipt)
}

type deletion struct {
	in        wire.Delete
	receipt   wire.Deletion
	hasStored bool // the store was emptied in this run
}

// round deletes what it finds, the store last. It reports whether there was no run since the store was emptied.
func (d *deletion) round(ctx workflow.Context) (isGone bool, err error) {
	in := activities.DeleteInput{ContextName: d.in.ContextName}
	if err := d.leaveForks(ctx, in); err != nil { // if it fails, nothing is deleted
		return false, err
	}
	var runs activities.DeletedRuns
	if err := workflow.ExecuteActivity(ctx, acts.DeleteRuns, in).Get(ctx, &runs); err != nil {
		return false, err
	}
	d.receipt.Add(workflow.Now(ctx), runs.Removed...)
	if d.hasStored && runs.Count() == 0 {
		return true, nil
	}
	if runs.WasBusy {
		if err := workflow.Sleep(ctx, activities.StrayWrites); err != nil {
			return false, err
		}
	}
	var removed []wire.Removed
	if err := workflow.ExecuteActivity(ctx, acts.DeleteStored, in).Get(ctx, &removed); err != nil {
		return false, err
	}
	d.receipt.Add(workflow.Now(ctx), removed...)
	d.hasStored = true
	return false, nil
}

// leaveForks detaches or deletes the forks, which read the store of the context. Client.Fork makes no new one while the
// deletion runs.
func (d *deletion) leaveForks(ctx workflow.Context, in activities.DeleteInput) error {
	var forks []string
	if err := workflow.ExecuteActivity(ctx, acts.ListForks, in).Get(ctx, &forks); err != nil {
		return err
	}
	for _, fork := range forks {
		if d.in.Forks == wire.DeleteForks {
			deleted, err := deleteFork(ctx, fork)
			if err != nil {
				return err
			}
			d.receipt.DeletedForks = append(d.receipt.DeletedForks, deleted)
			continue
		}
		if err := workflow.ExecuteActivity(ctx, acts.DetachFork, activities.DeleteInput{ContextName: fork}).Get(ctx, nil); err != nil {
			return err
		}
		d.receipt.KeptForks = append(d.receipt.KeptForks, fork)
	}
	return nil
}

// deleteFork waits for a deletion that is already running, and then deletes what it left.
func deleteFork(ctx workflow.Context, fork string) (deleted wire.Deletion, err error) {
	ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID: wire.DeletionID(fork), WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		ParentClosePolicy: enumspb.PARENT_CLOSE_POLICY_ABANDON,
	})
	for {
		err = workflow.ExecuteChildWorkflow(ctx, wire.WorkflowDelete, wire.Delete{ContextName: fork, Forks: wire.DeleteForks}, wire.Deletion{}).Get(ctx, &deleted)
		if !temporal.IsWorkflowExecutionAlreadyStartedError(err) {
			return deleted, err
		}
		if err := workflow.Sleep(ctx, listLag); err != nil {
			return deleted, err
		}
	}
}
