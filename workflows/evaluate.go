package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// Evaluate sends the request of a recorded answer again and returns the new answer. If a worker dies or the provider asks
// to wait, it repeats the request. Register it as [wire.WorkflowEvaluate].
func Evaluate(ctx workflow.Context, in wire.Evaluation) (out wire.Evaluated, err error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: 25 * time.Hour, // the timeout of a context, at most 24 h, ends an attempt before
		HeartbeatTimeout:    10 * time.Second,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: time.Second, MaximumInterval: time.Minute, MaximumAttempts: activities.MaxEvaluations},
		Summary:             "answer " + in.Answer + " again",
	})
	err = workflow.ExecuteActivity(ctx, acts.Evaluate, in).Get(ctx, &out)
	return out, err
}
