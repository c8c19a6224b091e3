package client

import (
	"context"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// UnattendedSince returns since when an answer or a tool call has waited for a worker to take it; zero: none waits. Its
// worker died, or all workers are busy. The history does not show it. It takes at most 5 s and needs no worker.
func (c *Context) UnattendedSince(ctx context.Context) (time.Time, error) {
	limited, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	d, err := c.client.options.Temporal.DescribeWorkflowExecution(limited, wire.WorkflowID(c.name), "")
	if err != nil {
		return time.Time{}, c.explain(ctx, "look for a worker of", err, ErrUnreachable)
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
