package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	sdkclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// Forks says what [Context.Delete] does with the forks of the context.
type Forks = wire.Forks

// The choices for forks.
const (
	KeepForks   = wire.KeepForks   // each gets a copy of what it shares
	DeleteForks = wire.DeleteForks // with their forks
)

// Deletion is the receipt of a deletion.
type Deletion = wire.Deletion

// DeleteOptions are options of [Context.Delete].
type DeleteOptions struct {
	Forks Forks // "": KeepForks
}

// startTimeout is the time in which a worker starts a deletion.
const startTimeout = 10 * time.Second

// Delete ends the session, deletes the context everywhere, and returns what was removed: its histories in Temporal, its
// schedules, and its log, blobs and cursors in the blob store. Nothing can undo it. Input that arrives in the meantime
// is deleted, too, so Delete does not return while others send. Afterwards the name is free, and a new context with it
// begins with the first event.
//
// The deletion is a workflow, which continues without the caller: after an error, [Context.Deletion] reports it, and
// Delete waits for it again. A context with running answers or calls takes a minute longer, because their workers may
// still write. The error is ErrNoContext, ErrNoArchive, ErrOtherStore, ErrUnreachable, or ErrNoWorker if no worker
// starts within 10 s.
func (c *Context) Delete(ctx context.Context, o DeleteOptions) (Deletion, error) {
	run, err := c.delete(ctx, o)
	if err != nil {
		return Deletion{}, err
	}
	return c.awaitDeletion(ctx, run)
}

// StartDeletion is [Context.Delete] without the wait. [Context.Deletion] reports the outcome.
func (c *Context) StartDeletion(ctx context.Context, o DeleteOptions) error {
	_, err := c.delete(ctx, o)
	return err
}

func (c *Context) delete(ctx context.Context, o DeleteOptions) (sdkclient.WorkflowRun, error) {
	const operation = "delete"
	if c.client.options.Archive == nil {
		return nil, fmt.Errorf("%s context %s: %w", operation, c.Name(), errStoreRequired)
	}
	if o.Forks != "" && !slices.Contains(o.Forks.Values(), o.Forks) {
		return nil, &event.FieldError{Field: "forks", Problem: fmt.Sprintf("%q is invalid (want keep or delete)", event.Redact(string(o.Forks), 40))}
	}
	if err := c.checkStore(ctx, operation); err != nil {
		return nil, err
	}
	if err := c.checkIsLeft(ctx, operation); err != nil {
		return nil, err
	}
	queue, err := c.TaskQueue(ctx)
	if err != nil {
		return nil, err
	}
	run, err := c.client.options.Temporal.ExecuteWorkflow(ctx, sdkclient.StartWorkflowOptions{
		ID: wire.DeletionID(c.name), TaskQueue: queue, WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
	}, wire.WorkflowDelete, wire.Delete{ContextName: c.name, Forks: o.Forks})
	return run, c.explain(ctx, operation, err, ErrUnreachable)
}

// awaitDeletion returns ErrNoWorker if no worker starts the deletion within startTimeout.
func (c *Context) awaitDeletion(ctx context.Context, run sdkclient.WorkflowRun) (done Deletion, err error) {
	wait, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(startTimeout, func() {
		d, err := c.client.options.Temporal.DescribeWorkflowExecution(wait, run.GetID(), "")
		if err == nil && d.GetPendingWorkflowTask().GetState() == enumspb.PENDING_WORKFLOW_TASK_STATE_SCHEDULED {
			cancel(fmt.Errorf("delete context %s: %w: the deletion begins when one runs", c.Name(), ErrNoWorker))
		}
	})
	defer watch.Stop()
	err = run.Get(wait, &done)
	if cause := context.Cause(wait); err != nil && errors.Is(cause, ErrNoWorker) {
		return done, cause
	}
	return c.client.localNames(done), c.deletionError(ctx, "delete", err)
}

// localNames returns a receipt with the names that the users of the client know.
func (c *Client) localNames(d Deletion) Deletion {
	d.ContextName, _ = c.nameOf(d.ContextName)
	for i, fork := range d.KeptForks {
		d.KeptForks[i], _ = c.nameOf(fork)
	}
	for i, fork := range d.DeletedForks {
		d.DeletedForks[i] = c.localNames(fork)
	}
	return d
}

// deletionError returns why a deletion failed, without the ids of Temporal.
func (c *Context) deletionError(ctx context.Context, operation string, err error) error {
	if failed := new(temporal.ApplicationError); errors.As(err, &failed) {
		return fmt.Errorf("%s context %s: %s", operation, c.Name(), failed.Message())
	}
	return c.explain(ctx, operation, err, ErrUnreachable)
}

// checkIsLeft returns ErrNoContext if nothing of the context is left to delete.
func (c *Context) checkIsLeft(ctx context.Context, operation string) error {
	_, err := c.client.options.Temporal.DescribeWorkflowExecution(ctx, wire.WorkflowID(c.name), "")
	if !errors.As(err, new(*serviceerror.NotFound)) {
		return c.explain(ctx, operation, err, ErrUnreachable)
	}
	isStored, storeErr := c.client.options.Archive.IsStored(ctx, c.name)
	if isStored || storeErr != nil {
		return storeErr
	}
	if isDeleting, err := c.isDeleting(ctx); isDeleting || err != nil {
		return err
	}
	return c.explain(ctx, operation, err, ErrUnreachable)
}

func (c *Context) isDeleting(ctx context.Context) (bool, error) {
	d, err := c.client.options.Temporal.DescribeWorkflowExecution(ctx, wire.DeletionID(c.name), "")
	if errors.As(err, new(*serviceerror.NotFound)) {
		return false, nil
	}
	return d.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, err
}

// Deletion returns the receipt of the newest deletion of the context, which has no end while the deletion runs. The
// error is ErrNoContext if there was none within the retention of the namespace.
func (c *Context) Deletion(ctx context.Context) (Deletion, error) {
	const operation = "get the deletion of"
	d, err := c.client.options.Temporal.DescribeWorkflowExecution(ctx, wire.DeletionID(c.name), "")
	if err != nil {
		return Deletion{}, c.explain(ctx, operation, err, ErrUnreachable)
	}
	info := d.GetWorkflowExecutionInfo()
	done := Deletion{ContextName: c.name, StartedAt: info.GetStartTime().AsTime(), Removed: []wire.Removed{}}
	if info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return c.client.localNames(done), nil
	}
	err = c.client.options.Temporal.GetWorkflow(ctx, wire.DeletionID(c.name), info.GetExecution().GetRunId()).Get(ctx, &done)
	return c.client.localNames(done), c.deletionError(ctx, operation, err)
}
