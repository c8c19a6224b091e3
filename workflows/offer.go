package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// Offer looks for the tools of a setting on a worker, once. Register it as [wire.WorkflowOffer].
func Offer(ctx workflow.Context, in wire.Offer) (out wire.Offered, err error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: 15 * time.Second,
		RetryPolicy:         &temporal.RetryPolicy{MaximumAttempts: 1},
		Summary:             "look for tools",
	})
	err = workflow.ExecuteActivity(ctx, acts.CheckTools, in).Get(ctx, &out)
	return out, err
}
