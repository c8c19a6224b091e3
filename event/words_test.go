package event_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
)

func TestSettingsInWords(t *testing.T) {
	for want, settings := range map[string]interface{ String() string }{
		"at most 3, first after 500ms": event.SetRetryConfig{MaxRetries: 3, InitialDelayMs: 500},
		"at most 1, first after 1.5s, backoff factor 1.5, max delay 10s, with jitter": event.SetRetryConfig{
			MaxRetries: 1, InitialDelayMs: 1500, BackoffFactor: new(1.5), MaxDelayMs: new(int64(10_000)), Jitter: true,
		},
		"the worker's default": event.SetProviderConfig{UseDefault: true},
		"none":                 event.SetProviderConfig{UseDefault: true, AsFallback: true},
		"openai gpt-4o-mini":   event.SetProviderConfig{ProviderID: "openai", Model: "gpt-4o-mini"},
		"local llama3.2 at http://127.0.0.1:11434/v1, key env:LOCAL_API_KEY, temperature 0, at most 100 tokens, text only": event.SetProviderConfig{
			ProviderID: "local", Model: "llama3.2", BaseURL: "http://127.0.0.1:11434/v1", APIKeyRef: "env:LOCAL_API_KEY",
			Temperature: new(0.0), MaxTokens: new(100), TextOnly: true,
		},
		"1m0s": event.SetTimeout{TimeoutMs: 60_000},
		"1m0s, first token within 10s, stall timeout 5s": event.SetTimeout{
			TimeoutMs: 60_000, FirstTokenMs: new(int64(10_000)), StallMs: new(int64(5000)),
		},
		"queue":           event.SetDeliveryPolicy{Policy: event.PolicyQueue},
		"quiet period 0s": event.SetDeliveryPolicy{QuietPeriodMs: new(int64(0))},
		"reject, quiet period 300ms, maximum wait 2s": event.SetDeliveryPolicy{
			Policy: event.PolicyReject, QuietPeriodMs: new(int64(300)), MaxWaitMs: new(int64(2000)),
		},
		"the defaults of the provider": event.SetRequestSettings{},
		"no limit":                     event.BudgetSet{},
		"drop_tool_results, summarise; from 80% to 50% of the window": event.SetCompaction{},
		"off": event.SetCompaction{Strategies: []event.Strategy{}},
		"removed 1 message through demo:0007; the request had 9000 tokens, the window of m has 8192": event.Compacted{
			Strategy: event.StrategyTruncate, Messages: 1, ThroughEventID: "demo:0007", TokensBefore: 9000, Window: 8192, Model: "m",
		},
		"summarised 12 messages through demo:0031; the request had 9000 tokens, the window of m has 8192 (learned); the summary omits the first 2": event.Compacted{
			Strategy: event.StrategySummarise, Messages: 12, ThroughEventID: "demo:0031", TokensBefore: 9000, Window: 8192, Model: "m",
			WindowSource: event.WindowLearned, Omitted: 2,
		},
		"at most 0 tokens":                   event.BudgetSet{Tokens: new(int64(0))},
		"at most 5000 tokens, at most $2.50": event.BudgetSet{Tokens: new(int64(5000)), CostMicros: new(int64(2_500_000))},
		"context: limit 5000 tokens, used 4100, wanted 1200; limit $0.01, used $0.0099, wanted $0.0002": event.BudgetExceeded{
			Budget: event.BudgetOfContext, Limit: event.Budget{Tokens: new(int64(5000)), CostMicros: new(int64(10_000))},
			Used: event.Amount{Tokens: 4100, CostMicros: 9900}, Wanted: event.Amount{Tokens: 1200, CostMicros: 200},
		},
		"team=support on 2026-01-02: limit 5000 tokens, used 5000, wanted 1": event.BudgetExceeded{
			Budget: "team=support", Day: "2026-01-02", Limit: event.Budget{Tokens: new(int64(5000)), CostMicros: new(int64(10_000))},
			Used: event.Amount{Tokens: 5000}, Wanted: event.Amount{Tokens: 1},
		},
		`temperature 0, at most 100 tokens, top_p 0.9, stop at "END", stop at "\n", seed 7, frequency penalty 0.5, presence penalty -0.5, ` +
			`reasoning effort low, tool choice weather, parallel tool calls false, answers in json_schema person, with the fields min_p top_k, ` +
			`label team "a b", label user "u-17"`: event.RequestSettings{
			Temperature: new(0.0), MaxTokens: new(100), TopP: new(0.9), Stop: []string{"END", "\n"}, Seed: new(int64(7)),
			FrequencyPenalty: new(0.5), PresencePenalty: new(-0.5), ReasoningEffort: "low",
			ToolChoice: &event.ToolChoice{Name: "weather"}, ParallelToolCalls: new(false),
			ResponseFormat: &event.ResponseFormat{Type: event.FormatJSONSchema, Name: "person", Schema: event.Object(`{}`)},
			Extra:          event.Object(`{"min_p":0.1,"top_k":40}`), Labels: map[string]string{"user": "u-17", "team": "a b"},
		},
	} {
		require.Equal(t, want, settings.String())
	}
}

func TestSetToolsString(t *testing.T) {
	tools := event.SetTools{
		Tools:    []event.Tool{{Pattern: "mcp:files/*"}, {Name: "ask", Parameters: event.Object(`{"type":"object"}`)}},
		Approve:  []event.ApprovalRule{{Tool: "mcp:files/write_*"}},
		MaxSteps: new(8),
	}
	require.Equal(t, "mcp:files/*, client tool ask; approve mcp:files/write_*; at most 8 steps", tools.String())
	tools.Approve[0].Tool = "mcp:files/wirte_*"
	tools.Tools[0].Pattern = "mcp:files/write_file"
	require.Contains(t, tools.String(), "approve mcp:files/wirte_* (matches none of the tools)")
}
