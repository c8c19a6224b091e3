package doctor

import (
	"context"
	"fmt"
	"time"
)

const (
	maxSkew = 2 * time.Second
	// brokenSkew is half of PollTimeout and below the tolerance of webhooks for signatures, 5 minutes.
	brokenSkew = time.Minute
	// clockQueue is the same for all checks, because metrics of the Temporal SDK have it as a label.
	clockQueue = "doctor"
)

func (d *Deployment) clock() Check {
	return Check{
		Name: "clock.skew",
		Why: "with a wrong clock, receivers reject webhooks, clouds reject signed requests, valid keys and certificates count as expired, and " +
			"polls of workers seem old",
		Needs: []string{CheckConnection, checkNamespace},
		Run: func(ctx context.Context) Result {
			skew, precision, err := d.skew(ctx)
			if err != nil {
				return failed("read the clock of the server", err)
			}
			const fix = "synchronize the clocks of this machine and of the Temporal server by NTP"
			switch size := skew.Abs(); {
			case size > brokenSkew:
				return failure(fix, "the clock of this machine is %s that of the Temporal server, more than %v", described(skew), brokenSkew)
			case size > maxSkew:
				return warning(fix, "the clock of this machine is %s that of the Temporal server, more than %v", described(skew), maxSkew)
			case size == 0:
				return ok("the clocks of this machine and of the Temporal server agree within %v", latency(precision))
			}
			return ok("the clock of this machine is %s that of the Temporal server", described(skew))
		},
	}
}

func described(skew time.Duration) string {
	if skew < 0 {
		return fmt.Sprintf("%v behind", latency(-skew))
	}
	return fmt.Sprintf("%v ahead of", latency(skew))
}

// skew starts a workflow and compares its start time with the local times before and after. The
// difference is 0 if the start time is between them.
func (d *Deployment) skew(ctx context.Context) (skew, precision time.Duration, err error) {
	ctx, cancel := shortened(ctx)
	defer cancel()
	options := startOptions(clockQueue)
	options.StartDelay = maxLife / 2 // no task for the queue, which nobody polls
	before := d.now()
	run, err := d.client().ExecuteWorkflow(ctx, options, workflowName)
	after := d.now()
	if err != nil {
		return 0, 0, err
	}
	defer Delete(ctx, d.client(), d.Namespace, run)
	described, err := d.client().DescribeWorkflowExecution(ctx, run.GetID(), run.GetRunID())
	if err != nil {
		return 0, 0, err
	}
	started := described.GetWorkflowExecutionInfo().GetStartTime().AsTime()
	switch {
	case started.Before(before):
		skew = before.Sub(started)
	case started.After(after):
		skew = after.Sub(started)
	}
	return skew, after.Sub(before), nil
}
