package eventtest

import (
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// SetTools generates valid settings of tools; some are empty.
func SetTools() *rapid.Generator[event.SetTools] {
	tools := []event.Tool{
		{Pattern: "fetch"}, {Pattern: "mcp:files/*"}, {Name: "ask"},
		{Name: "weather", Description: "The weather of a city", Parameters: event.Object(`{"type":"object","properties":{"city":{"type":"string"}}}`)},
	}
	rules := []event.ApprovalRule{{Tool: "*"}, {Tool: "mcp:files/write_*"}, {Tool: "weather", When: event.Object(`{"required":["city"]}`)}}
	return rapid.Custom(func(t *rapid.T) event.SetTools {
		s := event.SetTools{
			MaxSteps:   optional(t, rapid.IntRange(1, event.MaxMaxSteps)),
			Parallel:   optional(t, rapid.IntRange(1, event.MaxParallel)),
			MaxRepeats: optional(t, rapid.IntRange(2, event.MaxMaxRepeats)),
			ExpiryMs:   optional(t, rapid.Int64Range(event.MinExpiryMs, event.MaxExpiryMs)),
		}
		for _, tool := range tools {
			if rapid.Bool().Draw(t, "has tool") {
				s.Tools = append(s.Tools, tool)
			}
		}
		if rapid.Bool().Draw(t, "has a rule") {
			s.Approve = event.ApprovalRules{rapid.SampledFrom(rules).Draw(t, "rule")}
		}
		return s
	})
}

// ConfigBody generates valid bodies of the settings events.
func ConfigBody() *rapid.Generator[event.Body] {
	return rapid.OneOf(
		erase(rapid.Custom(func(t *rapid.T) event.SetRetryConfig {
			c := event.SetRetryConfig{
				MaxRetries:     rapid.IntRange(0, event.MaxMaxRetries).Draw(t, "max retries"),
				InitialDelayMs: rapid.Int64Range(1, event.MaxDelayMs).Draw(t, "initial delay"),
				BackoffFactor:  optional(t, rapid.Float64Range(1, event.MaxBackoffFactor)),
				Jitter:         rapid.Bool().Draw(t, "jitter"),
			}
			c.MaxDelayMs = optional(t, rapid.Int64Range(c.InitialDelayMs, event.MaxDelayMs))
			return c
		})),
		erase(rapid.Custom(func(t *rapid.T) event.SetProviderConfig {
			if rapid.IntRange(0, 4).Draw(t, "default") == 0 {
				return event.SetProviderConfig{UseDefault: true, AsFallback: rapid.Bool().Draw(t, "as fallback")}
			}
			return event.SetProviderConfig{
				ProviderID:  rapid.SampledFrom([]string{"openai", "ollama", "mistral"}).Draw(t, "provider"),
				Model:       name(t),
				APIKeyRef:   rapid.SampledFrom([]string{"", "env:OPENAI_API_KEY", "file:/run/secrets/key"}).Draw(t, "key"),
				BaseURL:     rapid.SampledFrom([]string{"", "https://api.openai.com/v1", "http://127.0.0.1:11434/v1"}).Draw(t, "url"),
				Temperature: optional(t, rapid.Float64Range(0, event.MaxTemperature)),
				MaxTokens:   optional(t, rapid.IntRange(1, event.MaxMaxTokens)),
				TextOnly:    rapid.Bool().Draw(t, "text only"),
				AsFallback:  rapid.Bool().Draw(t, "as fallback"),
			}
		})),
		erase(rapid.Custom(func(t *rapid.T) event.SetTimeout {
			timeout := rapid.Int64Range(1, event.MaxTimeoutMs).Draw(t, "timeout")
			return event.SetTimeout{
				TimeoutMs:    timeout,
				FirstTokenMs: optional(t, rapid.Int64Range(1, timeout)),
				StallMs:      optional(t, rapid.Int64Range(1, timeout)),
			}
		})),
		erase(rapid.Custom(func(t *rapid.T) event.SetDeliveryPolicy {
			return event.SetDeliveryPolicy{
				Policy:        rapid.SampledFrom(event.Policies()).Draw(t, "policy"),
				QuietPeriodMs: optional(t, rapid.Int64Range(0, event.MaxQuietPeriodMs)),
				MaxWaitMs:     optional(t, rapid.Int64Range(0, event.MaxQuietPeriodMs)),
			}
		})),
		erase(rapid.Map(RequestSettings(), func(s event.RequestSettings) event.SetRequestSettings { return event.SetRequestSettings(s) })),
		erase(SetTools()),
		erase(rapid.Map(Budget(), func(b event.Budget) event.BudgetSet { return event.BudgetSet(b) })),
		erase(SetCompaction()),
	)
}

// SetCompaction generates valid settings of compaction; some are empty.
func SetCompaction() *rapid.Generator[event.SetCompaction] {
	return rapid.Custom(func(t *rapid.T) event.SetCompaction {
		b := event.SetCompaction{TriggerPercent: optional(t, rapid.IntRange(10, 100))}
		b.TargetPercent = optional(t, rapid.IntRange(1, b.Limits().Trigger-1))
		if rapid.Bool().Draw(t, "has strategies") {
			all := rapid.Permutation(event.Strategies()).Draw(t, "strategies")
			b.Strategies = all[:rapid.IntRange(0, len(all)).Draw(t, "number")]
		}
		return b
	})
}

// Compacted generates compactions of any request through any of the first messages.
func Compacted() *rapid.Generator[event.Compacted] {
	return rapid.Custom(func(t *rapid.T) event.Compacted {
		b := event.Compacted{
			RequestID: requestID(t), Strategy: rapid.SampledFrom(event.Strategies()).Draw(t, "strategy"),
			ThroughEventID: event.FormatID("demo", rapid.IntRange(1, 9).Draw(t, "through")), Messages: rapid.IntRange(1, 99).Draw(t, "messages"),
			TokensBefore: rapid.IntRange(0, 1e6).Draw(t, "tokens"), Window: rapid.IntRange(1, 1e6).Draw(t, "window"),
			WindowSource: rapid.SampledFrom([]event.WindowSource{"", event.WindowConfigured, event.WindowLearned}).Draw(t, "source"),
			ProviderID:   "openai", Model: name(t),
		}
		if b.Strategy == event.StrategySummarise {
			b.Summary, b.Omitted = "s"+text(t), rapid.IntRange(0, b.Messages).Draw(t, "omitted")
		}
		return b
	})
}

// ContentRefused generates refusals of any content by the model of any request.
func ContentRefused() *rapid.Generator[event.ContentRefused] {
	return rapid.Custom(func(t *rapid.T) event.ContentRefused {
		b := event.ContentRefused{
			RequestID: requestID(t), ProviderID: "openai", Model: rapid.SampledFrom([]string{"gpt-4o-mini", "gpt-4o"}).Draw(t, "model"),
			Content: rapid.SampledFrom(event.Contents()).Draw(t, "content"), Error: text(t),
		}
		switch from := rapid.IntRange(0, 9).Draw(t, "from"); {
		case b.Content.OfTools():
			b.Tool = rapid.SampledFrom([]string{"", "fetch", "read"}).Draw(t, "tool")
		case from > 0:
			b.FromEventID = event.FormatID("demo", from)
			fallthrough
		default:
			b.ThroughEventID = event.FormatID("demo", rapid.IntRange(max(from, 1), 10).Draw(t, "through"))
		}
		return b
	})
}

// Budget generates valid budgets; some are empty.
func Budget() *rapid.Generator[event.Budget] {
	return rapid.Custom(func(t *rapid.T) event.Budget {
		return event.Budget{
			Tokens:     optional(t, rapid.Int64Range(0, event.MaxBudgetTokens)),
			CostMicros: optional(t, rapid.Int64Range(0, event.MaxCostMicros)),
		}
	})
}

func amount(t *rapid.T) event.Amount {
	return event.Amount{Tokens: rapid.Int64Range(0, 1e6).Draw(t, "tokens"), CostMicros: rapid.Int64Range(0, 1e6).Draw(t, "cost")}
}

// RequestSettings generates valid settings; some are empty.
func RequestSettings() *rapid.Generator[event.RequestSettings] {
	number := func(low, high float64) *rapid.Generator[float64] { return rapid.Float64Range(low, high) }
	return rapid.Custom(func(t *rapid.T) event.RequestSettings {
		s := event.RequestSettings{
			Reasoning:         rapid.SampledFrom(append(event.Reasonings(), "")).Draw(t, "reasoning"),
			Temperature:       optional(t, number(0, event.MaxTemperature)),
			MaxTokens:         optional(t, rapid.IntRange(1, event.MaxMaxTokens)),
			TopP:              optional(t, number(0, 1)),
			Stop:              rapid.SampledFrom([][]string{nil, {"END"}, {"<", "\n\n"}}).Draw(t, "stop"),
			Seed:              optional(t, rapid.Int64()),
			FrequencyPenalty:  optional(t, number(-event.MaxPenalty, event.MaxPenalty)),
			PresencePenalty:   optional(t, number(-event.MaxPenalty, event.MaxPenalty)),
			ReasoningEffort:   rapid.SampledFrom(append(event.ReasoningEfforts(), "")).Draw(t, "effort"),
			ToolChoice:        optional(t, rapid.SampledFrom([]event.ToolChoice{{Mode: "auto"}, {Name: "weather"}})),
			ParallelToolCalls: optional(t, rapid.Bool()),
			ResponseFormat: optional(t, rapid.SampledFrom([]event.ResponseFormat{
				{Type: event.FormatText}, {Type: event.FormatJSONObject},
				{Type: event.FormatJSONSchema, Schema: event.Object(`{"properties":{"a\u003cb":{"type":"string"}}}`)},
				{Type: event.FormatJSONSchema, Name: "x", Schema: event.Object(`{}`), Strict: true},
			})),
			Labels: rapid.SampledFrom([]map[string]string{nil, {"user": "u-17"}, {"team": "<&>", "x": ""}}).Draw(t, "labels"),
		}
		if rapid.Bool().Draw(t, "has extra") {
			s.Extra = rapid.SampledFrom([]event.Object{event.Object(`{}`), event.Object(`{"top_k":40,"x":{"y":"\u003c"}}`)}).Draw(t, "extra")
		}
		return s
	})
}
