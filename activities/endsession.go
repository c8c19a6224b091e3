package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"

	"github.com/seed-9ed7edd4/chronicle/internal/eventlog"
	"github.com/seed-9ed7edd4/chronicle/internal/pause"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// CloseTimeout is how long [Activities.EndSession] waits for a run to close.
const CloseTimeout = 10 * time.Second

// openingTime is how long a run that has begun to open before a deletion may take to record that.
const openingTime = 3 * time.Second

// EndSessionInput is the input of [Activities.EndSession].
type EndSessionInput struct {
	ContextName   string    `json:"contextName"`
	InactiveSince time.Time `json:"inactiveSince,omitzero"` // that of [wire.Delete]
}

// EndedSession is the result of [Activities.EndSession].
type EndedSession struct {
	// IsActive means that the context was active after EndSessionInput.InactiveSince, is answering or waits.
	IsActive bool `json:"isActive,omitempty"`
	// WasTerminated means that a worker may still write to the blob store for [StrayWrites].
	WasTerminated bool `json:"wasTerminated,omitempty"`
}

// EndSession ends the session of a context that is being deleted. A run that closes by itself leaves nothing in the
// caches of its worker, and no attempt that writes. One that does not within [CloseTimeout] is terminated, unless the
// context must be inactive. A run that has not opened waits for the end of the deletion, and is left alone.
func (a *Activities) EndSession(ctx context.Context, in EndSessionInput) (ended EndedSession, err error) {
	ctx, stop := withHeartbeats(ctx)
	defer stop()
	began := activity.GetInfo(ctx).ScheduledTime // of the first attempt
	run, err := a.currentRun(ctx, in.ContextName)
	isLater := false
	if err == nil && isRunning(run) && isFresh(run) {
		isLater, err = a.staysUnopened(ctx, run)
	}
	if err == nil && isRunning(run) && !isLater {
		run, err = a.closeRun(ctx, run, in.InactiveSince)
	}
	switch {
	case err != nil:
	case !in.InactiveSince.IsZero():
		ended.IsActive, err = a.isActive(ctx, run, in)
	case isLater:
	case run.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED && run.GetCloseTime().AsTime().After(began): // by an earlier attempt
		ended.WasTerminated = true
	case isRunning(run):
		ended.WasTerminated = true
		err = a.terminate(ctx, execution{run.GetExecution().GetWorkflowId(), run.GetExecution().GetRunId()})
	}
	if err != nil {
		return ended, fmt.Errorf("end the session of context %s: %w", in.ContextName, err)
	}
	return ended, nil
}

// currentRun returns nil if the server has no run.
func (a *Activities) currentRun(ctx context.Context, contextName string) (*workflowpb.WorkflowExecutionInfo, error) {
	run, err := a.options.Temporal.DescribeWorkflowExecution(ctx, wire.WorkflowID(contextName), "")
	if errors.As(err, new(*serviceerror.NotFound)) {
		return nil, nil
	}
	return run.GetWorkflowExecutionInfo(), err
}

func isRunning(run *workflowpb.WorkflowExecutionInfo) bool {
	return run.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
}

// isFresh reports whether a run neither continues another one nor is a copy of it, and so has no content of an earlier run.
func isFresh(run *workflowpb.WorkflowExecutionInfo) bool {
	return run.GetFirstRunId() == run.GetExecution().GetRunId()
}

// staysUnopened reports whether a run has recorded nothing for openingTime.
func (a *Activities) staysUnopened(ctx context.Context, run *workflowpb.WorkflowExecutionInfo) (bool, error) {
	for end := time.Now().Add(openingTime); time.Now().Before(end); {
		if hasOpened, err := a.hasOpened(ctx, run); hasOpened || err != nil {
			return false, err
		}
		if !pause.For(ctx, openingTime/3) { // a history of unprocessed signals may be long
			return false, ctx.Err()
		}
	}
	return true, nil
}

// hasOpened reports whether a run has opened its session: its first marker is the result of [Activities.Open].
func (a *Activities) hasOpened(ctx context.Context, run *workflowpb.WorkflowExecutionInfo) (bool, error) {
	request := &workflowservice.GetWorkflowExecutionHistoryRequest{Namespace: activity.GetInfo(ctx).Namespace, Execution: run.GetExecution()}
	for {
		page, err := a.options.Temporal.WorkflowService().GetWorkflowExecutionHistory(ctx, request)
		if err != nil {
			return false, err
		}
		for _, e := range page.GetHistory().GetEvents() {
			if e.GetEventType() == enumspb.EVENT_TYPE_MARKER_RECORDED {
				return true, nil
			}
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return false, nil
		}
	}
}

// closeRun asks a run to end its session, and returns the run when it is closed, or after CloseTimeout.
func (a *Activities) closeRun(ctx context.Context, run *workflowpb.WorkflowExecutionInfo, inactiveSince time.Time) (*workflowpb.WorkflowExecutionInfo, error) {
	id, runID := run.GetExecution().GetWorkflowId(), run.GetExecution().GetRunId()
	err := a.options.Temporal.SignalWorkflow(ctx, id, runID, wire.SignalClose, wire.Close{Reason: "deletion", InactiveSince: inactiveSince, IsDeletion: inactiveSince.IsZero()})
	if err != nil && !errors.As(err, new(*serviceerror.NotFound)) { // it has closed
		return run, err
	}
	end := time.Now().Add(CloseTimeout)
	if !inactiveSince.IsZero() && a.staysOpen(ctx, id, runID) {
		return run, nil
	}
	for time.Now().Before(end) {
		described, err := a.options.Temporal.DescribeWorkflowExecution(ctx, id, runID)
		if err != nil {
			return run, err
		}
		if run = described.GetWorkflowExecutionInfo(); !isRunning(run) {
			return run, nil
		}
		if !pause.For(ctx, goneInterval) {
			return run, ctx.Err()
		}
	}
	return run, nil
}

// staysOpen reports whether a run has decided not to end its session: it answers a query when it has processed the signals
// before it. Without an answer, it is unknown.
func (a *Activities) staysOpen(ctx context.Context, id, runID string) bool {
	ctx, cancel := context.WithTimeout(ctx, CloseTimeout)
	defer cancel()
	var state wire.State
	value, err := a.options.Temporal.QueryWorkflow(ctx, id, runID, wire.QueryState)
	return err == nil && value.Get(&state) == nil && state.Status != wire.StatusClosed
}

// isActive reports whether a context is active, or another run of it has started. Run is the newest one before; nil: none.
func (a *Activities) isActive(ctx context.Context, run *workflowpb.WorkflowExecutionInfo, in EndSessionInput) (bool, error) {
	current, err := a.currentRun(ctx, in.ContextName)
	if err != nil || isRunning(current) || current.GetExecution().GetRunId() != run.GetExecution().GetRunId() {
		return true, err
	}
	isComplete := current == nil || current.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
	if !isComplete && current.GetCloseTime().AsTime().After(in.InactiveSince) {
		return true, nil // its history may have input that no log has
	}
	last, err := a.log.LastActivity(ctx, in.ContextName)
	if errors.Is(err, eventlog.ErrNoContext) {
		return false, nil
	}
	return last.After(in.InactiveSince), err
}

func (a *Activities) terminate(ctx context.Context, x execution) error {
	err := a.options.Temporal.TerminateWorkflow(ctx, x.workflowID, x.runID, "the context is deleted")
	if errors.As(err, new(*serviceerror.NotFound)) {
		return nil // it has ended
	}
	return err
}
