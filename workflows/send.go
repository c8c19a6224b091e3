package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// Send is the workflow that a schedule starts. It sends one event to a context, and creates the
// context or starts its next session if needed. It retries until the context accepts or rejects the
// event. The workflow id is the idempotency key. Register it as [wire.WorkflowSend].
func Send(ctx workflow.Context, in wire.Scheduled) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: 15 * time.Second, // if a worker is killed, another one retries after this time
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: time.Second, MaximumInterval: time.Minute},
		Summary:             "send to " + in.ContextName,
	})
	return workflow.ExecuteActivity(ctx, acts.Send, activities.SendInput{
		ContextName:   in.ContextName,
		ClientEventID: wire.ScheduledEventID(in.ContextName, workflow.GetInfo(ctx).WorkflowExecution.ID),
		Event:         in.Event,
	}).Get(ctx, nil)
}
