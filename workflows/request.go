package workflows

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// startRequest starts Generate.
func (r *run) startRequest(start reducer.StartRequest) {
	r.running, r.requestID = start, start.RequestID
	var ctx workflow.Context
	ctx, r.cancel = workflow.WithCancel(r.ctx)
	r.generate = r.executeGenerate(ctx, start, start.FirstAttempt)
}

// executeGenerate schedules the attempts of a request from one on.
func (r *run) executeGenerate(ctx workflow.Context, start reducer.StartRequest, firstAttempt int) workflow.Future {
	attempts := attemptsFrom(start, firstAttempt)
	options := r.generateOptions(start)
	options.RetryPolicy = retryPolicy(start)
	options.RetryPolicy.MaximumAttempts = int32(attempts + reducer.SpareAttempts)
	return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options), acts.Generate, r.generateInput(start, firstAttempt, attempts))
}

// attemptsFrom is how many attempts the retry settings leave, at least one.
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
		TimeoutMs:    start.TimeoutMs,
	}
}

func (r *run) generateOptions(start reducer.StartRequest) workflow.ActivityOptions {
	model := start.Model
	if model == "" {
		model = r.defaultModel
	}
	return workflow.ActivityOptions{
		// The attempt ends by itself; this is for a worker that is stuck.
		StartToCloseTimeout: milliseconds(start.TimeoutMs+start.MaxWaitMs) + 30*time.Second,
		HeartbeatTimeout:    activities.HeartbeatTimeout,
		WaitForCancellation: true,
		Summary:             fmt.Sprintf("turn %d · %s · %s", start.Turn, model, count(start.Messages, "message")),
	}
}

// retryPolicy is that of a request, without its number of attempts.
func retryPolicy(start reducer.StartRequest) *temporal.RetryPolicy {
	return &temporal.RetryPolicy{
		InitialInterval:    milliseconds(start.Retry.InitialDelayMs),
		BackoffCoefficient: start.Retry.BackoffFactor,
		MaximumInterval:    milliseconds(start.Retry.MaxDelayMs),
	}
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// adoptRequest waits for the result of an attempt that the previous run started.
// Later attempts may be made by any worker.
func (r *run) adoptRequest(adopt reducer.AdoptRequest) {
	start := r.running
	r.requestID = adopt.RequestID
	var ctx workflow.Context
	ctx, r.cancel = workflow.WithCancel(r.ctx)
	generate, done := workflow.NewFuture(r.ctx)
	r.generate = generate
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
			r.adopted = attempt
			err := attempt.Get(ctx, &result)
			r.adopted = nil
			return err
		}
		err := get(workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options), acts.Generate, in))
		var failed *temporal.ApplicationError
		if errors.As(err, &failed) && !failed.NonRetryable() && attempts > 1 {
			delay := max(failed.NextRetryDelay(), milliseconds(start.Retry.InitialDelayMs))
			if err = workflow.Sleep(ctx, delay); err == nil {
				err = get(r.executeGenerate(ctx, start, adopt.Attempt+1))
			}
		}
		done.Set(result, err)
	})
}

// awaitAdopted lets the coroutine of adoptRequest handle an attempt that has completed.
// Coroutines run when this one blocks, and it may end the run before that.
func (r *run) awaitAdopted() {
	if r.adopted != nil && r.adopted.IsReady() {
		_ = workflow.Await(r.ctx, func() bool { return r.adopted == nil })
	}
}

// tellRequest lets the worker that makes the request decide whether it has to
// stop. When nobody hears it, no worker has begun, which will see the input, or
// NATS is away: then Generate says soon what the request was shown.
func (r *run) tellRequest(tell reducer.TellRequest) {
	r.hint(activities.Stop{RequestID: tell.RequestID, Reason: event.ReasonNewUserInput, Through: tell.Through})
}

// interruptRequest hands the wish to the worker that makes the request. When
// nobody hears it, the request waits for its next attempt, or NATS is away:
// then Temporal cancels the activity.
func (r *run) interruptRequest(interrupt reducer.InterruptRequest) {
	heard := r.hint(activities.Stop{RequestID: interrupt.RequestID, Reason: interrupt.Reason, Through: interrupt.Through})
	if !heard && r.cancel != nil {
		r.cancel()
	}
}

// hint reports whether the worker that makes the request has heard it.
func (r *run) hint(stop activities.Stop) (heard bool) {
	ctx := workflow.WithLocalActivityOptions(r.ctx, workflow.LocalActivityOptions{
		ScheduleToCloseTimeout: 2 * time.Second,
		RetryPolicy:            &temporal.RetryPolicy{MaximumAttempts: 1},
	})
	err := workflow.ExecuteLocalActivity(ctx, acts.Stop, activities.StopInput{
		ContextName: r.session.ContextName, Stop: stop,
	}).Get(ctx, &heard)
	return err == nil && heard
}
