package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	sdkclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/pause"
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
	// InactiveSince keeps a context that was active later, is answering or waits for an approval or a result. Input that
	// is accepted later is never lost: it ends the deletion, or, if that has begun to delete, starts a new context.
	// Zero: the context is deleted anyway.
	InactiveSince time.Time
	// Progress receives what was removed so far, about once a second. Nil: not called.
	Progress func(Deletion)
}

const (
	startTimeout     = 10 * time.Second // in which a worker starts a deletion
	unstarted        = 2                // history events of a workflow that no worker has started
	progressInterval = time.Second
	progressTimeout  = 2 * time.Second // of a query for the progress; without a worker, there is none
)

// Delete ends the session, deletes the context everywhere, and returns what was removed: its histories in Temporal, its
// schedules, and its log, blobs and cursors in the blob store. Nothing can undo it. Afterwards the name is free: input
// that arrives when the session has ended begins a new context as soon as the deletion has ended.
//
// The deletion is a workflow, which continues without the caller: after an error, [Context.Deletion] reports it, and
// Delete waits for it again, or resumes it if it failed. It takes half a minute on most servers, which delete histories
// late, and a minute longer if a worker may still write to the blob store. The error is ErrNoContext, ErrNoArchive,
// ErrOtherStore, ErrUnreachable, ErrDeleting if a deletion with other options runs, ErrNoWorker if no worker starts
// within 10 s, or that of a deletion which failed, with what it removed.
func (c *Context) Delete(ctx context.Context, o DeleteOptions) (Deletion, error) {
	_, run, err := c.delete(ctx, o)
	if err != nil {
		return Deletion{}, err
	}
	return c.awaitDeletion(ctx, run, o.Progress)
}

// StartDeletion is [Context.Delete] without the wait. [Context.Deletion] reports the outcome. Without
// DeleteOptions.InactiveSince, it returns when the session has ended, or after 10 s, so that later input begins a new
// context.
func (c *Context) StartDeletion(ctx context.Context, o DeleteOptions) error {
	session, _, err := c.delete(ctx, o)
	if err == nil && session != "" && o.InactiveSince.IsZero() {
		ctx, cancel := context.WithTimeout(ctx, startTimeout)
		defer cancel()
		_ = c.client.options.Temporal.GetWorkflow(ctx, wire.WorkflowID(c.name), session).Get(ctx, nil)
	}
	return err
}

// delete starts a deletion, or finds the one that runs. Session is the id of the run that the deletion ends; "": unknown,
// or none.
func (c *Context) delete(ctx context.Context, o DeleteOptions) (session string, run sdkclient.WorkflowRun, err error) {
	const operation = "delete"
	if c.client.options.Archive == nil {
		return "", nil, fmt.Errorf("%s context %s: %w", operation, c.Name(), errStoreRequired)
	}
	if o.Forks != "" && !slices.Contains(o.Forks.Values(), o.Forks) {
		return "", nil, &event.FieldError{Field: "forks", Problem: fmt.Sprintf("%q is invalid (want keep or delete)", event.Redact(string(o.Forks), 40))}
	}
	if err := c.checkStore(ctx, operation); err != nil {
		return "", nil, err
	}
	if session, err = c.checkIsLeft(ctx, operation); err != nil {
		return "", nil, err
	}
	queue, err := c.TaskQueue(ctx)
	if err != nil {
		return "", nil, err
	}
	in := wire.Delete{ContextName: c.name, Forks: cmp.Or(o.Forks, KeepForks), InactiveSince: o.InactiveSince}
	options := sdkclient.StartWorkflowOptions{
		ID: wire.DeletionID(c.name), TaskQueue: queue, WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowExecutionErrorWhenAlreadyStarted: true, Memo: in.Memo(),
	}
	run, err = c.client.options.Temporal.ExecuteWorkflow(ctx, options, wire.WorkflowDelete, in)
	if running := new(serviceerror.WorkflowExecutionAlreadyStarted); errors.As(err, &running) {
		session = ""
		run, err = c.runningDeletion(ctx, running.RunId, in)
	}
	return session, run, c.explain(ctx, operation, err, ErrBusy)
}

// runningDeletion returns the deletion that runs. The error is ErrDeleting if it does something else than in says.
func (c *Context) runningDeletion(ctx context.Context, runID string, in wire.Delete) (sdkclient.WorkflowRun, error) {
	d, err := c.client.options.Temporal.DescribeWorkflowExecution(ctx, wire.DeletionID(c.name), runID)
	if err != nil {
		return nil, err
	}
	switch forks := wire.ForksOf(d.GetWorkflowExecutionInfo().GetMemo()); {
	case forks == "":
		return nil, fmt.Errorf("%w: it deletes the context only if it is inactive (repeat when it has ended)", ErrDeleting)
	case forks != in.Forks || !in.InactiveSince.IsZero():
		return nil, fmt.Errorf("%w: its choice for forks is %s (repeat with this choice, or when it has ended)", ErrDeleting, forks)
	}
	return c.client.options.Temporal.GetWorkflow(ctx, wire.DeletionID(c.name), runID), nil
}

// awaitDeletion returns ErrNoWorker if no worker starts the deletion within startTimeout.
func (c *Context) awaitDeletion(ctx context.Context, run sdkclient.WorkflowRun, progress func(Deletion)) (done Deletion, err error) {
	wait, cancel := context.WithCancelCause(ctx)
	var watches sync.WaitGroup
	defer watches.Wait()
	defer cancel(nil)
	watches.Go(func() {
		if !pause.For(wait, startTimeout) {
			return
		}
		d, err := c.client.options.Temporal.DescribeWorkflowExecution(wait, run.GetID(), "")
		if err == nil && d.GetWorkflowExecutionInfo().GetHistoryLength() <= unstarted {
			cancel(fmt.Errorf("delete context %s: %w: the deletion begins when one runs", c.Name(), ErrNoWorker))
		}
	})
	if progress != nil {
		watches.Go(func() {
			for pause.For(wait, progressInterval) {
				if d, err := c.Deletion(wait); err == nil && d.EndedAt.IsZero() {
					progress(d)
				}
			}
		})
	}
	err = run.Get(wait, &done)
	if cause := context.Cause(wait); err != nil && errors.Is(cause, ErrNoWorker) {
		return done, cause
	}
	if done, err = c.endedDeletion(ctx, done, err); err == nil && done.Error != "" {
		err = fmt.Errorf("delete context %s: %s", c.Name(), done.Error)
	}
	return done, err
}

// endedDeletion returns the receipt of a deletion that has ended with a result or an error.
func (c *Context) endedDeletion(ctx context.Context, done Deletion, err error) (Deletion, error) {
	failed, ended := new(temporal.ApplicationError), new(temporal.WorkflowExecutionError)
	switch {
	case errors.As(err, &failed):
		if detailsErr := failed.Details(&done); detailsErr != nil {
			done = Deletion{ContextName: c.name, Removed: []wire.Removed{}}
		}
		done.Error, err = failed.Message(), nil
	case errors.As(err, &ended):
		done.Error, err = "it was stopped (delete the context again)", nil
	}
	return c.client.localNames(done), c.explain(ctx, "delete", err, ErrBusy)
}

// localNames returns a receipt with the names that the users of the client know.
func (c *Client) localNames(d Deletion) Deletion {
	d.ContextName, _ = c.nameOf(d.ContextName)
	for _, forks := range [][]string{d.KeptForks, d.DeletedForks} {
		for i, fork := range forks {
			forks[i], _ = c.nameOf(fork)
		}
	}
	return d
}

// checkIsLeft returns the id of the run that is open; "": none. The error is ErrNoContext if nothing of the context is left
// to delete.
func (c *Context) checkIsLeft(ctx context.Context, operation string) (openRun string, err error) {
	d, err := c.client.options.Temporal.DescribeWorkflowExecution(ctx, wire.WorkflowID(c.name), "")
	if info := d.GetWorkflowExecutionInfo(); info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		openRun = info.GetExecution().GetRunId()
	}
	if !errors.As(err, new(*serviceerror.NotFound)) {
		return openRun, c.explain(ctx, operation, err, ErrBusy)
	}
	isStored, storeErr := c.client.options.Archive.IsStored(ctx, c.name)
	if isStored || storeErr != nil {
		return "", storeErr
	}
	if isDeleting, err := c.client.log.IsDeleting(ctx, c.name); isDeleting || err != nil {
		return "", err
	}
	return "", c.explain(ctx, operation, err, ErrBusy)
}

// Deletion returns the receipt of the newest deletion of the context: what was removed so far while it runs. The error
// is ErrNoContext if there was none within the retention of the namespace.
func (c *Context) Deletion(ctx context.Context) (Deletion, error) {
	const operation = "get the deletion of"
	d, err := c.client.options.Temporal.DescribeWorkflowExecution(ctx, wire.DeletionID(c.name), "")
	if err != nil {
		return Deletion{}, c.explain(ctx, operation, err, ErrBusy)
	}
	info := d.GetWorkflowExecutionInfo()
	id, runID := wire.DeletionID(c.name), info.GetExecution().GetRunId()
	begun := Deletion{ContextName: c.name, StartedAt: info.GetStartTime().AsTime(), Removed: []wire.Removed{}}
	if info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return c.client.localNames(c.soFar(ctx, runID, begun)), nil
	}
	done := begun
	err = c.client.options.Temporal.GetWorkflow(ctx, id, runID).Get(ctx, &done)
	done, err = c.endedDeletion(ctx, done, err)
	done.StartedAt = cmp.Or(done.StartedAt, begun.StartedAt)
	done.EndedAt = cmp.Or(done.EndedAt, info.GetCloseTime().AsTime())
	return done, err
}

// soFar queries a running deletion. Without an answer of a worker, it returns begun.
func (c *Context) soFar(ctx context.Context, runID string, begun Deletion) Deletion {
	query, cancel := context.WithTimeout(ctx, progressTimeout)
	defer cancel()
	value, err := c.client.options.Temporal.QueryWorkflow(query, wire.DeletionID(c.name), runID, wire.QueryDeletion)
	done := begun
	if err == nil {
		err = value.Get(&done)
	}
	if err != nil || done.StartedAt.IsZero() { // the workflow has not begun
		return begun
	}
	return done
}
