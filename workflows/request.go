package workflows

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/tracing/intercept"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

func (r *run) startRequest(start reducer.StartRequest) {
	lost := r.lostBefore(start)
	r.answer.start, r.answer.lost = start, nil
	links := r.trace.begin(start)
	r.logRequest(start.RequestID, func() line {
		return line{info, "request scheduled", []any{"attempt", start.FirstAttempt, "fallback", start.Fallback}}
	})
	var ctx workflow.Context
	ctx, r.answer.cancel = workflow.WithCancel(r.traced(r.ctx))
	r.answer.future = r.executeGenerate(ctx, start, start.FirstAttempt, lost, links...)
}

// lostBefore returns the lost attempt of the previous activity if that belongs to the same request.
func (r *run) lostBefore(start reducer.StartRequest) *activities.LostAttempt {
	if start.RequestID != r.answer.start.RequestID {
		return nil
	}
	return r.answer.lost
}

// executeGenerate schedules the attempts of a request from firstAttempt on.
func (r *run) executeGenerate(ctx workflow.Context, start reducer.StartRequest, firstAttempt int, lost *activities.LostAttempt, links ...activities.TraceLink) workflow.Future {
	attempts := attemptsFrom(start, firstAttempt)
	options := r.generateOptions(start)
	options.RetryPolicy = retryPolicy(start)
	options.RetryPolicy.MaximumAttempts = int32(attempts + reducer.SpareAttempts)
	in := r.generateInput(start, firstAttempt, attempts)
	in.Lost, in.Links = lost, links
	return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options), acts.Generate, in)
}

func attemptsFrom(start reducer.StartRequest, firstAttempt int) int {
	return max(1, start.Retry.MaxRetries+1-(firstAttempt-start.FirstAttempt))
}

func (r *run) generateInput(start reducer.StartRequest, firstAttempt, attempts int) activities.GenerateInput {
	return activities.GenerateInput{
		ContextName:  r.name,
		RequestID:    start.RequestID,
		FirstAttempt: firstAttempt,
		MaxAttempts:  attempts,
		Fallback:     start.Fallback,
		Through:      start.Through,
		ThroughAt:    start.ThroughAt,
		TimeoutMs:    start.TimeoutMs,
		Steps:        start.Steps,
		Limit:        start.Limit,
		MayCompact:   start.MayCompact,
		Compaction:   start.Compaction,
	}
}

func (r *run) generateOptions(start reducer.StartRequest) workflow.ActivityOptions {
	model := start.Model
	if model == "" {
		model = r.opened.defaultModel
	}
	what := count(start.Messages, "message")
	if start.Compaction != nil {
		what = "summary of " + count(start.Compaction.Messages, "message")
	}
	return workflow.ActivityOptions{
		// This detects only a stuck worker: Generate has timeouts of its own. It can also wait for a budget, for
		// about the timeout of an attempt; hence twice TimeoutMs.
		StartToCloseTimeout: milliseconds(2*start.TimeoutMs+start.MaxWaitMs) + 30*time.Second,
		HeartbeatTimeout:    activities.HeartbeatTimeout,
		WaitForCancellation: true,
		Summary:             fmt.Sprintf("turn %d · %s · %s", start.Turn, model, what),
	}
}

func retryPolicy(start reducer.StartRequest) *temporal.RetryPolicy {
	return &temporal.RetryPolicy{
		InitialInterval:    milliseconds(start.Retry.InitialDelayMs),
		BackoffCoefficient: start.Retry.BackoffFactor,
		MaximumInterval:    milliseconds(start.Retry.MaxDelayMs),
	}
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// adoptRequest waits for an attempt that the previous run started. Any worker may make later
// attempts.
func (r *run) adoptRequest(adopt reducer.AdoptRequest) {
	start := r.answer.start
	var ctx workflow.Context
	ctx, r.answer.cancel = workflow.WithCancel(r.traced(r.ctx))
	generate, done := workflow.NewFuture(r.ctx)
	r.answer.future = generate
	workflow.Go(ctx, func(ctx workflow.Context) {
		options := r.generateOptions(start)
		options.TaskQueue = adopt.Worker
		options.ScheduleToStartTimeout = activities.AdoptTimeout
		options.RetryPolicy = &temporal.RetryPolicy{MaximumAttempts: 1}
		attempts := attemptsFrom(start, adopt.Attempt)
		in := r.generateInput(start, adopt.Attempt, attempts)
		in.Adopt = true
		var result activities.GenerateResult
		get := func(attempt workflow.Future) error {
			r.answer.attempt = attempt
			err := attempt.Get(ctx, &result)
			r.answer.attempt = nil
			return err
		}
		err := get(workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options), acts.Generate, in))
		var failed *temporal.ApplicationError
		if errors.As(err, &failed) && !failed.NonRetryable() && (attempts > 1 || repairs(failed)) {
			delay := max(failed.NextRetryDelay(), milliseconds(start.Retry.InitialDelayMs))
			if err = workflow.Sleep(ctx, delay); err == nil {
				err = get(r.executeGenerate(ctx, start, adopt.Attempt+1, nil))
			}
		}
		done.Set(result, err)
	})
}

func repairs(failed *temporal.ApplicationError) bool {
	var failure activities.Failure
	return failed.HasDetails() && failed.Details(&failure) == nil && failure.Repairs
}

// awaitAdopted lets the coroutine of adoptRequest handle a completed attempt. Coroutines run only
// while this one blocks, and the run may end before that.
func (r *run) awaitAdopted() {
	if r.answer.attempt != nil && r.answer.attempt.IsReady() {
		_ = workflow.Await(r.ctx, func() bool { return r.answer.attempt == nil })
	}
}

// tellRequest tells the worker about new input. The worker stops an attempt that was sent without it.
// Without an acknowledgement, Generate sees the input in the session that it reads next, or in a stop
// check.
func (r *run) tellRequest(tell reducer.TellRequest) {
	r.sendStop(activities.Stop{RequestID: tell.RequestID, Reason: event.ReasonNewUserInput, Through: tell.Through})
}

// interruptRequest interrupts the request. Without an acknowledgement, because the request waits
// for its next attempt or NATS is unavailable, Temporal cancels the activity.
func (r *run) interruptRequest(interrupt reducer.InterruptRequest) {
	acknowledged := r.sendStop(activities.Stop{RequestID: interrupt.RequestID, Reason: interrupt.Reason, Through: interrupt.Through})
	if !acknowledged && r.answer.cancel != nil {
		r.answer.cancel()
	}
}

func (r *run) sendStop(stop activities.Stop) (acknowledged bool) {
	ctx := workflow.WithLocalActivityOptions(intercept.WithParent(r.ctx, r.trace.newest()), workflow.LocalActivityOptions{
		ScheduleToCloseTimeout: 2 * time.Second,
		RetryPolicy:            &temporal.RetryPolicy{MaximumAttempts: 1},
	})
	err := workflow.ExecuteLocalActivity(ctx, acts.Stop, activities.StopInput{
		ContextName: r.session.ContextName, Stop: stop,
	}).Get(ctx, &acknowledged)
	return err == nil && acknowledged
}
