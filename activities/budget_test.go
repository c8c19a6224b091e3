package activities_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

func tokens(n int64) event.BudgetSet { return event.BudgetSet{Tokens: &n} }

// exceeded requires that an attempt was not sent because of a budget, and returns it.
func exceeded(t *testing.T, result reducer.AttemptEnded) event.BudgetExceeded {
	t.Helper()
	require.Equal(t, reducer.Failed, result.Outcome)
	require.Equal(t, event.FailureBudgetExceeded, result.Kind)
	require.False(t, result.Retryable)
	require.NotNil(t, result.Exceeded)
	require.Contains(t, result.Error, "budget exceeded: "+result.Exceeded.String()+" (")
	return *result.Exceeded
}

func TestTheAdviceDependsOnWhetherTheBudgetIsUsedUp(t *testing.T) {
	for used, advice := range map[int]string{
		9_000:  `(lower maxTokens, or raise the budget with "starter budget")`,
		10_000: `(raise the budget with "starter budget")`,
	} {
		session := newSession(tokens(10_000))
		session.Usage = reducer.Usage{Attempts: 1, InputTokens: used}
		require.Contains(t, newEnvironment(t, session).failure().Error, advice)
	}
}

func TestAnAnswerUnderABudgetHasALimitedLength(t *testing.T) {
	w := newEnvironment(t, newSession(tokens(10_000)), llmtest.Answer("Hi"))
	require.Equal(t, reducer.Completed, w.generated().Outcome)
	require.Contains(t, string(w.model.Requests()[0].Body), `"max_tokens":4096`)
}

func TestAnAttemptThatCouldExceedTheBudgetIsNotSent(t *testing.T) {
	session := newSession(tokens(10_000), event.SetProviderConfig{ProviderID: "ollama", Model: "m", AsFallback: true})
	session.Usage = reducer.Usage{Attempts: 2, InputTokens: 5000, OutputTokens: 904}
	w := newEnvironment(t, session)
	b := exceeded(t, w.generated())
	require.Positive(t, b.Wanted.Tokens-4096, "the input counts")
	require.Less(t, b.Wanted.Tokens, int64(4096+50))
	require.Equal(t, event.BudgetExceeded{
		RequestID: "demo:r0001", Budget: event.BudgetOfContext, Limit: event.Budget{Tokens: new(int64(10_000))},
		Used: event.Amount{Tokens: 5904}, Wanted: b.Wanted,
	}, b)
}

func TestMaxTokensMakesAnAttemptAffordable(t *testing.T) {
	w := newEnvironment(t, newSession(tokens(100), event.SetRequestSettings{MaxTokens: new(50)}), llmtest.Answer("Hi"))
	w.generated()
	require.Contains(t, string(w.model.Requests()[0].Body), `"max_tokens":50`)
}

func TestALimitOfTheCostRequiresAPrice(t *testing.T) {
	budget := event.BudgetSet{CostMicros: new(int64(500))}
	model := &caller{needs: event.Usage{InputTokens: 10, OutputTokens: 20}, answer: activities.Answer{Text: "Hi", FinishReason: "stop"}}
	result, err := answered(t, nil, model, budget)
	require.NoError(t, err)
	require.Equal(t, event.FailureConfiguration, result.Kind)
	require.False(t, result.Retryable)
	require.Contains(t, result.Error, "the price of openai scripted is unknown")
	require.Nil(t, model.ctx, "it was sent")

	model.needs.CostMicros = new(int64(501))
	result, err = answered(t, nil, model, budget)
	require.NoError(t, err)
	require.Equal(t, event.Amount{Tokens: 30, CostMicros: 501}, exceeded(t, result).Wanted)

	model.needs.CostMicros = new(int64(500))
	result, err = answered(t, nil, model, budget)
	require.NoError(t, err)
	require.Equal(t, reducer.Completed, result.Outcome)
}

func TestTheUsageOfEarlierAttemptsCounts(t *testing.T) {
	for _, outcome := range []reducer.Outcome{reducer.Failed, reducer.Lost, reducer.HandedBack} {
		session, _ := reducer.Step(newSession(tokens(10_000)), reducer.AttemptEnded{
			At: time.Now(), RequestID: "demo:r0001", Attempt: 1, Outcome: outcome,
			Kind: event.FailureUnavailable, Retryable: true, Usage: event.Usage{InputTokens: 6000},
		})
		require.Equal(t, int64(6000), exceeded(t, newEnvironment(t, session).generated()).Used.Tokens, outcome)
	}
}

func TestATenantHasItsOwnBudgets(t *testing.T) {
	budgets := []activities.LabelBudget{{Label: "team"}, {Label: event.LabelTenant}}
	settings := event.RequestSettings{Labels: map[string]string{"team": "support", event.LabelTenant: "other"}}
	for contextName, want := range map[string][]string{
		"demo":      {"budget:team=support", "budget:tenant=other"},
		"acme/demo": {"budget:acme/team=support", "budget:tenant=acme"},
	} {
		require.Equal(t, want, activities.LedgersOf(contextName, budgets, settings), contextName)
	}
	require.Equal(t, []string{"budget:tenant=acme"}, activities.LedgersOf("acme/demo", budgets, event.RequestSettings{}))
	require.Equal(t, "other", settings.Labels[event.LabelTenant], "the settings do not change")
}
