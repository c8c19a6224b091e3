package workflows

import (
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// result returns the outcome of the running request.
func (r *run) result() reducer.RequestEnded {
	var result activities.GenerateResult
	err := r.answer.future.Get(r.ctx, &result)
	ended := reducer.RequestEnded{
		At:            r.now(),
		Outcome:       result.Outcome,
		Text:          result.Text,
		Reasoning:     result.Reasoning,
		ProviderState: result.ProviderState,
		Reason:        result.Reason,
		Duration:      time.Duration(result.DurationMs) * time.Millisecond,
		InputTokens:   result.InputTokens,
		OutputTokens:  result.OutputTokens,
		FinishReason:  result.FinishReason,
	}
	attempted := result.Attempted
	if err != nil {
		ended.Outcome, ended.Error, attempted = classify(err)
	}
	ended.Attempted = reducer.Attempted{Attempt: attempted.Attempt, ProviderID: attempted.ProviderID, Model: attempted.Model}
	if attempted.Sent {
		ended.Through = attempted.Through
	}
	ended.RequestID = r.answer.start.RequestID
	return ended
}

// classify converts the error of Generate.
func classify(err error) (reducer.Outcome, string, activities.Attempted) {
	var (
		attempted   activities.Attempted
		application *temporal.ApplicationError
		timeout     *temporal.TimeoutError
		cancelled   *temporal.CanceledError
	)
	switch {
	case errors.As(err, &cancelled):
		return reducer.Interrupted, "", attempted
	case errors.As(err, &timeout):
		switch timeout.TimeoutType() {
		case enumspb.TIMEOUT_TYPE_HEARTBEAT, enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START:
			return reducer.HandedBack, "its worker stopped sending heartbeats", attempted
		}
		return reducer.Failed, fmt.Sprintf("the worker did not end the attempt (%v)", timeout.TimeoutType()), attempted
	case errors.As(err, &application):
		if application.HasDetails() {
			_ = application.Details(&attempted)
		}
		return reducer.Failed, application.Message(), attempted
	default:
		return reducer.Failed, event.Redact(err.Error(), 1000), attempted
	}
}
