package doctor

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/api/workflowservice/v1"
)

const (
	maxSkew = 2 * time.Second
	// brokenSkew is half of PollTimeout and below the tolerance of webhooks for signatures, 5 minutes.
	brokenSkew = time.Minute
	// clockQueue is the same for all checks, because metrics of the Temporal SDK have it as a label.
	clockQueue = "doctor"
)

func (d *Deployment) clock(ctx context.Context) Result {
	skew, err := d.skew(ctx)
	if err != nil {
		return failed("read the clock of the server", err)
	}
	measured := fmt.Sprintf("the clock of this machine is %v ahead of that of the Temporal server", latency(skew))
	if skew < 0 {
		measured = fmt.Sprintf("the clock of this machine is %v behind that of the Temporal server", latency(-skew))
	}
	const fix = "synchronize the clocks of this machine and of the Temporal server by NTP"
	switch size := skew.Abs(); {
	case size > brokenSkew:
		return failure(fix, "%s, more than %v", measured, brokenSkew)
	case size > maxSkew:
		return warning(fix, "%s, more than %v", measured, maxSkew)
	}
	return ok("%s", measured)
}

// skew starts a workflow and compares its start time with the local times before and after. The
// difference is 0 if the start time is between them.
func (d *Deployment) skew(ctx context.Context) (skew time.Duration, err error) {
	ctx, cancel := shortened(ctx)
	defer cancel()
	options := startOptions(clockQueue)
	options.StartDelay = maxLife / 2 // no task for the queue, which nobody polls
	before := d.now()
	run, err := d.temporal.ExecuteWorkflow(ctx, options, workflowName)
	after := d.now()
	if err != nil {
		return 0, err
	}
	defer discard(ctx, d.temporal, d.Namespace, run)
	defer d.awaitListed(ctx, run.GetID())
	described, err := d.temporal.DescribeWorkflowExecution(ctx, run.GetID(), run.GetRunID())
	if err != nil {
		return 0, err
	}
	started := described.GetWorkflowExecutionInfo().GetStartTime().AsTime()
	switch {
	case started.Before(before):
		skew = before.Sub(started)
	case started.After(after):
		skew = after.Sub(started)
	}
	return skew, nil
}

// awaitListed waits until lists show a workflow that was just started. A server that deletes a workflow at the same time
// as it adds it to its lists may add it last, and shows it for ever.
func (d *Deployment) awaitListed(ctx context.Context, id string) {
	for ctx.Err() == nil {
		count, err := d.temporal.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Query: fmt.Sprintf("WorkflowId = '%s'", id)})
		if err != nil || count.GetCount() > 0 {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}
