package doctor

import (
	"context"
	"fmt"
	"slices"
	"time"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/workflow"
)

const (
	// A hop is the time from scheduling a task until a worker gets it. hopActivities run in sequence,
	// each with two hops: its own task and the workflow task that follows. A shard with default settings
	// first dispatches 20 tasks without delay, so only the newest measuredHops count.
	hopActivities = 25
	measuredHops  = 20
	timerDuration = 10 * time.Millisecond
	timingTimeout = 20 * time.Second
	// maxHop: after the 20 tasks without delay, a shard with default settings dispatches 20 times a second,
	// so each hop takes 50 ms; with the settings in deploy/dynamicconfig.yaml, about 5 ms.
	maxHop = 25 * time.Millisecond
	// maxLateness: with default settings, timers are up to a second late; with those in
	// deploy/dynamicconfig.yaml, a few milliseconds.
	maxLateness = 250 * time.Millisecond
)

const applySettings = "apply deploy/dynamicconfig.yaml to the Temporal server (%s); if it is applied, the server or its database is slow"

// hop measures by timestamps of the server only, so that neither the network nor this process counts.
func (d *Deployment) hop() Check {
	return Check{
		Name:    checkHop,
		Why:     "each turn waits for about three tasks of Temporal; history.transferProcessorMaxPollRPS limits how many a shard dispatches per second",
		Needs:   []string{checkNamespace},
		Timeout: timingTimeout,
		Run: func(ctx context.Context) Result {
			_, history, err := d.execute(ctx, timed)
			if err != nil {
				return failed("measure a workflow", err)
			}
			hops, lateness := timings(history)
			d.lateness = lateness
			return hopResult(hops)
		},
	}
}

func hopResult(hops []time.Duration) Result {
	if len(hops) == 0 {
		return failure("report this as a defect of Chronicle", "the history of the measured workflow contains no tasks")
	}
	newest := slices.Sorted(slices.Values(hops[max(0, len(hops)-measuredHops):]))
	median := newest[len(newest)/2]
	if median > maxHop {
		return warning(fmt.Sprintf(applySettings, "history.transferProcessorMaxPollRPS: 200"),
			"a task waits %v, more than %v (median of %d)", latency(median), maxHop, len(newest))
	}
	return ok("a task waits %v (median of %d)", latency(median), len(newest))
}

func (d *Deployment) timer() Check {
	return Check{
		Name: "temporal.timer",
		Why: "retries of failed requests, approvals and schedules wait for timers; history.timerProcessorMaxTimeShift delays those of a " +
			"server with default settings by up to a second",
		Needs: []string{checkHop},
		Run:   func(context.Context) Result { return timerResult(d.lateness) },
	}
}

func timerResult(lateness time.Duration) Result {
	if lateness > maxLateness {
		return warning(fmt.Sprintf(applySettings, "history.timerProcessorMaxTimeShift: 1ms"),
			"a timer of %v is %v late, more than %v", timerDuration, latency(lateness), maxLateness)
	}
	return ok("a timer of %v is %v late", timerDuration, latency(lateness))
}

func hopActivity(context.Context) error { return nil }

// timed is the workflow that is measured.
func timed(ctx workflow.Context) ([]Finding, error) {
	timer := workflow.NewTimer(ctx, timerDuration)
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout:   5 * time.Second,
		DisableEagerExecution: true, // an eager activity takes no hop
	})
	for range hopActivities {
		if err := workflow.ExecuteActivity(ctx, workflowName).Get(ctx, nil); err != nil {
			return nil, err
		}
	}
	return nil, timer.Get(ctx, nil)
}

// timings returns how long tasks waited until a worker got them, and how late the timer fired. The
// first task is omitted, because the worker may not have polled yet.
func timings(history []*historypb.HistoryEvent) (hops []time.Duration, lateness time.Duration) {
	scheduled := map[int64]time.Time{}
	wait := func(id int64, started *historypb.HistoryEvent) {
		if at, isKnown := scheduled[id]; isKnown {
			hops = append(hops, started.GetEventTime().AsTime().Sub(at))
		}
	}
	for _, event := range history {
		scheduled[event.GetEventId()] = event.GetEventTime().AsTime()
		if a := event.GetWorkflowTaskStartedEventAttributes(); a != nil {
			wait(a.GetScheduledEventId(), event)
		}
		if a := event.GetActivityTaskStartedEventAttributes(); a != nil {
			wait(a.GetScheduledEventId(), event)
		}
		if a := event.GetTimerFiredEventAttributes(); a != nil {
			lateness = event.GetEventTime().AsTime().Sub(scheduled[a.GetStartedEventId()]) - timerDuration
		}
	}
	return hops[min(1, len(hops)):], max(0, lateness)
}
