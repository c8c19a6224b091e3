package workflows

import (
	"errors"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// listLag is the time after which Temporal lists new runs and schedules.
const listLag = 2 * time.Second

const (
	// maxDeletionRounds bounds the history of a run of Delete. Only thousands of forks cause that many rounds.
	maxDeletionRounds = 50
	// maxForksAtOnce bounds the forks that are deleted or detached concurrently.
	maxForksAtOnce = 10
)

// Delete deletes a context, and returns the receipt. It ends the session, and then deletes what it finds until it finds
// nothing. Runs that begin in the meantime open when it has ended. Its own history contains no content. Register it as
// [wire.WorkflowDelete].
func Delete(ctx workflow.Context, in wire.Delete, earlier wire.Deletion) (wire.Deletion, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: activities.DeleteTimeout,
		HeartbeatTimeout:    activities.DefaultFailover,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: time.Second, MaximumInterval: time.Minute},
	})
	d := &deletion{in: in, receipt: earlier}
	isFirst := d.receipt.StartedAt.IsZero()
	if isFirst {
		d.receipt = wire.Deletion{ContextName: in.ContextName, StartedAt: workflow.Now(ctx), Removed: []wire.Removed{}}
	}
	err := workflow.SetQueryHandler(ctx, wire.QueryDeletion, func() (wire.Deletion, error) { return d.receipt, nil })
	if err == nil {
		err = d.run(ctx, isFirst)
	}
	var failed *temporal.ApplicationError
	if errors.As(err, &failed) {
		err = temporal.NewNonRetryableApplicationError(failed.Message(), failed.Type(), nil, d.receipt)
	}
	return d.receipt, err
}

type deletion struct {
	in        wire.Delete
	receipt   wire.Deletion
	wasBusy   bool // a worker may still write to the store
	hasStored bool // the store was emptied in this run
}

func (d *deletion) run(ctx workflow.Context, isFirst bool) error {
	if isFirst {
		var ended activities.EndedSession
		in := activities.EndSessionInput{ContextName: d.in.ContextName, InactiveSince: d.in.InactiveSince}
		if err := workflow.ExecuteActivity(ctx, acts.EndSession, in).Get(ctx, &ended); err != nil {
			return err
		}
		if ended.IsActive {
			d.receipt.EndedAt, d.receipt.Error = workflow.Now(ctx), wire.StillActive
			return nil
		}
		d.wasBusy = ended.WasTerminated
	}
	for range maxDeletionRounds {
		isGone, err := d.round(ctx)
		if err != nil {
			return err
		}
		if isGone {
			d.receipt.EndedAt, d.receipt.Remains = workflow.Now(ctx), wire.Remains
			return nil
		}
		if err := workflow.Sleep(ctx, listLag); err != nil {
			return err
		}
	}
	return workflow.NewContinueAsNewError(ctx, wire.WorkflowDelete, d.in, d.receipt)
}

// round deletes what it finds, the store last. It reports whether there was nothing since the store was emptied.
func (d *deletion) round(ctx workflow.Context) (isGone bool, err error) {
	in := activities.DeleteInput{ContextName: d.in.ContextName}
	if isComplete, err := d.leaveForks(ctx, in); err != nil || !isComplete { // if it fails, nothing is deleted
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
	if runs.WasBusy || d.wasBusy {
		if err := workflow.Sleep(ctx, activities.StrayWrites); err != nil {
			return false, err
		}
	}
	var removed []wire.Removed
	if err := workflow.ExecuteActivity(ctx, acts.DeleteStored, in).Get(ctx, &removed); err != nil {
		return false, err
	}
	d.receipt.Add(workflow.Now(ctx), removed...)
	d.hasStored, d.wasBusy = true, false
	return false, nil
}

// leaveForks detaches or deletes forks, which read the store of the context, and reports whether these were all.
// Client.Fork makes no new one while the deletion runs.
func (d *deletion) leaveForks(ctx workflow.Context, in activities.DeleteInput) (isComplete bool, err error) {
	var forks []string
	if err := workflow.ExecuteActivity(ctx, acts.ListForks, in).Get(ctx, &forks); err != nil {
		return false, err
	}
	slots, all := workflow.NewSemaphore(ctx, maxForksAtOnce), workflow.NewWaitGroup(ctx)
	for _, fork := range forks {
		if err := slots.Acquire(ctx, 1); err != nil {
			return false, err
		}
		all.Add(1)
		workflow.Go(ctx, func(ctx workflow.Context) {
			defer all.Done()
			defer slots.Release(1)
			if leaveErr := d.leaveFork(ctx, fork); err == nil {
				err = leaveErr
			}
		})
	}
	all.Wait(ctx)
	return len(forks) < activities.MaxListedForks, err
}

func (d *deletion) leaveFork(ctx workflow.Context, fork string) error {
	if d.in.Forks == wire.DeleteForks {
		deleted, err := deleteFork(ctx, d.in, fork)
		if err == nil && deleted.Error == "" {
			d.receipt.AddFork(deleted)
		}
		if err != nil || deleted.Error == "" {
			return err
		}
		// It is active, and kept.
	}
	err := workflow.ExecuteActivity(ctx, acts.DetachFork, activities.DeleteInput{ContextName: fork}).Get(ctx, nil)
	if err == nil {
		d.receipt.Keep(fork)
	}
	return err
}

// deleteFork waits for a deletion that is already running, and then deletes what it left.
func deleteFork(ctx workflow.Context, in wire.Delete, fork string) (deleted wire.Deletion, err error) {
	ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID: wire.DeletionID(fork), WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		ParentClosePolicy: enumspb.PARENT_CLOSE_POLICY_ABANDON,
		Memo:              in.Memo(),
	})
	in.ContextName = fork
	for {
		err = workflow.ExecuteChildWorkflow(ctx, wire.WorkflowDelete, in, wire.Deletion{}).Get(ctx, &deleted)
		if !temporal.IsWorkflowExecutionAlreadyStartedError(err) {
			return deleted, err
		}
		if err := workflow.Sleep(ctx, listLag); err != nil {
			return deleted, err
		}
	}
}
