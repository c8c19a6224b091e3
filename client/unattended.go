package client

import (
	"context"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// UnattendedSince returns since when an answer or a tool call has waited for a worker to take it; zero: none waits. Its
// worker died, or all workers are busy. The history does not show it. The error is ErrUnanswered if the newest run was
// terminated: nothing continues an answer that was running. It takes at most 5 s and needs no worker.
func (c *Context) UnattendedSince(ctx context.Context) (time.Time, error) {
	limited, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	d, err := c.client.options.Temporal.DescribeWorkflowExecution(limited, wire.WorkflowID(c.name), "")
	if err != nil {
		return time.Time{}, c.explain(ctx, "look for a worker of", err, ErrBusy)
	}
	switch d.GetWorkflowExecutionInfo().GetStatus() {
	case enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED, enumspb.WORKFLOW_EXECUTION_STATUS_FAILED,
		enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT, enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED:
		return time.Time{}, fmt.Errorf("look for a worker of context %s: %w", c.Name(), ErrUnanswered)
	}
	var since time.Time
	for _, a := range d.GetPendingActivities() {
		// An activity that failed waits for its next attempt, not for a worker.
		hasFailed := a.GetLastFailure() != nil && a.GetLastFailure().GetTimeoutFailureInfo() == nil
		if a.GetState() != enumspb.PENDING_ACTIVITY_STATE_SCHEDULED || hasFailed {
			continue
		}
		if at := a.GetScheduledTime().AsTime(); since.IsZero() || at.Before(since) {
			since = at
		}
	}
	return since, nil
}
