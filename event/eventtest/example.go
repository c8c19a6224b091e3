package eventtest

import "github.com/seed-9ed7edd4/chronicle/event"

// Examples returns a valid body of every tag, as a log of a context demo could contain them
// after a user message demo:0001 and an answer demo:0002. New events need an example here.
func Examples() []event.Body {
	const request, through = "demo:r0001", "demo:0001"
	usage := event.Usage{
		InputTokens: 3, CachedTokens: 1, OutputTokens: 4, ReasoningTokens: 2, CostMicros: new(int64(42)), PriceVersion: "2026-01",
	}
	return []event.Body{
		event.SystemPrompt{Content: "Be brief"},
		event.UserMessage{Content: "Hello", TriggersTurn: new(true), Settings: &event.RequestSettings{Temperature: new(0.0)}},
		event.AssistantMessage{
			Content: "Hi there!", RequestID: request, ThroughEventID: through, Reasoning: "The user greets me",
			ProviderState: &event.ProviderState{
				ProviderID: "openrouter", Model: "openai/gpt-5", BaseURL: "https://openrouter.ai/api/v1",
				Data: []byte(`{"reasoning_details":[{"type":"reasoning.encrypted","data":"c2lnbmVk"}]}`),
			},
		},
		event.FileAttachment{
			Source: event.Source{Type: event.SourceURL, URL: "https://example.com/cat.png"}, MediaType: "image/png", FileName: "cat.png", Size: 1024,
		},
		event.ToolCall{ToolCallID: "call_1", MessageID: "demo:0002", ToolName: "weather", Parameters: []byte(`{"city":"Paris"}`), RequestID: request},
		event.ToolResult{ToolCallID: "call_0", Value: []byte(`"sunny"`), DurationMs: 1200},
		event.Note{Kind: event.NoteThinking, Content: "The user greets me"},
		event.SetRetryConfig{MaxRetries: 5, InitialDelayMs: 200, BackoffFactor: new(1.5), MaxDelayMs: new(int64(10_000)), Jitter: true},
		event.SetProviderConfig{ProviderID: "ollama", Model: "llama3.2", BaseURL: "http://127.0.0.1:11434/v1", APIKeyRef: "env:OLLAMA_KEY",
			Temperature: new(0.3), MaxTokens: new(1000), TextOnly: true},
		event.SetTimeout{TimeoutMs: 60_000, FirstTokenMs: new(int64(10_000)), StallMs: new(int64(5_000))},
		event.SetDeliveryPolicy{Policy: event.PolicyQueue, QuietPeriodMs: new(int64(300)), MaxWaitMs: new(int64(2_000))},
		event.SetRequestSettings{
			Temperature: new(0.3), MaxTokens: new(1000), TopP: new(0.9), Stop: []string{"END"}, Seed: new(int64(7)),
			FrequencyPenalty: new(0.5), PresencePenalty: new(-0.5), Reasoning: event.ReasoningFull, ReasoningEffort: "low",
			ToolChoice: &event.ToolChoice{Mode: "auto"}, ParallelToolCalls: new(false),
			ResponseFormat: &event.ResponseFormat{
				Type: event.FormatJSONSchema, Name: "weather", Schema: event.Object(`{"type":"object"}`), Strict: true,
			},
			Extra: event.Object(`{"top_k":40}`), Labels: map[string]string{event.LabelUser: "u-17"},
		},
		event.SetTools{
			Tools: event.ToolList{{Pattern: "fetch"}, {Pattern: "mcp:files/*"}, {
				Name: "ask", Description: "Ask the user", Parameters: event.Object(`{"type":"object","properties":{"question":{"type":"string"}}}`),
			}},
			Approve: event.ApprovalRules{
				{Tool: "mcp:files/write_*"}, {Tool: "fetch", When: event.Object(`{"properties":{"url":{"pattern":"^http:"}}}`)},
			},
			MaxSteps: new(8), Parallel: new(2), MaxRepeats: new(4), ExpiryMs: new(int64(3_600_000)),
		},
		event.BudgetSet{Tokens: new(int64(100_000)), CostMicros: new(int64(2_500_000))},
		event.SetCompaction{
			Strategies: []event.Strategy{event.StrategyDropToolResults, event.StrategyTruncate}, TriggerPercent: new(90), TargetPercent: new(60),
		},
		event.ApprovalDecided{ToolCallID: "call_0", Decision: event.Approve, Reason: "looks fine", Parameters: []byte(`{"city":"Rome"}`),
			DecidedBy: "ann@example.com"},
		event.SessionStarted{LoadedEventCount: 2, PreviousRunID: "run-1", ForkedFrom: "other:0007"},
		event.SessionEnded{Reason: "closed"},
		event.LLMRequestStarted{RequestID: request, ProviderID: "openai", Model: "gpt-4o-mini", ThroughEventID: through, Attempt: 1,
			Purpose: event.PurposeCompaction},
		event.LLMRequestCompleted{RequestID: request, DurationMs: 1200, Usage: usage, FinishReason: "stop", ThroughEventID: through},
		event.LLMRequestInterrupted{RequestID: request, PartialResponse: "Hi", Reason: event.ReasonNewUserInput, ThroughEventID: through,
			Usage: event.Usage{InputTokens: 3, OutputTokens: 1, Estimated: true}},
		event.LLMRequestFailed{RequestID: request, Error: "status 503", RetriesAttempted: 3, ThroughEventID: through,
			Kind: event.FailureUnavailable, Retryable: true},
		event.LLMRequestFellBack{RequestID: request, FromProvider: "openai", ToProvider: "ollama", Error: "status 401", RetriesAttempted: 1,
			Kind: event.FailureUnauthorized},
		event.LLMAttemptEnded{RequestID: request, Attempt: 1, Outcome: event.AttemptFailed, Kind: event.FailureTimeout, Retryable: true,
			Error: "no token for 5s", DurationMs: 5200, Usage: event.Usage{InputTokens: 3, OutputTokens: 1, Estimated: true}},
		event.BudgetExceeded{RequestID: request, Budget: "team=support", Day: "2026-01-02", Limit: event.Budget{Tokens: new(int64(100_000))},
			Used: event.Amount{Tokens: 98_200, CostMicros: 42}, Wanted: event.Amount{Tokens: 4_800, CostMicros: 7}},
		event.ToolsOffered{RequestID: request, Attempt: 1, Patterns: []string{"mcp:files/*"}, Tools: []event.OfferedTool{{
			Name: "mcp__files__read", Canonical: "mcp:files/read", Description: "Read a file", Parameters: `{"type":"object"}`, Idempotent: true,
			TimeoutMs: 60_000, Attempts: 3,
		}}, Withheld: []event.WithheldTool{{Name: "mcp:files/sum", Reason: "the input schema is of type \"array\""}}},
		event.ApprovalRequested{ToolCallID: "call_0", RequestID: request, ExpiresAt: Epoch},
		event.HookApplied{RequestID: request, Attempt: 1, Hook: "pii", Stage: event.HookBefore, Outcome: event.HookChanged, Reason: "names removed",
			Change: &event.HookChange{
				Instructions: "Do not guess names.", Messages: []event.ReplacedMessage{{EventID: through, Content: "Hello from [name]"}},
				Settings: &event.RequestSettings{Temperature: new(0.0)},
			}},
		event.Compacted{RequestID: request, Strategy: event.StrategySummarise, ThroughEventID: through, Messages: 1, Summary: "The user greets.",
			Omitted: 1, TokensBefore: 7012, Window: 8192, WindowSource: event.WindowLearned, ProviderID: "openai", Model: "gpt-4o-mini"},
		event.ContentRefused{RequestID: request, ProviderID: "openai", Model: "gpt-4o-mini", Content: event.ContentImages,
			FromEventID: through, ThroughEventID: through, Error: "openai: bad request (400): the image is damaged"},
		event.InputRejected{Reason: "UserMessageEvent.content: missing", Input: `{"_tag":"UserMessage"}`},
		event.TextDelta{RequestID: request, Attempt: 1, Index: 0, Delta: "Hi", ThroughEventID: through},
		event.ReasoningDelta{RequestID: request, Attempt: 1, Index: 0, Delta: "The user", ThroughEventID: through},
		event.ToolProgress{RequestID: request, ToolCallID: "call_0", Index: 0, Text: "page 3 of 12"},
	}
}
