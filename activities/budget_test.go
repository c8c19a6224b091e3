package activities_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

func tokens(n int64) event.BudgetSet { return event.BudgetSet{Tokens: &n} }

// unsent requires that an attempt was not sent and is not retried.
func unsent(t *testing.T, err error) (failed *temporal.ApplicationError, details activities.Failure) {
	t.Helper()
	failed, attempt := failure(t, err)
	require.True(t, failed.NonRetryable())
	require.False(t, attempt.Sent)
	require.NoError(t, failed.Details(&details))
	return failed, details
}

// exceeded requires that an attempt was not sent because of a budget, and returns it.
func exceeded(t *testing.T, err error) event.BudgetExceeded {
	t.Helper()
	failed, details := unsent(t, err)
	require.Equal(t, event.FailureBudgetExceeded, details.Kind)
	require.NotNil(t, details.Exceeded)
	require.Contains(t, failed.Message(), "budget exceeded: "+details.Exceeded.String()+" (")
	return *details.Exceeded
}

func TestTheAdviceDependsOnWhetherTheBudgetIsUsedUp(t *testing.T) {
	for used, advice := range map[int]string{
		9_000:  `(lower maxTokens, or raise the budget with "starter budget")`,
		10_000: `(raise the budget with "starter budget")`,
	} {
		session := newSession(tokens(10_000))
		session.Usage = reducer.Usage{Attempts: 1, InputTokens: used}
		_, err := newWorld(t, session).generate()
		require.ErrorContains(t, err, advice)
	}
}

func TestAnAnswerUnderABudgetHasALimitedLength(t *testing.T) {
	w := newWorld(t, newSession(tokens(10_000)), llmtest.Answer("Hi"))
	result, err := w.generate()
	require.NoError(t, err)
	require.Equal(t, reducer.Completed, result.Outcome)
	require.Contains(t, string(w.model.Requests()[0].Body), `"max_tokens":4096`)
}

func TestAnAttemptThatCouldExceedTheBudgetIsNotSent(t *testing.T) {
	session := newSession(tokens(10_000), event.SetProviderConfig{ProviderID: "ollama", Model: "m", AsFallback: true})
	session.Usage = reducer.Usage{Attempts: 2, InputTokens: 5000, OutputTokens: 904}
	w := newWorld(t, session)
	_, err := w.generate()
	b := exceeded(t, err)
	require.Positive(t, b.Wanted.Tokens-4096, "the input counts")
	require.Less(t, b.Wanted.Tokens, int64(4096+50))
	require.Equal(t, event.BudgetExceeded{
		RequestID: "demo:r0001", Budget: event.BudgetOfContext, Limit: event.Budget{Tokens: new(int64(10_000))},
		Used: event.Amount{Tokens: 5904}, Wanted: b.Wanted,
	}, b)
}

func TestMaxTokensMakesAnAttemptAffordable(t *testing.T) {
	w := newWorld(t, newSession(tokens(100), event.SetRequestSettings{MaxTokens: new(50)}), llmtest.Answer("Hi"))
	_, err := w.generate()
	require.NoError(t, err)
	require.Contains(t, string(w.model.Requests()[0].Body), `"max_tokens":50`)
}

func TestALimitOfTheCostRequiresAPrice(t *testing.T) {
	budget := event.BudgetSet{CostMicros: new(int64(500))}
	model := &caller{needs: event.Usage{InputTokens: 10, OutputTokens: 20}, answer: activities.Answer{Text: "Hi", FinishReason: "stop"}}
	_, err := answered(t, nil, model, budget)
	failed, details := unsent(t, err)
	require.Equal(t, event.FailureConfiguration, details.Kind)
	require.Contains(t, failed.Message(), "the price of openai scripted is unknown")

	model.needs.CostMicros = new(int64(501))
	_, err = answered(t, nil, model, budget)
	require.Equal(t, event.Amount{Tokens: 30, CostMicros: 501}, exceeded(t, err).Wanted)

	model.needs.CostMicros = new(int64(500))
	_, err = answered(t, nil, model, budget)
	require.NoError(t, err)
}

// A worker caches the session of the last workflow task, which may lack the end of the previous
// attempt, reported by a signal.
func TestTheUsageOfThePreviousAttemptCounts(t *testing.T) {
	session := newSession(tokens(10_000))
	through := session.LastEventID()
	first := reducer.Attempted{RequestID: "demo:r0001", Attempt: 1, Through: through, ProviderID: "openai", Model: "scripted"}
	ended, _ := reducer.Step(session, reducer.RequestStarted{
		At: session.LastEventAt, Attempted: first, Ended: &reducer.AttemptEnd{Usage: event.Usage{InputTokens: 6000}},
	})
	w := newWorld(t, session)
	cache := activities.NewSessionCache(0)
	cache.Entry(runID).Put(session)
	w.reset(cache)
	w.server.session = func(int) (reducer.Session, error) { return ended, nil }
	w.in.FirstAttempt = 2
	_, err := w.generate()
	require.Equal(t, int64(6000), exceeded(t, err).Used.Tokens)
}

func TestTheUsageOfALostAttemptCounts(t *testing.T) {
	lost := activities.LostAttempt{Attempted: sent, Usage: event.Usage{InputTokens: 6000}}
	session := newSession(tokens(10_000))
	w := newWorld(t, session)
	w.in.FirstAttempt = 2
	w.env.SetHeartbeatDetails(lost)
	_, err := w.generate()
	require.Equal(t, int64(6000), exceeded(t, err).Used.Tokens)

	// It reported its end before its worker died.
	ended, _ := reducer.Step(session, reducer.RequestStarted{
		At: session.LastEventAt, Attempted: reducer.Attempted{RequestID: "demo:r0001", Attempt: 1, Through: session.LastEventID()},
		Ended: &reducer.AttemptEnd{Usage: lost.Usage},
	})
	w.server.session = func(int) (reducer.Session, error) { return ended, nil }
	_, err = w.generate()
	require.Equal(t, int64(6000), exceeded(t, err).Used.Tokens, "it counts once")
}

func TestAnAttemptIsNotSentWithoutTheUsageOfThePreviousOne(t *testing.T) {
	session := newSession(tokens(10_000))
	w := newWorld(t, session)
	cache := activities.NewSessionCache(0)
	cache.Entry(runID).Put(session)
	w.reset(cache)
	w.server.session = func(int) (reducer.Session, error) { return session, errors.New("no worker") }
	w.in.FirstAttempt = 2
	_, err := w.generate()
	var failed *temporal.ApplicationError
	require.ErrorAs(t, err, &failed)
	require.False(t, failed.NonRetryable())
	require.Contains(t, failed.Message(), "query the usage of context demo: no worker")
}
