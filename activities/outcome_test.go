package activities_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/hook"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

func TestTimeoutOfTheLastAttemptKeepsItsText(t *testing.T) {
	w := newWorld(t, newSession(event.SetTimeout{TimeoutMs: 1000}), llmtest.Answer("One", " two").HoldAfter(1, llmtest.NewGate()))
	w.in.MaxAttempts = 1
	result, err := w.generate()
	require.NoError(t, err)
	require.Equal(t, reducer.Interrupted, result.Outcome)
	require.Equal(t, event.ReasonTimeout, result.Reason)
	require.Equal(t, "One", result.Text)
}

func TestTimeoutIsAFailureIfAnotherAttemptOrProviderRemains(t *testing.T) {
	spare := event.SetProviderConfig{ProviderID: "spare", Model: "m", BaseURL: "http://127.0.0.1:1/v1", AsFallback: true}
	for name, test := range map[string]struct {
		settings    []event.Body
		maxAttempts int
		step        llmtest.Step
	}{
		"another attempt": {nil, 2, llmtest.Answer("One", " two").HoldAfter(1, llmtest.NewGate())},
		"a fallback":      {[]event.Body{spare}, 1, llmtest.Answer("One", " two").HoldAfter(1, llmtest.NewGate())},
		"no text yet":     {nil, 1, llmtest.Stall()},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession(append(test.settings, event.SetTimeout{TimeoutMs: 200})...)
			w := newWorld(t, s, test.step)
			w.in.MaxAttempts = test.maxAttempts
			_, err := w.generate()
			failed, attempt := failure(t, err)
			require.Equal(t, "timeout", failed.Type())
			require.Equal(t, test.maxAttempts == 1, failed.NonRetryable())
			require.True(t, attempt.Sent)
		})
	}
}

func TestRetryDecisions(t *testing.T) {
	const none = time.Duration(0)
	silent := event.Usage{InputTokens: 8, Estimated: true}
	for name, test := range map[string]struct {
		step         llmtest.Step
		kind         string
		failure      event.FailureKind
		retryable    bool
		nonRetryable bool
		delay        time.Duration
		usage        event.Usage
	}{
		"a bad key":                      {llmtest.Error(401, "invalid_api_key", "no"), "unauthorized", event.FailureUnauthorized, false, true, none, event.Usage{}},
		"an overloaded server":           {llmtest.Error(503, "overloaded", "busy"), "server error", event.FailureUnavailable, true, false, none, event.Usage{}},
		"a rate limit with a delay":      {llmtest.Error(429, "rate_limit_exceeded", "slow").RetryAfter("7"), "rate limited", event.FailureRateLimited, true, false, 7 * time.Second, event.Usage{}},
		"a rate limit with a long delay": {llmtest.Error(429, "rate_limit_exceeded", "slow").RetryAfter("3600"), "rate limited", event.FailureRateLimited, true, true, time.Hour, event.Usage{}},
		"a broken connection":            {llmtest.Drop(), "connection failed", event.FailureUnavailable, true, false, none, event.Usage{}},
		"a truncated answer":             {llmtest.Answer("One", " two").CutAt(200), "answer cut off", event.FailureBadResponse, true, false, none, silent},
		"a rejected request":             {llmtest.Error(400, "invalid_request", "bad"), "bad request", event.FailureBadRequest, false, true, none, event.Usage{}},
		"a conversation beyond the context window": {
			llmtest.Error(400, "context_length_exceeded", "too long"), "context too long", event.FailureContextTooLong, false, true, none, event.Usage{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newSession(), test.step)
			w.in.FirstAttempt = 5
			_, err := w.generate()
			failed, attempt := failure(t, err)
			require.Equal(t, test.kind, failed.Type())
			require.Equal(t, test.nonRetryable, failed.NonRetryable())
			require.Equal(t, test.delay, failed.NextRetryDelay())
			require.Equal(t, test.delay == time.Hour, strings.HasSuffix(failed.Message(), "slow (the provider asks to wait 1h0m0s)"), failed.Message())
			want := sent
			want.Attempt = 5
			require.Equal(t, want, attempt)
			var details activities.Failure
			require.NoError(t, failed.Details(&details))
			details.DurationMs, details.Overflow = 0, nil
			require.Equal(t, activities.Failure{Attempted: want, Kind: test.failure, Retryable: test.retryable, Usage: test.usage}, details)

			started := wire.RequestStarted{RequestID: "demo:r0001", Attempt: 5, Through: "demo:0002", ProviderID: "openai", Model: "scripted"}
			last := w.server.started[len(w.server.started)-1]
			if last.Ended != nil {
				last.Ended.DurationMs = 0
				started.Ended = &wire.AttemptEnd{Kind: test.failure, Retryable: true, Error: failed.Message(), Usage: test.usage}
			}
			require.Equal(t, started, last, "the workflow does not see the error of an attempt that is retried")
			require.Equal(t, test.nonRetryable, last.Ended == nil, "the end of the last attempt is the result")
		})
	}
}

func TestAnAnnouncedAttemptThatIsRetriedReportsItsEnd(t *testing.T) {
	gate := llmtest.NewGate()
	w := newWorld(t, newSession(), llmtest.Answer("One", " two").HoldAfter(1, gate).Finish("MALFORMED_FUNCTION_CALL"))
	w.connect()
	w.server.onSignal = gate.Open
	_, err := w.generate()
	failure(t, err)
	require.Len(t, w.server.started, 2)
	require.Nil(t, w.server.started[0].Ended)
	require.Equal(t, event.FailureBadResponse, w.server.started[1].Ended.Kind)
	require.Equal(t, event.Usage{InputTokens: 7, OutputTokens: 2}, w.server.started[1].Ended.Usage)
}

func TestHeartbeatsReportTheUsageSoFar(t *testing.T) {
	gate := llmtest.NewGate()
	w := newWorld(t, newSession(), llmtest.Answer("One", " two").HoldAfter(1, gate))
	var reported activities.LostAttempt
	w.env.SetOnActivityHeartbeatListener(func(_ *activity.Info, details converter.EncodedValues) {
		if err := details.Get(&reported); err != nil {
			t.Error(err)
		}
		gate.Open()
	})
	_, err := w.generate()
	require.NoError(t, err)
	require.Equal(t, activities.LostAttempt{Attempted: sent, Usage: event.Usage{InputTokens: 12, OutputTokens: 1, Estimated: true}}, reported)
}

// The worker of an attempt can die before it is sent, for example while its hooks run. The number of the
// attempt must not be used again.
func TestHeartbeatsOfAnUnsentAttemptRepeatTheOneBeforeIt(t *testing.T) {
	lost := activities.LostAttempt{Attempted: sent, Usage: event.Usage{InputTokens: 8, OutputTokens: 1}, RunID: "run", Deadline: time.Unix(1, 0).UTC()}
	beats := make(chan activities.LostAttempt, 100)
	w := newWorld(t, newSession(), llmtest.Answer("One"))
	w.use(hook.Hook{Name: "slow", Before: func(ctx context.Context, _ hook.Request) (hook.Verdict, error) {
		select {
		case beat := <-beats:
			repeated := lost
			repeated.Unsent = 2
			assert.Equal(t, repeated, beat)
			return hook.Verdict{}, nil
		case <-ctx.Done():
			return hook.Verdict{}, ctx.Err()
		}
	}})
	w.env.SetOnActivityHeartbeatListener(func(_ *activity.Info, details converter.EncodedValues) {
		var beat activities.LostAttempt
		assert.NoError(t, details.Get(&beat))
		beats <- beat
	})
	w.in.FirstAttempt = 2
	w.env.SetHeartbeatDetails(lost)
	_, err := w.generate()
	require.NoError(t, err)
}

func TestAnAttemptReportsTheOneThatItsWorkerLost(t *testing.T) {
	lost := activities.LostAttempt{Attempted: sent, Usage: event.Usage{InputTokens: 8, OutputTokens: 1, Estimated: true}}
	unsent, same := lost, lost
	unsent.Sent = false
	same.Attempt = 2
	for name, test := range map[string]struct {
		heartbeat any
		earlier   *activities.LostAttempt // of an earlier activity
		want      *activities.LostAttempt
	}{
		"the attempt before":            {lost, nil, &lost},
		"an attempt that was not sent":  {unsent, nil, nil},
		"the same attempt":              {same, nil, nil},
		"a heartbeat of another format": {"hello", nil, nil},
		"an earlier activity":           {nil, &lost, &lost},
		"a newer heartbeat":             {lost, &same, &lost},
		"no attempt":                    {nil, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newSession(), llmtest.Answer("One"), llmtest.Error(400, "invalid_request", "bad"))
			w.in.FirstAttempt = 2
			w.in.Lost = test.earlier
			if test.heartbeat != nil {
				w.env.SetHeartbeatDetails(test.heartbeat)
			}
			result, err := w.generate()
			require.NoError(t, err)
			require.Equal(t, test.want, result.Lost)

			_, err = w.generate()
			failed, _ := failure(t, err)
			var details activities.Failure
			require.NoError(t, failed.Details(&details))
			require.Equal(t, test.want, details.Lost)
			announced := w.server.started[len(w.server.started)-1].Lost
			require.Equal(t, test.want == nil, announced == nil)
			if announced != nil {
				require.Equal(t, wire.LostAttempt{Attempt: 1, Through: "demo:0002", ProviderID: "openai", Model: "scripted", Usage: lost.Usage}, *announced)
			}
		})
	}
}

func TestJitterIsUpToHalfTheDelay(t *testing.T) {
	w := newWorld(t, newSession(event.SetRetryConfig{MaxRetries: 3, InitialDelayMs: 1000, Jitter: true}), llmtest.Error(503, "overloaded", "busy"))
	_, err := w.generate()
	failed, _ := failure(t, err)
	require.GreaterOrEqual(t, failed.NextRetryDelay(), 500*time.Millisecond)
	require.LessOrEqual(t, failed.NextRetryDelay(), time.Second)
}

func TestConfigurationErrorIsNotRetried(t *testing.T) {
	w := newWorld(t, newSession(event.SetProviderConfig{ProviderID: "nowhere", Model: "m"}))
	_, err := w.generate()
	failed, attempt := failure(t, err)
	require.True(t, failed.NonRetryable())
	require.Equal(t, "configuration", failed.Type())
	require.Contains(t, failed.Message(), "--providers")
	require.False(t, attempt.Sent)
	require.Equal(t, "nowhere", attempt.ProviderID)
}

func TestFallbackReceivesTheRequest(t *testing.T) {
	s := newSession()
	w := newWorld(t, s, llmtest.Answer("Here."))
	s = newSession(event.SetProviderConfig{ProviderID: "spare", Model: "other", BaseURL: w.model.URL, AsFallback: true})
	w.server.session = func(int) (reducer.Session, error) { return s, nil }
	w.in.Fallback = true
	result, err := w.generate()
	require.NoError(t, err)
	require.Equal(t, "spare", result.ProviderID)
	require.Equal(t, "other", w.model.Requests()[0].Model)
}

func TestFailedSessionQueryIsRetried(t *testing.T) {
	w := newWorld(t, newSession())
	w.server.session = func(int) (reducer.Session, error) {
		return reducer.Session{}, serviceerror.NewUnavailable("away, with key sk-live-0123456789")
	}
	_, err := w.generate()
	failed, attempt := failure(t, err)
	require.False(t, failed.NonRetryable())
	require.Equal(t, "query the session of context demo: away, with key [removed]\nread the log of context demo, run default-test-run-id: no history", failed.Message())
	require.Equal(t, activities.Attempted{Attempt: 1}, attempt)
}

// The timeout begins after the quiet period and the query.
func TestAFailedSessionQueryIsNoTimeout(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newSession())
	w.in.TimeoutMs = 1000
	w.server.session = func(int) (reducer.Session, error) {
		<-time.After(time.Second + 10*time.Millisecond) // the query takes longer than the timeout
		return reducer.Session{}, serviceerror.NewUnavailable("away")
	}
	_, err := w.generate()
	failed, _ := failure(t, err)
	require.Contains(t, failed.Message(), "query the session of context demo: away")
}

func TestLongAnswerIsTruncated(t *testing.T) {
	half := strings.Repeat("ü", event.MaxAnswerBytes/4)
	for name, step := range map[string]llmtest.Step{
		"in many deltas":    llmtest.Answer(half, half, half, "never read").HoldAfter(3, llmtest.NewGate()),
		"in one delta":      llmtest.Answer("x" + half + half + half),
		"by its last delta": llmtest.Answer("x"+half, half),
	} {
		t.Run(name, func(t *testing.T) {
			result, err := newWorld(t, newSession(), step).generate()
			require.NoError(t, err)
			require.Equal(t, reducer.Completed, result.Outcome)
			require.Equal(t, "length", result.FinishReason)
			require.LessOrEqual(t, len(result.Text), event.MaxAnswerBytes)
			require.Greater(t, len(result.Text), event.MaxAnswerBytes-4)
			require.NotContains(t, result.Text, "\uFFFD")
		})
	}
}
