package activities_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

func TestATimeoutKeepsTheTextSoFar(t *testing.T) {
	w := newEnvironment(t, newSession(event.SetTimeout{TimeoutMs: 1000}), llmtest.Answer("One", " two").HoldAfter(1, llmtest.NewGate()))
	require.Equal(t, reducer.AttemptEnded{
		Outcome: reducer.Interrupted, ProviderID: "openai", Model: "scripted", Text: "One", Reason: event.ReasonTimeout,
		Kind: event.FailureTimeout, Retryable: true, Error: "openai: timeout: the attempt took longer than the timeout of the context (1s)",
		Usage: event.Usage{InputTokens: 8, OutputTokens: 1, Estimated: true},
	}, w.generated())
}

func TestATimeoutWithoutTextIsAFailure(t *testing.T) {
	w := newEnvironment(t, newSession(event.SetTimeout{TimeoutMs: 200}), llmtest.Stall())
	failed := w.failure()
	require.Equal(t, event.FailureTimeout, failed.Kind)
	require.True(t, failed.Retryable)
	require.Empty(t, failed.Reason)
}

func TestFailuresOfAProvider(t *testing.T) {
	silent := event.Usage{InputTokens: 8, Estimated: true}
	for name, test := range map[string]struct {
		step       llmtest.Step
		kind       event.FailureKind
		retryable  bool
		retryAfter time.Duration
		usage      event.Usage
	}{
		"a bad key":                      {llmtest.Error(401, "invalid_api_key", "no"), event.FailureUnauthorized, false, 0, event.Usage{}},
		"an overloaded server":           {llmtest.Error(503, "overloaded", "busy"), event.FailureUnavailable, true, 0, event.Usage{}},
		"a rate limit with a delay":      {llmtest.Error(429, "rate_limit_exceeded", "slow").RetryAfter("7"), event.FailureRateLimited, true, 7 * time.Second, event.Usage{}},
		"a rate limit with a long delay": {llmtest.Error(429, "rate_limit_exceeded", "slow").RetryAfter("3600"), event.FailureRateLimited, true, time.Hour, event.Usage{}},
		"a broken connection":            {llmtest.Drop(), event.FailureUnavailable, true, 0, event.Usage{}},
		"a truncated answer":             {llmtest.Answer("One", " two").CutAt(200), event.FailureBadResponse, true, 0, silent},
		"a rejected request":             {llmtest.Error(400, "invalid_request", "bad"), event.FailureBadRequest, false, 0, event.Usage{}},
		"a conversation beyond the context window": {
			llmtest.Error(400, "context_length_exceeded", "too long"), event.FailureContextTooLong, false, 0, event.Usage{},
		},
		"an answer with a malformed end": {
			llmtest.Answer("One", " two").Finish("MALFORMED_FUNCTION_CALL"), event.FailureBadResponse, true, 0, event.Usage{InputTokens: 7, OutputTokens: 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			failed := newEnvironment(t, newSession(), test.step).failure()
			require.Equal(t, test.retryAfter > 0, strings.HasSuffix(failed.Error, "slow (the provider asks to wait "+test.retryAfter.String()+")"), failed.Error)
			failed.Overflow, failed.Error = nil, ""
			require.Equal(t, reducer.AttemptEnded{
				Outcome: reducer.Failed, ProviderID: "openai", Model: "scripted",
				Kind: test.kind, Retryable: test.retryable, RetryAfterMs: test.retryAfter.Milliseconds(), Usage: test.usage,
			}, failed)
		})
	}
}

func TestConfigurationErrorIsNotRetried(t *testing.T) {
	failed := newEnvironment(t, newSession(event.SetProviderConfig{ProviderID: "nowhere", Model: "m"})).failure()
	require.False(t, failed.Retryable)
	require.Equal(t, event.FailureConfiguration, failed.Kind)
	require.Contains(t, failed.Error, "--providers")
	require.Equal(t, "nowhere", failed.ProviderID)
}

func TestFallbackReceivesTheRequest(t *testing.T) {
	w := newEnvironment(t, newSession(), llmtest.Answer("Here."))
	w.useSession(newSession(event.SetProviderConfig{ProviderID: "spare", Model: "other", BaseURL: w.model.URL, AsFallback: true}))
	w.in.Fallback = true
	result := w.generated()
	require.Equal(t, "spare", result.ProviderID)
	require.Equal(t, "other", result.Model)
	require.Equal(t, "other", w.model.Requests()[0].Model)
}

func TestLongAnswerIsTruncated(t *testing.T) {
	half := strings.Repeat("ü", event.MaxAnswerBytes/4)
	for name, step := range map[string]llmtest.Step{
		"in many deltas":    llmtest.Answer(half, half, half, "never read").HoldAfter(3, llmtest.NewGate()),
		"in one delta":      llmtest.Answer("x" + half + half + half),
		"by its last delta": llmtest.Answer("x"+half, half),
	} {
		t.Run(name, func(t *testing.T) {
			result := newEnvironment(t, newSession(), step).generated()
			require.Equal(t, reducer.Completed, result.Outcome)
			require.Equal(t, "length", result.FinishReason)
			require.LessOrEqual(t, len(result.Text), event.MaxAnswerBytes)
			require.Greater(t, len(result.Text), event.MaxAnswerBytes-4)
			require.NotContains(t, result.Text, "\uFFFD")
		})
	}
}
