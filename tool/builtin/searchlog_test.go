package builtin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/tool/builtin"
)

// memory is the log of the context "demo".
type memory struct {
	t      *testing.T
	bodies []event.Body
	err    error
	read   int
}

func (m *memory) Events(_ context.Context, contextName, from string) iter.Seq2[event.Event, error] {
	require.Equal(m.t, "demo", contextName)
	require.Empty(m.t, from)
	return func(yield func(event.Event, error) bool) {
		for i, body := range m.bodies {
			m.read++
			e := event.Event{ID: event.FormatID("demo", i+1), Timestamp: time.Date(2026, 1, 2, 3, 4, i, 0, time.UTC), Body: body}
			if !yield(e, nil) {
				return
			}
		}
		if m.err != nil {
			yield(event.Event{}, m.err)
		}
	}
}

func text(s string) json.RawMessage {
	data, _ := json.Marshal(s)
	return data
}

func TestSearchLogFindsWhatModelsWereSent(t *testing.T) {
	log := &memory{t: t, bodies: []event.Body{
		event.SystemPrompt{Content: "You know the budget"},
		event.UserMessage{Content: "What is the Budget of the\nproject?"},
		event.ToolCall{ToolCallID: "c1", ToolName: "lookup", Parameters: json.RawMessage(`{"what":"budget"}`)},
		event.ToolResult{ToolCallID: "c1", Value: text("the budget is 5 €")},
		event.ToolResult{ToolCallID: "c2", Value: json.RawMessage(`{"budget":6}`)},
		event.ToolResult{ToolCallID: "c3", Error: text("no budget"), IsError: true},
		event.AssistantMessage{Content: strings.Repeat("é", 100) + " The project BUDGET is here. " + strings.Repeat("ü", 100)},
		event.FileAttachment{Source: event.Source{Type: event.SourceURL, URL: "https://example.com/budget.pdf"}, MediaType: "application/pdf"},
		event.Note{Kind: event.NoteSystem, Content: "the budget is a secret of the viewers"},
		event.ToolCall{ToolCallID: "c4", ToolName: "search_log", Parameters: json.RawMessage(`{"query":"budget"}`)},
		event.ToolResult{ToolCallID: "c4", Value: text("demo:0002 … budget")},
		event.UserMessage{Content: "unrelated"},
	}}
	set := setOf(t, builtin.SearchLog(log))
	for _, test := range []struct {
		arguments map[string]any
		want      []string
	}{
		{map[string]any{"query": "budget"}, []string{
			"demo:0008 2026-01-02T03:04:07Z attachment: https://example.com/budget.pdf",
			"demo:0007 2026-01-02T03:04:06Z assistant: …" + strings.Repeat("é", 53) + " The project BUDGET is here. " + strings.Repeat("ü", 52) + "…",
			"demo:0006 2026-01-02T03:04:05Z tool result: no budget",
			`demo:0005 2026-01-02T03:04:04Z tool result: {"budget":6}`,
			"demo:0004 2026-01-02T03:04:03Z tool result: the budget is 5 €",
			`demo:0003 2026-01-02T03:04:02Z tool call: lookup {"what":"budget"}`,
			"demo:0002 2026-01-02T03:04:01Z user: What is the Budget of the project?",
		}},
		{map[string]any{"query": "PROJECT the", "before": "demo:0007"}, []string{"demo:0002 2026-01-02T03:04:01Z user: What is the Budget of the project?"}},
		{map[string]any{"query": "budget", "limit": 2, "before": "demo:0005"}, []string{
			"demo:0004 2026-01-02T03:04:03Z tool result: the budget is 5 €",
			`demo:0003 2026-01-02T03:04:02Z tool call: lookup {"what":"budget"}`,
			"[3 events match; these are the newest 2]",
		}},
		{map[string]any{"query": "5 €"}, []string{"demo:0004 2026-01-02T03:04:03Z tool result: the budget is 5 €"}},
		{map[string]any{"query": "(?i)b.dget"}, []string{"[no event matches]"}},
		{map[string]any{"query": "secret"}, []string{"[no event matches]"}},
	} {
		t.Run(fmt.Sprint(test.arguments), func(t *testing.T) {
			text, result := use(t, set, "search_log", test.arguments)
			require.False(t, result.IsError, text)
			require.Equal(t, test.want, strings.Split(text, "\n"))
		})
	}
}

func TestSearchLogIsBounded(t *testing.T) {
	log := &memory{t: t}
	for range 10_000 {
		log.bodies = append(log.bodies, event.UserMessage{Content: strings.Repeat("word ", 1000)})
	}
	set := setOf(t, builtin.SearchLog(log))
	text, _ := use(t, set, "search_log", map[string]any{"query": "word", "limit": 50})
	lines := strings.Split(text, "\n")
	require.Len(t, lines, 51)
	require.True(t, strings.HasPrefix(lines[0], "demo:10000 "))
	require.Equal(t, "[10000 events match; these are the newest 50]", lines[50])
	require.Less(t, len(text), 16<<10)
	log.read = 0
	_, _ = use(t, set, "search_log", map[string]any{"query": "word", "before": "demo:0100"})
	require.Equal(t, 100, log.read)
}

func TestSearchLogFailures(t *testing.T) {
	set := setOf(t, builtin.SearchLog(&memory{t: t, err: errors.New("the server is unavailable")}))
	for _, test := range []struct {
		arguments map[string]any
		want      string
	}{
		{map[string]any{"query": "a"}, "the log cannot be read: the server is unavailable"},
		{map[string]any{"query": " "}, "query: want 1 to 16 words with at most 200 bytes in total"},
		{map[string]any{"query": strings.Repeat("a ", 17)}, "query: want 1 to 16 words with at most 200 bytes in total"},
		{map[string]any{"query": strings.Repeat("a", 201)}, "query: want 1 to 16 words with at most 200 bytes in total"},
		{map[string]any{"query": "a", "limit": 51}, "limit 51 is out of range (1 to 50)"},
		{map[string]any{"query": "a", "before": "12"}, "before: want an event id like demo:0012"},
	} {
		text, result := use(t, set, "search_log", test.arguments)
		require.True(t, result.IsError)
		require.Equal(t, test.want, text)
	}
}
