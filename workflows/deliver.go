package workflows

import (
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/activities"
)

// deliveries are those of the hooks that receive the events of the run. Nil: none.
type deliveries []*delivery

type delivery struct {
	hook    string
	through int             // counter of the newest delivered event
	running workflow.Future // the Deliver activity; nil: none
	input   activities.DeliverInput
}

func (d deliveries) isReady() bool {
	return slices.ContainsFunc(d, func(d *delivery) bool { return d.running != nil && d.running.IsReady() })
}

func (d deliveries) done() bool {
	return !slices.ContainsFunc(d, func(d *delivery) bool { return d.running != nil })
}

// deliver starts an activity for each hook that lacks recorded events, unless one is running. Its
// retries never end: the activity waits for a dead hook, and the context does not.
func (r *run) deliver() {
	for _, d := range r.deliveries {
		if d.running != nil || d.through >= r.session.EventCount {
			continue
		}
		d.input = activities.DeliverInput{ContextName: r.name, Hook: d.hook, Through: r.session.EventCount}
		d.running = workflow.ExecuteActivity(workflow.WithActivityOptions(r.traced(r.ctx), workflow.ActivityOptions{
			StartToCloseTimeout: activities.DeliverTimeout,
			HeartbeatTimeout:    r.failover(),
			RetryPolicy:         &temporal.RetryPolicy{InitialInterval: time.Second, MaximumInterval: time.Minute},
			Summary:             "deliver events to hook " + cut(d.hook, shownKeyword),
		}), acts.Deliver, d.input)
	}
}

func (r *run) endDeliveries() {
	for _, d := range r.deliveries {
		if d.running == nil || !d.running.IsReady() {
			continue
		}
		var result activities.DeliverResult
		if d.running.Get(r.ctx, &result) != nil {
			// Not delivered. The next event or run starts the next delivery, which begins at the stored cursor.
			result.Through = d.input.Through
		}
		d.through, d.running = result.Through, nil
	}
}

// awaitEnd waits until the events of an ended session are delivered, but returns when new input
// arrives.
func (r *run) awaitEnd() {
	for {
		r.await(func() bool {
			return !r.inbox.empty() || r.deliveries.isReady() || r.deliveries.done() && workflow.AllHandlersFinished(r.ctx)
		})
		if !r.inbox.empty() || !r.deliveries.isReady() {
			return
		}
		r.endDeliveries()
		r.deliver()
	}
}
