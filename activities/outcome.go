package activities

import (
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

// outcome turns the end of an attempt into what the workflow is told.
func (g *generation) outcome(ctx context.Context, answer Answer, err error) (GenerateResult, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	result := GenerateResult{
		Attempted:    g.attempted,
		Text:         answer.Text,
		DurationMs:   time.Since(g.began).Milliseconds(),
		InputTokens:  answer.InputTokens,
		OutputTokens: answer.OutputTokens,
		FinishReason: answer.FinishReason,
	}
	if text, cut := recordable(answer.Text); cut {
		// However it ended: a single piece may have been too much.
		result.Text, result.FinishReason = text, "length"
	}
	if err == nil {
		result.Outcome = reducer.Completed
		return result, nil
	}
	var stop stopped
	var modelErr *ModelError
	timedOut := errors.As(err, &modelErr) && errors.Is(err, context.DeadlineExceeded)
	lastAttempt := int(g.info.Attempt) >= g.in.MaxAttempts && !g.fallback
	switch cause := context.Cause(ctx); {
	case errors.As(cause, &stop):
		result.Outcome, result.Reason = reducer.Interrupted, stop.reason
	case errors.Is(cause, errShutdown):
		result.Outcome, result.Text = reducer.Returned, ""
	case errors.Is(cause, errTooLong):
		result.Outcome = reducer.Completed
	case timedOut && lastAttempt && answer.Text != "":
		// No attempt is left to say it better.
		result.Outcome, result.Reason = reducer.Interrupted, event.ReasonTimeout
	case errors.Is(cause, errTimeout):
		return GenerateResult{}, g.failure(&ModelError{
			Kind: "timeout", Retryable: true,
			Err: fmt.Errorf("%s: timeout: %w (%v)", g.attempted.ProviderID, errTimeout, time.Since(g.began).Round(time.Millisecond)),
		})
	case cause != nil:
		// Temporal cancelled the activity, or the session has moved on.
		result.Outcome, result.Reason = reducer.Interrupted, event.ReasonCancelled
	default:
		return GenerateResult{}, g.failure(err)
	}
	return result, nil
}

// recordable cuts an answer that no history could carry.
func recordable(text string) (_ string, cut bool) {
	limit := MaxAnswerBytes
	if data, err := json.Marshal(text); err == nil && len(data) > wire.MaxEventBytes {
		// It is made of what takes up to six bytes each in JSON.
		limit = wire.MaxEventBytes / 6
	}
	if len(text) <= limit {
		return text, false
	}
	return strings.ToValidUTF8(text[:limit], ""), true
}

// failure is the error of an attempt, which says whether and when there is to
// be another.
func (g *generation) failure(err error) error {
	options := temporal.ApplicationErrorOptions{Details: []any{g.attempted}}
	kind := "internal"
	var modelErr *ModelError
	if errors.As(err, &modelErr) {
		kind = modelErr.Kind
		options.NonRetryable = !modelErr.Retryable || modelErr.RetryAfter > maxRetryAfter ||
			modelErr.RetryOnce && g.info.Attempt > 1
		options.NextRetryDelay = max(modelErr.RetryAfter, g.jitter())
	}
	// Temporal allows more attempts, which replace those of workers that died.
	options.NonRetryable = options.NonRetryable || int(g.info.Attempt) >= g.in.MaxAttempts
	return temporal.NewApplicationErrorWithOptions(event.Redact(err.Error(), 2000), kind, options)
}

// jitter is the wait before the next attempt when the context wants it spread,
// else zero, which leaves it to Temporal.
func (g *generation) jitter() time.Duration {
	if !g.retry.Jitter {
		return 0
	}
	delay := float64(g.retry.InitialDelayMs)
	for range g.info.Attempt - 1 {
		delay = min(delay*g.retry.BackoffFactor, float64(g.retry.MaxDelayMs))
	}
	return time.Duration((0.5 + rand.Float64()/2) * delay * float64(time.Millisecond))
}
