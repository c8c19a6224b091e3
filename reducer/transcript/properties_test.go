package transcript_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
	"github.com/seed-9ed7edd4/chronicle/reducer/transcript"
)

func TestPatchesUpdateAnyVersionToTheNewest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := anyEvents(t)
		p := transcript.NewPatcher()
		documents := []string{marshal(t, p.Document())} // by version
		followed := documents[0]                        // by a viewer that applies every patch
		for i, e := range events {
			before := p.Version()
			patch := p.Apply(e)
			document := marshal(t, p.Document())
			if p.Version() == before {
				require.Empty(t, patch)
				require.Equal(t, documents[before], document)
				continue
			}
			require.Equal(t, before+1, p.Version())
			documents = append(documents, document)
			followed = apply(t, followed, patch)
			want := joined(t, document)
			require.Equal(t, want, joined(t, followed), "after event %d", i)
			version := rapid.IntRange(0, p.Version()).Draw(t, "version")
			require.Equal(t, want, joined(t, apply(t, documents[version], since(t, p, version))), "since version %d", version)
		}
		want := joined(t, marshal(t, p.Document()))
		for version, document := range documents {
			require.Equal(t, want, joined(t, apply(t, document, since(t, p, version))), "since version %d", version)
		}
	})
}

func TestADocumentDependsOnlyOnTheLog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		live, loaded := transcript.NewPatcher(), transcript.NewPatcher()
		for _, e := range anyEvents(t) {
			live.Apply(e)
			if e.ID != "" {
				loaded.Apply(e)
			}
		}
		got := live.Document()
		got.Entries = slices.DeleteFunc(got.Entries, streams)
		for i := range got.Entries {
			got.Entries[i].Content.Progress = ""
		}
		require.Equal(t, marshal(t, loaded.Document()), marshal(t, got))
	})
}

func streams(item transcript.Item) bool { return item.Content.Chunks != nil }

func TestDeltasOfOtherAttemptsAreNotShown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all, own := transcript.NewPatcher(), transcript.NewPatcher()
		var running event.Running
		newest := 0
		for _, e := range anyEvents(t) {
			all.Apply(e)
			d, isText := e.Body.(event.TextDelta)
			reasoning, isReasoning := e.Body.(event.ReasoningDelta)
			if isReasoning {
				d = event.TextDelta(reasoning)
			}
			if !isText && !isReasoning || running.Compare(d.RequestID, d.Attempt) == 0 {
				own.Apply(e)
			}
			before := running
			if n := event.Counter(e.ID); n > newest { // not repeated
				newest, running = n, running.After(e)
			}
			document := all.Document()
			require.Equal(t, marshal(t, own.Document()), marshal(t, document))
			if !running.IsSameAttempt(before) {
				require.False(t, slices.ContainsFunc(document.Entries, streams), "the end of an attempt removes its deltas")
			}
		}
	})
}

func TestReduceDoesNotModifyItsArguments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := anyEvents(t)
		var states []transcript.State
		var effects [][]transcript.Effect
		var s transcript.State
		for _, e := range events {
			next, effect := transcript.Reduce(s, e)
			states, effects = append(states, s), append(effects, effect)
			s = next
		}
		for i := range events {
			// Reductions from the same state are independent.
			for _, other := range events[i:] {
				transcript.Reduce(states[i], other)
			}
		}
		for i, e := range events {
			_, again := transcript.Reduce(states[i], e)
			require.Equal(t, effects[i], again, "event %d", i)
		}
	})
}

// anyEvents generates a log with repeated events and arbitrary requests and tools,
// and deltas of any attempt, most of them
// of the running one.
func anyEvents(t *rapid.T) []event.Event {
	var events []event.Event
	last := 0
	text := func() string { return rapid.StringN(0, 5, 12).Draw(t, "text") }
	request := func() string { return event.FormatRequestID("demo", rapid.IntRange(1, 3).Draw(t, "request")) }
	maybeRequest := func() string { return rapid.SampledFrom([]string{"", request()}).Draw(t, "maybe a request") }
	attempt := func() int { return rapid.IntRange(1, 3).Draw(t, "attempt") }
	through := func() string {
		if n := rapid.IntRange(0, last+2).Draw(t, "through"); n > 0 {
			return event.FormatID("demo", n)
		}
		return ""
	}
	tool := func() string { return rapid.SampledFrom([]string{"weather", "time"}).Draw(t, "tool") }
	call := func() string { return fmt.Sprintf("call_%d", rapid.IntRange(0, 3).Draw(t, "call")) }
	fields := func() map[string]json.RawMessage {
		return rapid.SampledFrom([]map[string]json.RawMessage{
			nil, {"sessionId": json.RawMessage(`"s1"`)}, {"sessionId": json.RawMessage(`"s2"`)}, {"sessionId": json.RawMessage(`7`), "a": json.RawMessage(`[1]`)},
		}).Draw(t, "fields")
	}
	delta := event.TextDelta{} // the previous one; some are consecutive
	var running event.Running
	answer := "" // the newest
	for range rapid.IntRange(0, 60).Draw(t, "steps") {
		var e event.Event
		switch rapid.SampledFrom([]string{
			"user", "file", "note", "settings", "started", "delta", "next delta", "next delta", "next delta", "next delta", "answer",
			"completed", "interrupted", "failed", "fell back", "call", "result", "again",
			"tool calls", "tools", "approval", "decision", "progress", "hook", "compacted",
		}).Draw(t, "step") {
		case "user":
			e.Body = event.UserMessage{Content: text()}
		case "file":
			e.Body = event.FileAttachment{
				Source: event.Source{Type: event.SourceURL, URL: "https://example.com/cat.png"}, MediaType: "image/png", FileName: text(),
			}
		case "note":
			kinds := []event.NoteKind{event.NoteThinking, event.NoteError, event.NoteWarning, event.NoteSystem, event.NoteUsage}
			e.Body = event.Note{Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), Content: text()}
			if rapid.Bool().Draw(t, "malformed") {
				e.Extra = map[string]json.RawMessage{"line": json.RawMessage(`"{"`)}
			}
		case "settings":
			e.Body = eventtest.SettingBody().Draw(t, "settings")
		case "started":
			e.Body = event.LLMRequestStarted{RequestID: request(), ThroughEventID: through(), Attempt: attempt()}
		case "delta":
			delta = event.TextDelta{
				RequestID: request(), Attempt: attempt(), Index: rapid.IntRange(0, 4).Draw(t, "index"), Delta: text(),
				Reset: rapid.Bool().Draw(t, "reset"), ThroughEventID: through(),
			}
			e.Body = ofKind(t, delta)
		case "next delta":
			if running.Compare(delta.RequestID, delta.Attempt) != 0 {
				number, attempt := running.Attempt()
				delta = event.TextDelta{RequestID: event.FormatRequestID("demo", number), Attempt: attempt, Index: -1, ThroughEventID: through()}
			}
			// 0 repeats a delta, 2 skips one.
			delta.Index = max(0, delta.Index+rapid.SampledFrom([]int{1, 1, 1, 0, 2}).Draw(t, "index increment"))
			delta.Delta, delta.Reset = text(), rapid.IntRange(0, 4).Draw(t, "reset") == 0
			e.Body = ofKind(t, delta)
		case "answer":
			body := event.AssistantMessage{Content: text(), ThroughEventID: through(), Partial: rapid.Bool().Draw(t, "partial")}
			if rapid.IntRange(0, 3).Draw(t, "has a request") > 0 {
				body.RequestID = request()
			}
			if rapid.Bool().Draw(t, "has reasoning") {
				body.Reasoning = text()
			}
			e.Body = body
			answer = event.FormatID("demo", last+1)
		case "completed":
			e.Body = event.LLMRequestCompleted{RequestID: request(), Usage: event.Usage{OutputTokens: 7}}
		case "interrupted":
			e.Body = event.LLMRequestInterrupted{RequestID: request(), Reason: event.ReasonCancelled}
		case "failed":
			e.Body = event.LLMRequestFailed{RequestID: request(), Error: text()}
		case "fell back":
			e.Body = event.LLMRequestFellBack{RequestID: request(), FromProvider: "a", ToProvider: "b", Usage: event.Usage{
				InputTokens: rapid.IntRange(0, 2).Draw(t, "input"), CostMicros: new(int64(5)),
			}}
		case "call":
			e.Body = event.ToolCall{
				ToolCallID: call(), MessageID: rapid.SampledFrom([]string{"", answer, "demo:0001", "msg_1"}).Draw(t, "message"),
				ToolName: tool(), Parameters: eventtest.Value().Draw(t, "parameters"), RequestID: maybeRequest(),
			}
			e.Extra = fields()
		case "result":
			e.Body = event.ToolResult{
				ToolCallID: call(), Value: eventtest.Value().Draw(t, "value"), DurationMs: rapid.Int64Range(0, 2).Draw(t, "duration"),
			}
			e.Extra = fields()
		case "tool calls":
			usage := event.Usage{InputTokens: rapid.IntRange(0, 9).Draw(t, "input")}
			if rapid.Bool().Draw(t, "has a cost") {
				usage.CostMicros = new(int64(3))
			}
			outcome := rapid.SampledFrom([]event.AttemptOutcome{event.AttemptToolCalls, event.AttemptFailed, event.AttemptCompacted}).Draw(t, "outcome")
			e.Body = event.LLMAttemptEnded{RequestID: request(), Attempt: attempt(), Outcome: outcome, Usage: usage, DurationMs: 5}
		case "tools":
			e.Body = rapid.SampledFrom([]event.Body{event.SetTools{}, event.SetTools{Tools: event.ToolList{{Name: "weather"}, {Pattern: "time"}}}}).Draw(t, "tools")
		case "hook":
			body := eventtest.Of[event.HookApplied]().Draw(t, "hook")
			body.RequestID = request()
			e.Body = body
		case "compacted":
			body := eventtest.Of[event.Compacted]().Draw(t, "compacted")
			body.RequestID = request()
			e.Body = body
		case "approval":
			e.Body = event.ApprovalRequested{ToolCallID: call(), RequestID: maybeRequest(), ExpiresAt: eventtest.Epoch}
		case "decision":
			body := event.ApprovalDecided{ToolCallID: rapid.SampledFrom([]string{"", call()}).Draw(t, "decided call"), Decision: event.Deny, Reason: text()}
			if rapid.Bool().Draw(t, "approves") {
				body.Decision, body.DecidedBy = event.Approve, "ann"
				body.Parameters = rapid.SampledFrom([]json.RawMessage{nil, json.RawMessage(`{"edited":1}`)}).Draw(t, "edited")
			}
			e.Body = body
		case "progress":
			e.Body = event.ToolProgress{ToolCallID: call(), RequestID: maybeRequest(), Index: rapid.IntRange(0, 3).Draw(t, "index"), Text: text()}
		case "again":
			if len(events) == 0 {
				continue
			}
			events = append(events, rapid.SampledFrom(events).Draw(t, "again"))
			continue
		}
		if e.Tag().Class() != event.ClassEphemeral {
			last++
			e.ID, e.Timestamp = event.FormatID("demo", last), eventtest.Epoch.Add(time.Duration(last)*time.Second)
		}
		running = running.After(e)
		events = append(events, e)
	}
	return events
}

// ofKind returns a delta of text or of reasoning.
func ofKind(t *rapid.T, d event.TextDelta) event.Body {
	if rapid.Bool().Draw(t, "is reasoning") {
		return event.ReasoningDelta(d)
	}
	return d
}

func since(t require.TestingT, p *transcript.Patcher, version int) []transcript.Operation {
	patch, ok := p.Since(version)
	require.True(t, ok)
	return patch
}

// apply applies a patch with an independent library.
func apply(t require.TestingT, document string, patch []transcript.Operation) string {
	decoded, err := jsonpatch.DecodePatch([]byte(marshal(t, patch)))
	require.NoError(t, err)
	out, err := decoded.Apply([]byte(document))
	require.NoError(t, err, "%s on %s", marshal(t, patch), document)
	return string(out)
}

// joined merges the chunks of each entry, whose boundaries are arbitrary.
func joined(t require.TestingT, document string) string {
	var d transcript.Document
	require.NoError(t, json.Unmarshal([]byte(document), &d))
	for i, item := range d.Entries {
		if item.Content.Chunks != nil {
			d.Entries[i].Content.Chunks = []string{strings.Join(item.Content.Chunks, "")}
		}
	}
	return marshal(t, d)
}

func marshal(t require.TestingT, value any) string {
	data, err := json.Marshal(value)
	require.NoError(t, err)
	return string(data)
}
