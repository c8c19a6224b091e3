package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// Send is the workflow that a schedule starts: it sends one event to a context, which it creates, or
// whose next session it starts, if needed. Register it as [wire.WorkflowSend].
//
// It retries until the context has accepted or rejected the event. Its workflow id is the
// idempotency key, so neither a retry nor another workflow with the same id sends the event again.
func Send(ctx workflow.Context, in wire.Scheduled) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		// Also the time until another worker retries for a killed one.
		StartToCloseTimeout: 15 * time.Second,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: time.Second, MaximumInterval: time.Minute},
		Summary:             "send to " + in.ContextName,
	})
	return workflow.ExecuteActivity(ctx, acts.Send, activities.SendInput{
		ContextName:   in.ContextName,
		ClientEventID: wire.ScheduledEventID(in.ContextName, workflow.GetInfo(ctx).WorkflowExecution.ID),
		Event:         in.Event,
	}).Get(ctx, nil)
}
