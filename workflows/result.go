package workflows

import (
	"errors"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

func (r *run) result() reducer.RequestEnded {
	var result activities.GenerateResult
	err := r.answer.future.Get(r.ctx, &result)
	ended := reducer.RequestEnded{
		At: r.now(), Outcome: result.Outcome, Text: result.Text, Reason: result.Reason,
		Reasoning: result.Reasoning, ProviderState: result.ProviderState,
		AttemptEnd:   reducer.AttemptEnd{Duration: milliseconds(result.DurationMs), Usage: result.Usage},
		FinishReason: result.FinishReason, Overflow: result.Overflow, Omitted: result.Omitted,
	}
	ended.Hooks, ended.Offered = result.Hooks, result.Offered
	for _, call := range result.Calls {
		ended.Calls = append(ended.Calls, reducer.CalledTool(call))
	}
	attempted, lost, trace := result.Attempted, result.Lost, result.Trace
	if err != nil {
		var failure activities.Failure
		ended.Outcome, ended.Error, failure = classify(err, r.opened.rules)
		attempted, lost, trace = failure.Attempted, failure.Lost, failure.Trace
		ended.Kind, ended.Retryable, ended.Usage = failure.Kind, failure.Retryable, failure.Usage
		ended.Hooks, ended.Offered = failure.Hooks, failure.Offered
		ended.Exceeded, ended.Overflow, ended.Suspects = failure.Exceeded, failure.Overflow, failure.Suspects
	}
	r.trace.end(ended.Outcome, trace)
	r.answer.lost = lostOf(err, attempted, lost)
	requestID := r.answer.start.RequestID
	ended.Attempted = attemptedOf(requestID, attempted)
	if lost != nil {
		ended.Lost = &reducer.LostAttempt{Attempted: attemptedOf(requestID, lost.Attempted), Usage: lost.Usage}
	}
	return ended
}

// lostOf returns the attempt whose worker did not end it, unless a later attempt was sent.
func lostOf(err error, attempted activities.Attempted, before *activities.LostAttempt) *activities.LostAttempt {
	var timeout *temporal.TimeoutError
	var last activities.LostAttempt
	switch {
	case errors.As(err, &timeout):
		if timeout.HasLastHeartbeatDetails() && timeout.LastHeartbeatDetails(&last) == nil && last.Sent {
			last.Unsent = 0
			return &last
		}
		return nil
	case attempted.Sent:
		return nil
	default:
		return before
	}
}

func attemptedOf(requestID string, a activities.Attempted) reducer.Attempted {
	out := reducer.Attempted{RequestID: requestID, Attempt: a.Attempt, ProviderID: a.ProviderID, Model: a.Model}
	if a.Sent {
		out.Through = a.Through
	}
	return out
}

func classify(err error, rules reducer.Rules) (reducer.Outcome, string, activities.Failure) {
	var (
		failure     activities.Failure
		application *temporal.ApplicationError
		timeout     *temporal.TimeoutError
		cancelled   *temporal.CanceledError
	)
	switch {
	case errors.As(err, &cancelled):
		return reducer.Interrupted, "", failure
	case errors.As(err, &timeout):
		var last activities.LostAttempt
		if timeout.HasLastHeartbeatDetails() {
			_ = timeout.LastHeartbeatDetails(&last)
		}
		failure.Trace = last.Trace
		if last.Unsent > 0 {
			before := last
			before.Unsent = 0
			failure.Lost, last = &before, activities.LostAttempt{Attempted: activities.Attempted{Attempt: last.Unsent}}
		}
		isLost := timeout.TimeoutType() == enumspb.TIMEOUT_TYPE_HEARTBEAT || timeout.TimeoutType() == enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START
		if isLost || rules >= reducer.Rules2 {
			failure.Attempted, failure.Usage = last.Attempted, last.Usage
		}
		if isLost {
			return reducer.Lost, "its worker stopped sending heartbeats", failure
		}
		failure.Kind, failure.Retryable = event.FailureTimeout, true
		return reducer.Failed, fmt.Sprintf("the worker did not end the attempt (%v)", timeout.TimeoutType()), failure
	case errors.As(err, &application):
		if application.HasDetails() {
			_ = application.Details(&failure)
		}
		return reducer.Failed, application.Message(), failure
	default:
		failure.Kind, failure.Retryable = event.FailureUnavailable, true
		return reducer.Failed, event.Redact(err.Error(), reducer.MaxAttemptError), failure
	}
}
