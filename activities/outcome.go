package activities

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// maxRetryAfter is the longest delay that a provider may request; a longer one ends the retries.
const maxRetryAfter = 5 * time.Minute

func (a *attempt) outcome(ctx context.Context, answer Answer, err error) (GenerateResult, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	result := GenerateResult{
		Attempted:    a.attempted,
		Text:         answer.Text,
		DurationMs:   time.Since(a.startedAt).Milliseconds(),
		Usage:        answer.Usage,
		FinishReason: answer.FinishReason,
		Omitted:      a.omitted,
		Lost:         a.lost,
		Hooks:        a.guard.reported(),
		Offered:      a.offered,
	}
	text, isCut := truncate(answer.Text, event.MaxAnswerBytes, wire.MaxEventBytes)
	if isCut {
		result.Text, result.FinishReason = text, "length" // also after an error: the last delta may have exceeded the limit
	}
	room := wire.MaxEventBytes - envelopeBytes - jsonSize(result.Text)
	if err == nil {
		result.Outcome = reducer.Completed
		if !isCut {
			result.ProviderState, room = fittingState(answer.State, room)
			if len(answer.Calls) > 0 {
				result.Outcome, result.Calls = reducer.Called, a.tools.called(ctx, answer.Calls)
			}
			if len(answer.Calls) > len(result.Calls) {
				result.ProviderState = nil // it is valid only with all calls
			}
		}
		result.Reasoning = a.kept(answer.Reasoning, room)
		return result, nil
	}
	result.Reasoning = a.kept(answer.Reasoning, room)
	var stop stopped
	var modelErr *ModelError
	isTimeout := errors.As(err, &modelErr) && errors.Is(err, context.DeadlineExceeded)
	isHookError := modelErr != nil && modelErr.Kind == hookError
	isRefusal := modelErr != nil && modelErr.Failure == event.FailureRefusedByHook
	isLast := int(a.info.Attempt) >= a.maxAttempts() && !a.hasFallback
	switch cause := context.Cause(ctx); {
	case errors.As(cause, &stop):
		result.Outcome, result.Reason = reducer.Interrupted, stop.reason
	case errors.Is(cause, errShutdown):
		result.Outcome, result.Text, result.Reasoning = reducer.HandedBack, "", ""
	case errors.Is(cause, errTooLong) && !isHookError:
		result.Outcome = reducer.Completed
	case isTimeout && isLast && answer.Text != "":
		result.Outcome, result.Reason = reducer.Interrupted, event.ReasonTimeout
	case errors.Is(cause, errTimeout) && !isRefusal:
		return GenerateResult{}, a.failure(&ModelError{
			Kind: "timeout", Failure: event.FailureTimeout, Retryable: true,
			Err: fmt.Errorf("%s: timeout: %w (%v)", a.attempted.ProviderID, errTimeout, time.Since(a.startedAt).Round(time.Millisecond)),
		}, answer.Usage)
	case cause != nil && !errors.Is(cause, errTooLong) && !errors.Is(cause, errTimeout):
		// Temporal cancelled the activity, or the result is obsolete.
		result.Outcome, result.Reason = reducer.Interrupted, event.ReasonCancelled
	default:
		return GenerateResult{}, a.failure(err, answer.Usage)
	}
	return result, nil
}

// truncate bounds the length of a text, and the size of its JSON, in bytes.
func truncate(text string, limit, jsonLimit int) (_ string, isCut bool) {
	if jsonSize(text) > jsonLimit {
		limit = min(limit, max(0, jsonLimit/6)) // escapes take up to six bytes per byte
	}
	if len(text) <= limit {
		return text, false
	}
	return strings.ToValidUTF8(text[:limit], ""), true
}

// jsonSize returns the size of a text in JSON: 0 if it is empty, since the field is then omitted.
func jsonSize(text string) int {
	if text == "" {
		return 0
	}
	data, err := json.Marshal(text)
	if err != nil {
		return 6 * len(text)
	}
	return len(data)
}

// envelopeBytes is reserved for other fields of the event, such as names in the provider state.
const envelopeBytes = 8 << 10

// maxReasoningSummary bounds the reasoning that [event.ReasoningSummary] keeps, in bytes.
const maxReasoningSummary = 16 << 10

// kept returns the part of the reasoning that the context keeps, with at most room bytes of JSON.
func (a *attempt) kept(reasoning string, room int) string {
	limit := maxReasoningSummary
	switch a.keep {
	case event.ReasoningOff:
		return ""
	case event.ReasoningFull:
		limit = event.MaxReasoningBytes
	}
	const more = "…"
	text, isCut := truncate(reasoning, limit-len(more), room-len(more))
	if isCut && text != "" {
		text += more
	}
	return text
}

// fittingState returns the state and the remaining room. It drops a state that is invalid or exceeds
// the room: a truncated state is useless.
func fittingState(state *event.ProviderState, room int) (*event.ProviderState, int) {
	if state == nil || state.Validate() != nil || len(state.Data) > room {
		return nil, room
	}
	return state, room - len(state.Data)
}

func (a *attempt) failure(err error, usage event.Usage) error {
	details := Failure{
		Attempted: a.attempted, Kind: event.FailureUnavailable, Retryable: true,
		DurationMs: time.Since(a.startedAt).Milliseconds(), Usage: usage, Lost: a.lost, Hooks: a.guard.reported(), Trace: a.trace,
	}
	// The workflow records and logs the failure; the SDK need not log it as an error.
	options := temporal.ApplicationErrorOptions{Category: temporal.ApplicationErrorCategoryBenign}
	kind, text := "internal", err.Error()
	var modelErr *ModelError
	if errors.As(err, &modelErr) {
		kind = modelErr.Kind
		switch {
		case !a.checksAnswers():
			text += modelErr.excerpt()
		case modelErr.Answer != "":
			text = fmt.Sprintf("%s: %s: %s", a.attempted.ProviderID, kind, uncheckedProblem)
		}
		details.Kind = cmp.Or(modelErr.Failure, details.Kind)
		details.Retryable = modelErr.Retryable && !(len(modelErr.Suspects) > 0 && a.info.Attempt > 1)
		details.Suspects = modelErr.Suspects
		options.NonRetryable = !details.Retryable || modelErr.Final || modelErr.RetryAfter > maxRetryAfter
		options.NextRetryDelay = max(modelErr.RetryAfter, a.jitter())
	}
	if details.Kind == event.FailureContextTooLong {
		details.Overflow = a.refused
	}
	var refused *exceededError
	if errors.As(err, &refused) {
		details.Exceeded = &refused.BudgetExceeded
	}
	// The retry policy allows [reducer.SpareAttempts] more, for attempts whose workers died.
	options.NonRetryable = options.NonRetryable || int(a.info.Attempt) >= a.maxAttempts()
	if options.NonRetryable && modelErr != nil && modelErr.RetryAfter > 0 {
		text += fmt.Sprintf(" (the provider asks to wait %v)", modelErr.RetryAfter.Round(time.Millisecond))
	}
	if modelErr != nil && a.takeRepair(modelErr) {
		details.Retryable, details.Repairs = true, true
		options.NonRetryable, options.NextRetryDelay = false, time.Millisecond
	}
	if options.NonRetryable {
		details.Offered = a.offered
	}
	options.Details = []any{details}
	return temporal.NewApplicationErrorWithOptions(event.Redact(text, reducer.MaxAttemptError), kind, options)
}

// jitter returns the delay before the next attempt. 0: Temporal decides.
func (a *attempt) jitter() time.Duration {
	if !a.retry.Jitter {
		return 0
	}
	return time.Duration((0.5 + rand.Float64()/2) * float64(delayAfter(a.retry, int(a.info.Attempt))))
}

func delayAfter(retry reducer.RetryConfig, failures int) time.Duration {
	delay := float64(retry.InitialDelayMs)
	for range failures - 1 {
		delay = min(delay*retry.BackoffFactor, float64(retry.MaxDelayMs))
	}
	return time.Duration(delay * float64(time.Millisecond))
}
