package usage_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/reducer/usage"
)

// writer writes a log with one event per hour.
type writer struct {
	context string
	log     []event.Event
}

func (w *writer) add(bodies ...event.Body) *writer {
	for _, body := range bodies {
		n := len(w.log)
		w.log = append(w.log, event.Event{
			ID: event.FormatID(w.context, n+1), ContextName: w.context, Timestamp: eventtest.Epoch.Add(time.Duration(n) * time.Hour), Body: body,
		})
	}
	return w
}

func started(attempt int, provider, model string) event.Body {
	return event.LLMRequestStarted{RequestID: "r", ProviderID: provider, Model: model, Attempt: attempt}
}

func tokens(input, output int) event.Usage {
	return event.Usage{InputTokens: input, OutputTokens: output}
}

func rows(by usage.By, logs ...*writer) []usage.Row {
	table := usage.New(by)
	for _, w := range logs {
		for _, e := range w.log {
			table.Add(e)
		}
	}
	return table.Rows()
}

func TestEveryStepOfATurnCounts(t *testing.T) {
	w := (&writer{context: "demo"}).add(
		event.SessionStarted{},
		started(1, "openai", "gpt"),
		event.AssistantMessage{RequestID: "r"}, event.ToolCall{ToolCallID: "c1", ToolName: "n", RequestID: "r"},
		event.LLMAttemptEnded{RequestID: "r", Attempt: 1, Outcome: event.AttemptToolCalls, Usage: tokens(10, 2)},
		event.ToolResult{ToolCallID: "c1", Value: []byte(`1`)},
		started(2, "openai", "gpt"),
		event.LLMRequestCompleted{RequestID: "r", Usage: tokens(20, 3)},
	)
	require.Equal(t, []usage.Row{{
		Key: usage.Key{ContextName: "demo"}, Usage: reducer.Usage{Attempts: 2, InputTokens: 30, OutputTokens: 5, Unpriced: 2},
	}}, rows(usage.ByContext, w))
}

func demo() *writer {
	return (&writer{context: "demo"}).add(
		event.SessionStarted{},
		started(1, "openai", "gpt"),
		event.LLMAttemptEnded{RequestID: "r", Attempt: 1, Outcome: event.AttemptLost, Usage: event.Usage{InputTokens: 5, Estimated: true}},
		started(2, "openai", "gpt"),
		event.LLMRequestFellBack{RequestID: "r"}, // an attempt without usage
		started(3, "spare", "llama"),
		event.LLMRequestCompleted{RequestID: "r", Usage: event.Usage{
			InputTokens: 10, CachedTokens: 4, OutputTokens: 3, ReasoningTokens: 2, CostMicros: new(int64(70)), PriceVersion: "1",
		}},
		event.LLMRequestFailed{RequestID: "unsent", Usage: tokens(100, 100)},
		started(1, "openai", "gpt"), // at midnight
		event.LLMRequestInterrupted{RequestID: "r", Usage: tokens(20, 1)},
		started(1, "openai", "gpt"), // runs
	)
}

func TestEveryAttemptCountsOnce(t *testing.T) {
	require.Equal(t, []usage.Row{{usage.Key{ContextName: "demo"}, reducer.Usage{
		Attempts: 4, InputTokens: 35, CachedTokens: 4, OutputTokens: 4, ReasoningTokens: 2, Estimated: true, CostMicros: 70, Unpriced: 2,
	}}}, rows(usage.ByContext, demo()))
	require.Equal(t, []usage.Row{
		{usage.Key{ProviderID: "openai", Model: "gpt"}, reducer.Usage{Attempts: 3, InputTokens: 25, OutputTokens: 1, Estimated: true, Unpriced: 2}},
		{usage.Key{ProviderID: "spare", Model: "llama"}, reducer.Usage{
			Attempts: 1, InputTokens: 10, CachedTokens: 4, OutputTokens: 3, ReasoningTokens: 2, CostMicros: 70,
		}},
	}, rows(usage.ByModel, demo()))
	require.Equal(t, []usage.Row{
		{usage.Key{Day: "2026-01-02"}, reducer.Usage{
			Attempts: 3, InputTokens: 15, CachedTokens: 4, OutputTokens: 3, ReasoningTokens: 2, Estimated: true, CostMicros: 70, Unpriced: 1,
		}},
		{usage.Key{Day: "2026-01-03"}, reducer.Usage{Attempts: 1, InputTokens: 20, OutputTokens: 1, Unpriced: 1}},
	}, rows(usage.ByDay, demo()))
}

func TestAForkHasNotUsedTheTokensOfItsOrigin(t *testing.T) {
	other := demo()
	fork := (&writer{context: "fork"}).add(
		event.SessionStarted{}, started(1, "openai", "gpt"), event.LLMRequestCompleted{RequestID: "r", Usage: tokens(10, 1)},
		event.SessionStarted{ForkedFrom: "demo:0003"}, started(2, "openai", "gpt"), event.LLMRequestCompleted{RequestID: "r", Usage: tokens(7, 1)},
	)
	got := rows(usage.ByContext, other, fork)
	require.Len(t, got, 2)
	require.Equal(t, usage.Row{Key: usage.Key{ContextName: "fork"}, Usage: reducer.Usage{Attempts: 1, InputTokens: 7, OutputTokens: 1, Unpriced: 1}}, got[1])
}

func TestAForkInsideARequestHasNotUsedItsAttempt(t *testing.T) {
	fork := (&writer{context: "fork"}).add(
		event.SessionStarted{}, started(1, "openai", "gpt"),
		event.SessionStarted{ForkedFrom: "demo:0002", LoadedEventCount: 2},
		event.LLMRequestInterrupted{RequestID: "r", Reason: event.ReasonCancelled},
	)
	require.Empty(t, rows(usage.ByContext, fork))
	require.Zero(t, reducer.Load("fork", reducer.Reduce, fork.log...).Usage)
}

func TestSumsOfForgedCostsDoNotOverflow(t *testing.T) {
	attempt := event.Usage{CostMicros: new(int64(event.MaxCostMicros))}
	sum := reducer.Usage{CostMicros: math.MaxInt64 - 1}.Add(attempt)
	require.Equal(t, int64(math.MaxInt64), sum.CostMicros)
	require.Equal(t, int64(math.MaxInt64), sum.Plus(reducer.Usage{}.Add(attempt)).CostMicros)
}

func TestTheTotalIsThatOfTheSessions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := eventtest.Log("demo").Draw(t, "log")
		want := reducer.Load("demo", reducer.Reduce, log...).Usage
		for _, by := range []usage.By{usage.ByContext, usage.ByModel, usage.ByDay} {
			table := usage.New(by)
			for _, e := range log {
				table.Add(e)
			}
			require.Equal(t, want, table.Total(), by)
		}
	})
}
