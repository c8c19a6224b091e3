package workflows

import (
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/tracing/intercept"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// attempt is the scheduled attempt. The zero value is none.
type attempt struct {
	scheduledAttempt
	future workflow.Future // of the activity Generate; nil: none
	cancel workflow.CancelFunc
	drop   func() // removes the session from Options.Sessions
	isNew  bool   // the server does not know it yet
}

// scheduledAttempt is an attempt with its input: the session of the step that decided it.
type scheduledAttempt struct {
	start   reducer.StartAttempt
	session reducer.Session
	links   []activities.TraceLink
}

func (a attempt) is(requestID string, number int) bool {
	return a.future != nil && a.start.RequestID == requestID && a.start.Attempt == number
}

func (a attempt) isReady() bool { return a.future != nil && a.future.IsReady() }

// endedAttempt is the newest attempt that failed or was lost. The next attempt of its request receives it.
type endedAttempt struct {
	RequestID string `json:"requestId"`
	activities.PreviousAttempt
}

func (r *run) startAttempt(scheduled scheduledAttempt) {
	start := scheduled.start
	in := activities.AttemptInput{
		ContextName: r.name, StartAttempt: start, MaxAttempts: start.Retry.MaxRetries + 1, Links: scheduled.links,
	}
	if before := r.ended; before != nil && before.RequestID == start.RequestID {
		in.Previous = &before.PreviousAttempt
	}
	r.ended = nil
	info := workflow.GetInfo(r.ctx)
	ctx, cancel := workflow.WithCancel(r.traced(r.ctx))
	r.attempt = attempt{
		scheduledAttempt: scheduled, isNew: true, cancel: cancel,
		drop:   r.sessions.Put(info.WorkflowExecution.RunID, start.RequestID, start.Attempt, scheduled.session),
		future: workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, r.attemptOptions(start, in.MaxAttempts)), acts.Generate, in),
	}
}

// attemptOptions let Temporal retry errors that precede the sending. A worker that dies ends the attempt: what it
// has sent must not be repeated unseen.
func (r *run) attemptOptions(start reducer.StartAttempt, maxAttempts int) workflow.ActivityOptions {
	what := count(start.Messages, "message")
	if start.Compaction != nil {
		what = "summary of " + count(start.Compaction.Messages, "message")
	}
	return workflow.ActivityOptions{
		// This detects only a stuck worker: Generate has timeouts of its own, which a wait for a budget extends.
		StartToCloseTimeout: max(0, start.SendAt.Sub(r.now())) + milliseconds(2*start.TimeoutMs) + 30*time.Second,
		HeartbeatTimeout:    r.failover(),
		WaitForCancellation: true,
		// The worker that completes this workflow task may be the one that stops. The SDK loses an activity that the server
		// starts with the completion while the worker stops.
		DisableEagerExecution: r.isHandedBack,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval:        milliseconds(start.Retry.InitialDelayMs),
			BackoffCoefficient:     start.Retry.BackoffFactor,
			MaximumInterval:        milliseconds(start.Retry.MaxDelayMs),
			MaximumAttempts:        int32(maxAttempts),
			NonRetryableErrorTypes: []string{"TemporalTimeout:Heartbeat", "TemporalTimeout:StartToClose"},
		},
		Summary: fmt.Sprintf("turn %d · %s · %s", start.Turn, start.Model, what),
	}
}

// failover is the heartbeat timeout of activities.
func (r *run) failover() time.Duration {
	if r.opened.FailoverMs == 0 {
		return activities.DefaultFailover
	}
	return milliseconds(r.opened.FailoverMs)
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// stopAttempt stops the attempt by a message over NATS. Without an acknowledgement, because no worker runs the
// attempt or NATS is unavailable, Temporal cancels the activity. Only a message can stop an attempt on condition
// that it has not been sent.
func (r *run) stopAttempt(stop reducer.StopAttempt) {
	if !r.attempt.is(stop.RequestID, stop.Attempt) {
		return
	}
	if r.attempt.isNew {
		r.attempt.cancel()
		return
	}
	ctx := workflow.WithLocalActivityOptions(intercept.WithParent(r.ctx, r.trace.newest()), workflow.LocalActivityOptions{
		ScheduleToCloseTimeout: 2 * time.Second,
		RetryPolicy:            &temporal.RetryPolicy{MaximumAttempts: 1},
	})
	var isAcknowledged bool
	err := workflow.ExecuteLocalActivity(ctx, acts.Stop, activities.StopInput{ContextName: r.name, Stop: stop}).Get(ctx, &isAcknowledged)
	if (err != nil || !isAcknowledged) && !stop.Unsent {
		r.attempt.cancel()
	}
}

// endAttempt returns the result of the attempt.
func (r *run) endAttempt() reducer.AttemptEnded {
	start := r.attempt.start
	var result reducer.AttemptEnded
	var heartbeat *activities.Heartbeat
	if err := r.attempt.future.Get(r.ctx, &result); err != nil {
		result, heartbeat = resultOf(err)
	}
	r.attempt.cancel() // releases the child of r.ctx
	r.attempt.drop()
	r.attempt = attempt{}
	r.trace.end(result.Outcome, result.Trace)
	r.isHandedBack = result.Outcome == reducer.HandedBack
	if result.Outcome == reducer.Failed || result.Outcome == reducer.Lost {
		r.ended = &endedAttempt{start.RequestID, activities.PreviousAttempt{
			Outcome: result.Outcome, Fallback: start.Fallback, Heartbeat: heartbeat,
		}}
	}
	result.At, result.RequestID, result.Attempt = r.now(), start.RequestID, start.Attempt
	return result
}

// resultOf returns the result of an attempt whose activity returned none, and its last heartbeat; nil: none.
func resultOf(err error) (reducer.AttemptEnded, *activities.Heartbeat) {
	if errors.As(err, new(*temporal.CanceledError)) {
		return reducer.AttemptEnded{Outcome: reducer.Withdrawn}, nil // no worker had it
	}
	result := reducer.AttemptEnded{
		Outcome: reducer.Failed, Kind: event.FailureUnavailable, Retryable: true,
		Error: event.Redact(err.Error(), reducer.MaxAttemptError),
	}
	var application *temporal.ApplicationError
	if errors.As(err, &application) {
		result.Error = event.Redact(application.Message(), reducer.MaxAttemptError)
	}
	var timeout *temporal.TimeoutError
	if !errors.As(err, &timeout) {
		return result, nil
	}
	var heartbeat *activities.Heartbeat
	if timeout.HasLastHeartbeatDetails() {
		heartbeat = &activities.Heartbeat{}
		if timeout.LastHeartbeatDetails(heartbeat) != nil {
			heartbeat = nil
		} else {
			result.ProviderID, result.Model, result.Usage, result.Trace = heartbeat.ProviderID, heartbeat.Model, heartbeat.Usage, heartbeat.Trace
		}
	}
	if timeout.TimeoutType() == enumspb.TIMEOUT_TYPE_HEARTBEAT {
		result.Outcome, result.Kind, result.Retryable, result.Error = reducer.Lost, "", false, "its worker stopped sending heartbeats"
		return result, heartbeat
	}
	result.Kind, result.Error = event.FailureTimeout, fmt.Sprintf("the worker did not end the attempt (%v)", timeout.TimeoutType())
	return result, heartbeat
}

// snapshot returns the session of the scheduled attempt.
func (r *run) snapshot(requestID string, number int) (reducer.Session, error) {
	if !r.attempt.is(requestID, number) {
		return reducer.Session{}, fmt.Errorf("attempt %d of request %s is not running", number, requestID)
	}
	session := r.attempt.session
	if !wire.Fits(session) {
		return reducer.Session{}, errors.New("the session is too large for the answer to a query: read the log")
	}
	session.Recent = nil // an attempt does not need it
	return session, nil
}
