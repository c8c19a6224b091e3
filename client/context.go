package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	sdkclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/pause"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// Context is a handle for a context. It is safe for concurrent use.
type Context struct {
	client *Client
	name   string // with the tenant
}

// Name returns the name of the context, without the tenant if the client is that of a tenant.
func (c *Context) Name() string {
	name, _ := c.client.nameOf(c.name)
	return name
}

const (
	queryTimeout     = 5 * time.Second
	notReadyInterval = 10 * time.Millisecond
)

// State is the state of a context, without its log.
type State = wire.State

// State queries the state of the context. It requires a worker and takes at most 6 s. The status of a context whose
// run was terminated is closed, as in lists, and its Request is nil.
func (c *Context) State(ctx context.Context) (State, error) {
	var state State
	query, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	value, isTerminated, err := c.query(query, wire.QueryState)
	if err != nil {
		onTimeout := ErrNoWorker
		if query.Err() != nil {
			onTimeout = c.timeoutCause(ctx)
		}
		return state, c.explain(ctx, "get the state of", err, onTimeout)
	}
	if err := value.Get(&state); err != nil {
		return state, fmt.Errorf("get the state of context %s: %w", c.Name(), err)
	}
	if isTerminated {
		state.Status, state.Request = wire.StatusClosed, nil
	}
	return state, nil
}

// query returns whether the newest run was terminated, timed out or failed, which its result does not show. A run
// rejects queries until its first workflow task is complete.
func (c *Context) query(ctx context.Context, name string, args ...any) (value converter.EncodedValue, isTerminated bool, err error) {
	request := &sdkclient.QueryWorkflowWithOptionsRequest{
		WorkflowID: wire.WorkflowID(c.name), QueryType: name, Args: args,
		QueryRejectCondition: enumspb.QUERY_REJECT_CONDITION_NOT_COMPLETED_CLEANLY,
	}
	for {
		response, err := c.client.options.Temporal.QueryWorkflowWithOptions(ctx, request)
		switch {
		case err == nil && response.QueryRejected != nil:
			isTerminated = true
			request.QueryRejectCondition = enumspb.QUERY_REJECT_CONDITION_NONE
		case err == nil:
			return response.QueryResult, isTerminated, nil
		case !errors.As(err, new(*serviceerror.WorkflowNotReady)) || !pause.For(ctx, notReadyInterval):
			return nil, false, err
		}
	}
}

func (c *Context) timeoutCause(ctx context.Context) error {
	probe, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, err := c.client.options.Temporal.DescribeWorkflowExecution(probe, wire.WorkflowID(c.name), "")
	var unavailable *serviceerror.Unavailable
	if errors.As(err, &unavailable) || probe.Err() != nil {
		return ErrUnreachable
	}
	return ErrNoWorker
}

// Interrupt stops the running answer, if any.
func (c *Context) Interrupt(ctx context.Context) error {
	return c.signal(ctx, "interrupt", wire.SignalInterrupt, nil)
}

// Close stops the running answer and ends the session; the log contains the reason (empty:
// "closed"). It returns when Temporal has stored the signal. Closing again has no effect.
func (c *Context) Close(ctx context.Context, reason string) error {
	return c.signal(ctx, "close", wire.SignalClose, wire.Close{Reason: reason})
}

func (c *Context) signal(ctx context.Context, operation, name string, input any) error {
	if err := c.checkStore(ctx, operation); err != nil {
		return err
	}
	temporal := c.client.options.Temporal
	err := temporal.SignalWorkflow(ctx, wire.WorkflowID(c.name), "", name, input)
	var notFound *serviceerror.NotFound
	if errors.As(err, &notFound) {
		// Temporal returns this error for a closed context, too.
		if _, err := temporal.DescribeWorkflowExecution(ctx, wire.WorkflowID(c.name), ""); err == nil {
			return nil
		}
	}
	return c.explain(ctx, operation, err, ErrBusy)
}

// TaskQueue returns the task queue whose workers record the next input: that of the open run, which may have been
// started with another one, or else that of the client.
func (c *Context) TaskQueue(ctx context.Context) (string, error) {
	d, err := c.client.options.Temporal.DescribeWorkflowExecution(ctx, wire.WorkflowID(c.name), "")
	if err != nil && !errors.As(err, new(*serviceerror.NotFound)) {
		return "", c.explain(ctx, "find the task queue of", err, ErrBusy)
	}
	if d.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return d.GetExecutionConfig().GetTaskQueue().GetName(), nil
	}
	return c.client.options.TaskQueue, nil
}

// Events yields the recorded events after the id from; empty: from the first. An error comes last:
// ErrNoContext, ErrUnreachable, ErrNoArchive, a [*GapError], or that of the blob store.
func (c *Context) Events(ctx context.Context, from string) iter.Seq2[event.Event, error] {
	return c.EventsAndWaiting(ctx, from, nil)
}

// Events is [Context.Events] of the context with a name.
func (c *Client) Events(ctx context.Context, contextName, from string) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		opened, err := c.Open(contextName)
		if err != nil {
			yield(event.Event{}, err)
			return
		}
		opened.Events(ctx, from)(yield)
	}
}

// EventsAndWaiting is Events, and calls waiting with the work that no worker has done. The last call counts. Nil:
// not called.
func (c *Context) EventsAndWaiting(ctx context.Context, from string, waiting func(Waiting)) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for e, err := range c.client.log.EventsAndWaiting(ctx, c.name, from, waiting) {
			if !yield(e, unreachable(ctx, err)) {
				return
			}
		}
	}
}

// RunEvents is Events for the log that ends with a given run, which a reset may have replaced.
func (c *Context) RunEvents(ctx context.Context, runID, from string) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for e, err := range c.client.log.Run(ctx, c.name, runID, from) {
			if !yield(e, unreachable(ctx, err)) {
				return
			}
		}
	}
}
