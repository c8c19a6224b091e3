package event_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
)

func TestABudgetAllowsSumsUpToItsLimits(t *testing.T) {
	budget := event.Budget{Tokens: new(int64(10)), CostMicros: new(int64(5))}
	for sum, want := range map[event.Amount]bool{
		{}:                           true,
		{Tokens: 10, CostMicros: 5}:  true,
		{Tokens: 11}:                 false,
		{CostMicros: 6}:              false,
		{Tokens: math.MaxInt64}:      false,
		{Tokens: -1, CostMicros: -1}: true,
	} {
		require.Equal(t, want, budget.Allows(sum), sum)
	}
	require.True(t, event.Budget{}.Allows(event.Amount{Tokens: math.MaxInt64, CostMicros: math.MaxInt64}))
	require.False(t, event.Budget{Tokens: new(int64(0))}.Allows(event.Amount{Tokens: 1}))
}

func TestAmountsSaturate(t *testing.T) {
	most := event.Amount{Tokens: math.MaxInt64, CostMicros: math.MaxInt64}
	require.Equal(t, most, most.Plus(event.Amount{Tokens: 1, CostMicros: 1}))
	require.Equal(t, event.Amount{Tokens: 7, CostMicros: 3}, event.AmountOf(event.Usage{InputTokens: 5, OutputTokens: 2, CostMicros: new(int64(3))}))
}

func TestInvalidBudgetsAreRejected(t *testing.T) {
	for input, want := range map[string]string{
		`{"_tag":"BudgetSet","tokens":-1}`:                "BudgetSetEvent.tokens: want 0 to 1000000000000, got -1",
		`{"_tag":"BudgetSet","tokens":1000000000001}`:     "BudgetSetEvent.tokens: want 0 to 1000000000000, got 1000000000001",
		`{"_tag":"BudgetSet","costMicros":-1}`:            "BudgetSetEvent.costMicros: want 0 to 1000000000000000, got -1",
		`{"_tag":"BudgetSet","tokens":1.5}`:               "BudgetSetEvent.tokens: want a whole number, got the number 1.5",
		`{"_tag":"BudgetExceeded","requestId":"demo:r1"}`: "BudgetExceededEvent._tag: reserved for the session (clients cannot send it)",
	} {
		_, err := event.DecodeInput([]byte(input))
		require.EqualError(t, err, want)
	}
	valid := event.BudgetExceeded{RequestID: "demo:r0001", Budget: event.BudgetOfContext}
	require.NoError(t, event.New(valid).Validate())
	for want, change := range map[string]func(*event.BudgetExceeded){
		"requestId: empty":         func(b *event.BudgetExceeded) { b.RequestID = "" },
		"budget: want 1 to":        func(b *event.BudgetExceeded) { b.Budget = "" },
		"day: want a day":          func(b *event.BudgetExceeded) { b.Day = "2026-13-01" },
		"limit.tokens: want 0 to":  func(b *event.BudgetExceeded) { b.Limit.Tokens = new(int64(-1)) },
		"used.tokens: want 0 to":   func(b *event.BudgetExceeded) { b.Used.Tokens = -1 },
		"wanted.costMicros: want ": func(b *event.BudgetExceeded) { b.Wanted.CostMicros = -1 },
	} {
		invalid := valid
		change(&invalid)
		require.ErrorContains(t, event.New(invalid).Validate(), want)
	}
}
