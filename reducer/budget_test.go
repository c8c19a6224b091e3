package reducer_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

func TestAffordedAttemptsStayWithinTheBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := event.Budget{Tokens: new(rapid.Int64Range(0, 1000).Draw(t, "tokens")), CostMicros: new(rapid.Int64Range(0, 1000).Draw(t, "cost"))}
		s, _ := reducer.Step(reducer.NewSession("demo"), reducer.Received{At: eventtest.Epoch, Events: []event.Event{event.New(event.BudgetSet(limit))}})
		for range rapid.IntRange(0, 20).Draw(t, "attempts") {
			wanted := event.Amount{Tokens: rapid.Int64Range(0, 400).Draw(t, "wanted"), CostMicros: rapid.Int64Range(0, 400).Draw(t, "wanted cost")}
			if exceeded := reducer.Afford(s, wanted); exceeded != nil {
				require.False(t, limit.Allows(exceeded.Used.Plus(exceeded.Wanted)))
				require.Contains(t, exceeded.String(), "context: limit ")
				continue
			}
			s.Usage = s.Usage.Add(event.Usage{
				InputTokens: int(rapid.Int64Range(0, wanted.Tokens).Draw(t, "used")),
				CostMicros:  new(rapid.Int64Range(0, wanted.CostMicros).Draw(t, "used cost")),
			})
			require.True(t, limit.Allows(s.Usage.Amount()))
		}
	})
}

func TestASessionWithoutABudgetAffordsEverything(t *testing.T) {
	require.Nil(t, reducer.Afford(reducer.NewSession("demo"), event.Amount{Tokens: 1 << 62, CostMicros: 1 << 62}))
}
