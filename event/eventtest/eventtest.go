// Package eventtest generates valid events and logs for property tests with [rapid].
//
//	rapid.Check(t, func(t *rapid.T) {
//		log := eventtest.Log("demo").Draw(t, "log")
//		…
//	})
//
// It covers every tag. Logs have the structure of real ones: ids are dense, parents are
// chained, times are monotonic, requests end once, and each tool result follows its call.
// Their content is random.
//
// [rapid]: https://pkg.go.dev/pgregory.net/rapid
package eventtest

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Epoch is the time at which generated logs begin.
var Epoch = time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)

// Body generates valid bodies of every tag.
func Body() *rapid.Generator[event.Body] {
	return rapid.OneOf(InputBody(), lifecycleBody(), erase(toolProgress()), erase(textDelta()),
		erase(rapid.Map(textDelta(), func(d event.TextDelta) event.ReasoningDelta { return event.ReasoningDelta(d) })))
}

func toolProgress() *rapid.Generator[event.ToolProgress] {
	return rapid.Custom(func(t *rapid.T) event.ToolProgress {
		return event.ToolProgress{
			RequestID: requestID(t), ToolCallID: callID(t), Index: rapid.IntRange(0, 99).Draw(t, "index"), Text: text(t),
		}
	})
}

func textDelta() *rapid.Generator[event.TextDelta] {
	return rapid.Custom(func(t *rapid.T) event.TextDelta {
		return event.TextDelta{
			RequestID: requestID(t), Attempt: rapid.IntRange(1, 9).Draw(t, "attempt"),
			Index: rapid.IntRange(0, 99).Draw(t, "index"), Delta: text(t), Reset: rapid.Bool().Draw(t, "reset"), ThroughEventID: through(t),
		}
	})
}

// InputBody generates valid bodies of every tag that clients may send, with random references.
func InputBody() *rapid.Generator[event.Body] {
	return rapid.OneOf(
		erase(rapid.Custom(func(t *rapid.T) event.SystemPrompt { return event.SystemPrompt{Content: text(t)} })),
		erase(UserMessage()),
		erase(rapid.Custom(func(t *rapid.T) event.AssistantMessage {
			return event.AssistantMessage{
				Content: text(t), RequestID: rapid.SampledFrom([]string{"", "demo:r0001"}).Draw(t, "request"),
				ThroughEventID: through(t),
				Partial:        rapid.Bool().Draw(t, "partial"),
				Reasoning:      rapid.OneOf(rapid.Just(""), rapid.StringN(0, 12, 40)).Draw(t, "reasoning"),
				ProviderState:  optional(t, ProviderState()),
			}
		})),
		erase(FileAttachment()),
		erase(rapid.Custom(func(t *rapid.T) event.ToolCall {
			c := event.ToolCall{
				ToolCallID: callID(t), ToolName: name(t),
				MessageID: rapid.SampledFrom([]string{"", "demo:0001", "msg_foreign"}).Draw(t, "message"),
				RequestID: rapid.SampledFrom([]string{"", "", "demo:r0001"}).Draw(t, "request"),
			}
			if rapid.Bool().Draw(t, "has parameters") {
				c.Parameters = Value().Draw(t, "parameters")
			}
			return c
		})),
		erase(rapid.Custom(func(t *rapid.T) event.ToolResult {
			r := event.ToolResult{
				ToolCallID: callID(t), IsError: rapid.Bool().Draw(t, "is error"),
				DurationMs: rapid.SampledFrom([]int64{0, 0, 1200}).Draw(t, "duration"),
			}
			if r.IsError {
				r.Error = Value().Draw(t, "error")
			} else {
				r.Value = Value().Draw(t, "value")
			}
			return r
		})),
		erase(rapid.Custom(func(t *rapid.T) event.Note {
			kinds := []event.NoteKind{event.NoteThinking, event.NoteError, event.NoteWarning, event.NoteSystem, event.NoteUsage}
			return event.Note{Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), Content: text(t)}
		})),
		erase(ApprovalDecided()),
		ConfigBody(),
	)
}

// ApprovalDecided generates decisions about a random call or all calls.
func ApprovalDecided() *rapid.Generator[event.ApprovalDecided] {
	return rapid.Custom(func(t *rapid.T) event.ApprovalDecided {
		d := event.ApprovalDecided{
			Decision:  rapid.SampledFrom([]event.Decision{event.Approve, event.Deny}).Draw(t, "decision"),
			Reason:    text(t),
			DecidedBy: rapid.SampledFrom([]string{"", "ann@example.com"}).Draw(t, "by"),
		}
		if rapid.Bool().Draw(t, "names a call") {
			d.ToolCallID = callID(t)
		}
		if d.ToolCallID != "" && d.Decision == event.Approve && rapid.Bool().Draw(t, "edits") {
			d.Parameters = json.RawMessage(`{"city":"Rome"}`)
		}
		return d
	})
}

// UserMessage generates nonempty messages. One in four triggers no turn, one in four has settings.
func UserMessage() *rapid.Generator[event.UserMessage] {
	return rapid.Custom(func(t *rapid.T) event.UserMessage {
		m := event.UserMessage{Content: "u" + text(t)}
		switch rapid.IntRange(0, 3).Draw(t, "triggers") {
		case 0:
			m.TriggersTurn = new(false)
		case 1:
			m.TriggersTurn = new(true)
		}
		if rapid.IntRange(0, 3).Draw(t, "has settings") == 0 {
			m.Settings = new(RequestSettings().Draw(t, "settings"))
		}
		return m
	})
}

// ProviderState generates the state of a few models, in the form of several providers.
func ProviderState() *rapid.Generator[event.ProviderState] {
	return rapid.Custom(func(t *rapid.T) event.ProviderState {
		secret := rapid.SampledFrom([]string{"c2lnbmVk+/==", `\u003c\u0026\u003e\u00e9é`}).Draw(t, "opaque")
		return event.ProviderState{
			ProviderID: rapid.SampledFrom([]string{"openrouter", "gemini"}).Draw(t, "provider"), Model: name(t),
			BaseURL: rapid.SampledFrom([]string{"https://openrouter.ai/api/v1", "http://127.0.0.1:8000/v1"}).Draw(t, "url"),
			Data: json.RawMessage(rapid.SampledFrom([]string{
				`{}`, `{"reasoning_details":[{"type":"reasoning.encrypted","data":"` + secret + `","index":0}]}`,
				`{"z":1.50e3,"a":"` + secret + `"}`,
			}).Draw(t, "data")),
		}
	})
}

// FileAttachment generates attachments with every type of source.
func FileAttachment() *rapid.Generator[event.FileAttachment] {
	sources := []event.Source{
		{Type: event.SourceFile, Path: "notes/plan.txt"},
		{Type: event.SourceURL, URL: "https://example.com/cat.png"},
		{Type: event.SourceURL, URL: "data:text/plain,hello"},
		{Type: event.SourceBlob, Data: []byte{0, 1, 0xff}},
		{Type: event.SourceBlob, Ref: "sha256/" + strings.Repeat("0123456789abcdef", 4)},
	}
	return rapid.Custom(func(t *rapid.T) event.FileAttachment {
		source := rapid.SampledFrom(sources).Draw(t, "source")
		minSize, maxSize := int64(0), int64(1<<40)
		if source.IsRef() {
			minSize, maxSize = 1, event.MaxAttachmentBytes
		}
		return event.FileAttachment{
			Source:    source,
			MediaType: rapid.SampledFrom([]string{"image/png", "text/plain; charset=utf-8"}).Draw(t, "media type"),
			FileName:  rapid.SampledFrom([]string{"", "a file"}).Draw(t, "file name"),
			Size:      rapid.Int64Range(minSize, maxSize).Draw(t, "size"),
		}
	})
}

// Value generates canonical JSON values other than null, without fields named like an API key.
func Value() *rapid.Generator[json.RawMessage] {
	return rapid.Custom(func(t *rapid.T) json.RawMessage {
		switch rapid.IntRange(0, 2).Draw(t, "kind") {
		case 0:
			return json.RawMessage(rapid.SampledFrom([]string{
				`"sunny"`, `""`, `0`, `-1.50e3`, `123456789012345678901234567890`, `false`, `[]`, `{}`,
				`{"a":[1,{"b":null}],"z":"<&>"}`,
			}).Draw(t, "value"))
		case 1:
			return json.RawMessage(fmt.Sprintf(`{"city":"c%d"}`, rapid.IntRange(0, 99).Draw(t, "city")))
		default:
			// Decode it to get the canonical form.
			raw, err := json.Marshal(map[string]any{"_tag": "ToolCall", "toolCallId": "c", "toolName": "n", "parameters": text(t)})
			var e event.Event
			if err == nil {
				err = e.UnmarshalJSON(raw)
			}
			if err != nil {
				t.Fatalf("make a JSON string: %v", err)
			}
			return e.Body.(event.ToolCall).Parameters
		}
	})
}

func lifecycleBody() *rapid.Generator[event.Body] {
	return rapid.OneOf(
		erase(rapid.Custom(func(t *rapid.T) event.SessionStarted {
			return event.SessionStarted{
				LoadedEventCount: rapid.IntRange(0, 1e6).Draw(t, "loaded"), PreviousRunID: text(t),
				ForkedFrom: rapid.SampledFrom([]string{"", "origin:0007"}).Draw(t, "origin"),
			}
		})),
		erase(rapid.Custom(func(t *rapid.T) event.SessionEnded { return event.SessionEnded{Reason: text(t)} })),
		erase(rapid.Custom(func(t *rapid.T) event.LLMRequestStarted {
			return event.LLMRequestStarted{
				RequestID: requestID(t), ProviderID: "openai", Model: name(t), ThroughEventID: "demo:0001",
				Attempt: rapid.IntRange(1, 9).Draw(t, "attempt"),
				Purpose: rapid.SampledFrom([]event.Purpose{"", event.PurposeCompaction}).Draw(t, "purpose"),
			}
		})),
		erase(rapid.Custom(func(t *rapid.T) event.LLMRequestCompleted {
			return event.LLMRequestCompleted{
				RequestID: requestID(t), DurationMs: rapid.Int64Range(0, 1e6).Draw(t, "duration"),
				Usage: Usage().Draw(t, "usage"), FinishReason: "stop", ThroughEventID: through(t),
			}
		})),
		erase(rapid.Custom(func(t *rapid.T) event.LLMRequestInterrupted {
			return event.LLMRequestInterrupted{
				RequestID: requestID(t), PartialResponse: text(t),
				Reason:         rapid.SampledFrom([]event.Reason{event.ReasonNewUserInput, event.ReasonCancelled, event.ReasonTimeout}).Draw(t, "reason"),
				ThroughEventID: through(t), Usage: Usage().Draw(t, "usage"),
			}
		})),
		erase(rapid.Custom(func(t *rapid.T) event.LLMRequestFailed {
			return event.LLMRequestFailed{
				RequestID: requestID(t), Error: text(t), RetriesAttempted: rapid.IntRange(0, 9).Draw(t, "retries"), ThroughEventID: through(t),
				Kind: failureKind(t), Retryable: rapid.Bool().Draw(t, "retryable"), Usage: Usage().Draw(t, "usage"),
			}
		})),
		erase(rapid.Custom(func(t *rapid.T) event.LLMRequestFellBack {
			return event.LLMRequestFellBack{
				RequestID: requestID(t), FromProvider: "openai", ToProvider: "ollama", Error: text(t),
				Kind: failureKind(t), Retryable: rapid.Bool().Draw(t, "retryable"), Usage: Usage().Draw(t, "usage"),
			}
		})),
		erase(rapid.Custom(func(t *rapid.T) event.LLMAttemptEnded {
			outcomes := []event.AttemptOutcome{event.AttemptFailed, event.AttemptHandedBack, event.AttemptLost, event.AttemptToolCalls, event.AttemptCompacted}
			return event.LLMAttemptEnded{
				RequestID: requestID(t), Attempt: rapid.IntRange(1, 9).Draw(t, "attempt"),
				Outcome: rapid.SampledFrom(outcomes).Draw(t, "outcome"),
				Kind:    failureKind(t), Retryable: rapid.Bool().Draw(t, "retryable"), Error: text(t),
				DurationMs: rapid.Int64Range(0, 1e6).Draw(t, "duration"), Usage: Usage().Draw(t, "usage"),
			}
		})),
		erase(rapid.Custom(func(t *rapid.T) event.BudgetExceeded {
			b := event.BudgetExceeded{
				RequestID: requestID(t), Budget: event.BudgetOfContext, Limit: Budget().Draw(t, "limit"), Used: amount(t), Wanted: amount(t),
			}
			if rapid.Bool().Draw(t, "is of a label") {
				b.Budget, b.Day = "team=support", "2026-01-02"
			}
			return b
		})),
		erase(rapid.Custom(func(t *rapid.T) event.ApprovalRequested {
			return event.ApprovalRequested{
				ToolCallID: callID(t), RequestID: requestID(t), ExpiresAt: Epoch.Add(time.Duration(rapid.Int64Range(0, 1e15).Draw(t, "wait"))),
			}
		})),
		erase(ToolsOffered()),
		erase(HookApplied()),
		erase(Compacted()),
		erase(ContentRefused()),
		erase(rapid.Custom(func(t *rapid.T) event.InputRejected {
			return event.InputRejected{Reason: text(t), Input: text(t)}
		})),
	)
}

// ToolsOffered generates lists of tools of the worker for any request; some are empty.
func ToolsOffered() *rapid.Generator[event.ToolsOffered] {
	return rapid.Custom(func(t *rapid.T) event.ToolsOffered {
		b := event.ToolsOffered{
			RequestID: requestID(t), Attempt: rapid.IntRange(1, 9).Draw(t, "attempt"),
			Patterns: rapid.SampledFrom([][]string{{"fetch"}, {"fetch", "mcp:files/*"}}).Draw(t, "patterns"),
		}
		if rapid.Bool().Draw(t, "has fetch") {
			b.Tools = append(b.Tools, event.OfferedTool{Name: "fetch", Description: text(t), Parameters: `{"properties":{"apiKey":{}}}`})
		}
		if rapid.Bool().Draw(t, "has read") {
			b.Tools = append(b.Tools, event.OfferedTool{Name: "read", Canonical: "mcp:files/read", Idempotent: true, TimeoutMs: 9, Attempts: 3})
		}
		if rapid.Bool().Draw(t, "has withheld") {
			b.Withheld = []event.WithheldTool{{Name: "mcp:files/sum", Reason: text(t)}}
		}
		return b
	})
}

// HookApplied generates reports of hooks about attempts of any request.
func HookApplied() *rapid.Generator[event.HookApplied] {
	return rapid.Custom(func(t *rapid.T) event.HookApplied {
		b := event.HookApplied{
			RequestID: requestID(t), Attempt: rapid.IntRange(1, 9).Draw(t, "attempt"),
			Hook:    rapid.SampledFrom([]string{"pii", "guard"}).Draw(t, "hook"),
			Stage:   rapid.SampledFrom([]event.HookStage{event.HookBefore, event.HookBeside, event.HookAfter}).Draw(t, "stage"),
			Outcome: rapid.SampledFrom([]event.HookOutcome{event.HookChanged, event.HookRefused, event.HookFailed}).Draw(t, "outcome"),
			Reason:  text(t),
		}
		if b.Stage == event.HookBefore && b.Outcome == event.HookChanged {
			b.Change = &event.HookChange{Instructions: text(t)}
			if rapid.Bool().Draw(t, "replaces") {
				b.Change.Messages = []event.ReplacedMessage{{EventID: "demo:0001", Content: text(t)}}
			}
			if rapid.Bool().Draw(t, "has settings") {
				b.Change.Settings = new(RequestSettings().Draw(t, "settings"))
			}
		}
		return b
	})
}

// Usage generates valid usages.
func Usage() *rapid.Generator[event.Usage] {
	return rapid.Custom(func(t *rapid.T) event.Usage {
		u := event.Usage{
			InputTokens:  rapid.IntRange(0, 1e6).Draw(t, "input tokens"),
			OutputTokens: rapid.IntRange(0, 1e6).Draw(t, "output tokens"),
			Estimated:    rapid.Bool().Draw(t, "estimated"),
			CostMicros:   optional(t, rapid.Int64Range(0, event.MaxCostMicros)),
		}
		u.CachedTokens = rapid.IntRange(0, u.InputTokens).Draw(t, "cached tokens")
		u.ReasoningTokens = rapid.IntRange(0, u.OutputTokens).Draw(t, "reasoning tokens")
		if u.CostMicros != nil {
			u.PriceVersion = rapid.SampledFrom([]string{"2026-01", "0123456789ab"}).Draw(t, "price version")
		}
		if rapid.Bool().Draw(t, "has quirks") {
			u.Quirks = []string{"call_repeated", "parameter_dropped"}
		}
		return u
	})
}

func failureKind(t *rapid.T) event.FailureKind {
	return rapid.SampledFrom(append(event.FailureKinds(), "")).Draw(t, "kind")
}

// Event generates events of every tag with a complete envelope and sometimes unknown fields.
func Event() *rapid.Generator[event.Event] {
	return rapid.Custom(func(t *rapid.T) event.Event {
		n := rapid.IntRange(1, 20_000).Draw(t, "counter")
		e := event.Event{
			ID:            event.FormatID("demo", n),
			Timestamp:     Epoch.Add(time.Duration(rapid.Int64Range(0, 1e15).Draw(t, "age"))),
			ContextName:   "demo",
			ClientEventID: rapid.SampledFrom([]string{"", "client-1", "ключ"}).Draw(t, "client id"),
			Body:          Body().Draw(t, "body"),
		}
		if n > 1 {
			e.ParentID = event.FormatID("demo", n-1)
		}
		if rapid.Bool().Draw(t, "has extra") {
			e.Extra = rapid.MapOfN(rapid.StringMatching(`x-[a-z<"]{1,8}`), Value(), 1, 3).Draw(t, "extra")
		}
		return e
	})
}

func erase[T event.Body](g *rapid.Generator[T]) *rapid.Generator[event.Body] {
	return rapid.Map(g, func(b T) event.Body { return b })
}

func optional[T any](t *rapid.T, g *rapid.Generator[T]) *T {
	return rapid.Ptr(g, true).Draw(t, "optional")
}

func text(t *rapid.T) string { return rapid.StringN(0, 12, 40).Draw(t, "text") }

func name(t *rapid.T) string { return rapid.StringMatching(`[a-z][a-z0-9-]{0,9}`).Draw(t, "name") }

func requestID(t *rapid.T) string {
	return event.FormatRequestID("demo", rapid.IntRange(1, 20_000).Draw(t, "request"))
}

func through(t *rapid.T) string {
	return rapid.SampledFrom([]string{"", "demo:0001", "demo:0003"}).Draw(t, "through")
}

func callID(t *rapid.T) string {
	return fmt.Sprintf("call_%d", rapid.IntRange(0, 5).Draw(t, "call"))
}
