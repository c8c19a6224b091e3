package event_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
)

func TestCompactionIsOnByDefaultAndOffWithoutStrategies(t *testing.T) {
	for input, want := range map[string]event.CompactionLimits{
		`{}`:                          {Strategies: []event.Strategy{event.StrategyDropToolResults, event.StrategySummarise}, Trigger: 80, Target: 50},
		`{"strategies":[]}`:           {Strategies: []event.Strategy{}, Trigger: 80, Target: 50},
		`{"strategies":["truncate"]}`: {Strategies: []event.Strategy{event.StrategyTruncate}, Trigger: 80, Target: 50},
		`{"triggerPercent":40}`:       {Strategies: []event.Strategy{event.StrategyDropToolResults, event.StrategySummarise}, Trigger: 40, Target: 25},
		`{"triggerPercent":100,"targetPercent":99}`:     {Strategies: []event.Strategy{event.StrategyDropToolResults, event.StrategySummarise}, Trigger: 100, Target: 99},
		`{"strategies":["truncate"],"targetPercent":1}`: {Strategies: []event.Strategy{event.StrategyTruncate}, Trigger: 80, Target: 1},
	} {
		var body event.SetCompaction
		require.NoError(t, json.Unmarshal([]byte(input), &body))
		require.NoError(t, event.New(body).Validate())
		require.Equal(t, want, body.Limits(), input)
		again, err := json.Marshal(body)
		require.NoError(t, err)
		require.JSONEq(t, input, string(again))
		require.Equal(t, input == `{}`, body.IsZero())
	}
	var none *event.SetCompaction
	require.Equal(t, new(event.SetCompaction).Limits(), none.Limits())
}

func TestACompactionWithoutItsNewestMessageInWords(t *testing.T) {
	b := event.Compacted{Strategy: event.StrategyTruncate, Messages: 2, TokensBefore: 900, Model: "m", Window: 800}
	require.Equal(t, "removed 2 messages; the request had 900 tokens, the window of m has 800", b.String())
}

func TestInvalidCompactionsAreRejected(t *testing.T) {
	compacted := event.Compacted{
		RequestID: "demo:r0001", Strategy: event.StrategyTruncate, ThroughEventID: "demo:0002", Messages: 1, Window: 1, ProviderID: "p", Model: "m",
	}
	change := func(f func(*event.Compacted)) event.Compacted {
		b := compacted
		f(&b)
		return b
	}
	require.NoError(t, event.New(compacted).Validate())
	for want, body := range map[string]event.Body{
		`SetCompactionEvent.strategies: want drop_tool_results, summarise or truncate, got "forget"`: event.SetCompaction{Strategies: []event.Strategy{"forget"}},
		`SetCompactionEvent.strategies: truncate is repeated`: event.SetCompaction{
			Strategies: []event.Strategy{event.StrategyTruncate, event.StrategyTruncate},
		},
		`SetCompactionEvent.triggerPercent: want 10 to 100, got 9`:                             event.SetCompaction{TriggerPercent: new(9)},
		`SetCompactionEvent.targetPercent: want 1 to 79, got 80`:                               event.SetCompaction{TargetPercent: new(80)},
		`SetCompactionEvent.targetPercent: want 1 to 19, got 50`:                               event.SetCompaction{TriggerPercent: new(20), TargetPercent: new(50)},
		`CompactedEvent.summary: want a text if the strategy is summarise, and none otherwise`: change(func(b *event.Compacted) { b.Summary = "s" }),
		`CompactedEvent.summary: want a text`:                                                  change(func(b *event.Compacted) { b.Strategy = event.StrategySummarise }),
		`CompactedEvent.throughEventId: want the id of an event, like demo:0007`:               change(func(b *event.Compacted) { b.ThroughEventID = "demo" }),
		`CompactedEvent.messages: want 1 to 1000000000, got 0`:                                 change(func(b *event.Compacted) { b.Messages = 0 }),
		`CompactedEvent.omitted: want 0 to 1, got 2`:                                           change(func(b *event.Compacted) { b.Omitted = 2 }),
		`CompactedEvent.window: want 1 to 1000000000, got 0`:                                   change(func(b *event.Compacted) { b.Window = 0 }),
		`CompactedEvent.windowSource: want configured or learned, got "guessed"`:               change(func(b *event.Compacted) { b.WindowSource = "guessed" }),
		`LLMRequestStartedEvent.purpose: want compaction, got "fun"`:                           event.LLMRequestStarted{RequestID: "demo:r0001", Purpose: "fun"},
	} {
		require.ErrorContains(t, event.New(body).Validate(), want)
	}
}
