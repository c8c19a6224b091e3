package show_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/starter/show"
)

func TestLineHasTimeIDAndIndentedText(t *testing.T) {
	e := event.New(event.UserMessage{Content: "two\nlines"})
	e.ID, e.Timestamp = "demo:0002", time.Date(2026, 1, 2, 15, 4, 5, 0, time.Local)
	require.Equal(t, "15:04:05  demo:0002  user: two\n    lines", show.Line(e))
}

func TestNote(t *testing.T) {
	factor := 1.5
	for _, test := range []struct {
		body event.Body
		want string
	}{
		{event.SystemPrompt{}, "system prompt: (removed)"},
		{event.AssistantMessage{Content: "Hel", Partial: true}, "assistant (partial): Hel"},
		{event.FileAttachment{Source: event.Source{Type: event.SourceBlob, Data: []byte("secret")}, MediaType: "text/plain", Size: 6},
			"attachment: blob (text/plain, 6 bytes)"},
		{event.ToolCall{ToolName: "add", Parameters: []byte(`{"a":1}`)}, `tool call: add {"a":1}`},
		{event.ToolResult{Value: []byte(`2`)}, "tool result: 2"},
		{event.ToolResult{Error: []byte(`"no"`), IsError: true}, `tool error: "no"`},
		{event.SetRetryConfig{MaxRetries: 1, InitialDelayMs: 1500, BackoffFactor: &factor},
			"set retry: at most 1, first after 1.5s, backoff factor 1.5"},
		{event.SessionStarted{LoadedEventCount: 7}, "session started: continues after 7 events"},
		{event.SessionStarted{LoadedEventCount: 7, ForkedFrom: "demo:0007"}, "session started: forked from demo:0007"},
		{event.LLMRequestStarted{RequestID: "demo:r0001", Attempt: 2, ProviderID: "p", Model: "m"}, "request started: demo:r0001, attempt 2: p m"},
		{event.LLMRequestCompleted{DurationMs: 1200, Usage: event.Usage{InputTokens: 3, OutputTokens: 4}, FinishReason: "stop"},
			"completed: after 1.2s, 3 tokens in, 4 out, stop"},
		{event.LLMRequestInterrupted{Reason: event.ReasonNewUserInput, PartialResponse: "Hel"}, "interrupted: new user input"},
		{event.InputRejected{Reason: "bad\x1b[31m", Input: "x"}, `input rejected: bad\u001b[31m`},
	} {
		t.Run(test.want, func(t *testing.T) {
			require.Equal(t, test.want, show.Note(test.body))
		})
	}
}

func TestAnswerReturnsAGaplessPrefix(t *testing.T) {
	delta := func(attempt, index int, text string) event.TextDelta {
		return event.TextDelta{RequestID: "r1", Attempt: attempt, Index: index, Delta: text}
	}
	reset := func(attempt, index int, text string) event.TextDelta {
		d := delta(attempt, index, text)
		d.Reset = true
		return d
	}
	type step struct {
		delta event.TextDelta
		text  string
		void  bool
	}
	for _, test := range []struct {
		name  string
		steps []step
		whole string
		rest  string
		void  bool
	}{
		{"in order", []step{{delta(1, 0, "a"), "a", false}, {delta(1, 1, "b"), "b", false}}, "abc", "c", false},
		{"from the middle on", []step{{delta(1, 3, "d"), "", false}}, "abcd", "abcd", false},
		{"twice the same", []step{{delta(1, 0, "a"), "a", false}, {delta(1, 0, "a"), "", false}}, "ab", "b", false},
		{"with a gap", []step{{delta(1, 0, "a"), "a", false}, {delta(1, 2, "c"), "", false}}, "abc", "bc", false},
		{"with a second attempt", []step{{delta(1, 0, "a"), "a", false}, {reset(2, 0, "x"), "x", true}, {delta(1, 1, "b"), "", false}}, "xy", "y", false},
		{"with a second attempt without a reset", []step{{delta(1, 0, "a"), "a", false}, {delta(2, 0, "x"), "x", true}}, "x", "", false},
		{"with a reset before anything was shown", []step{{reset(2, 0, "x"), "x", false}}, "x", "", false},
		{"with another text in the log", []step{{delta(1, 0, "a"), "a", false}}, "xyz", "xyz", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			var a show.Answer
			for _, s := range test.steps {
				text, void := a.Add(s.delta)
				require.Equal(t, s.text, text)
				require.Equal(t, s.void, void)
			}
			rest, void := a.Complete(event.AssistantMessage{RequestID: "r1", Content: test.whole})
			require.Equal(t, test.rest, rest)
			require.Equal(t, test.void, void)
			late, _ := a.Add(delta(1, 9, "late"))
			require.Empty(t, late)
		})
	}
	t.Run("and continues with the next answer of the request", func(t *testing.T) {
		var a show.Answer
		a.Add(delta(1, 0, "Let me"))
		rest, void := a.Complete(event.AssistantMessage{RequestID: "r1", Content: "Let me look."})
		require.Equal(t, " look.", rest)
		require.False(t, void)
		text, void := a.Add(delta(2, 0, "It rains"))
		require.Equal(t, "It rains", text)
		require.False(t, void)
		late, _ := a.Add(delta(1, 1, " look."))
		require.Empty(t, late)
		rest, void = a.Complete(event.AssistantMessage{RequestID: "r1", Content: "It rains."})
		require.Equal(t, ".", rest)
		require.False(t, void)
		a.End("r1")
		late, _ = a.Add(delta(3, 0, "late"))
		require.Empty(t, late)
	})
	t.Run("and ignores assistant messages of clients", func(t *testing.T) {
		var a show.Answer
		a.Add(delta(1, 0, "a"))
		rest, void := a.Complete(event.AssistantMessage{Content: "from a client"})
		require.Equal(t, "from a client", rest)
		require.False(t, void)
		text, _ := a.Add(delta(1, 1, "b"))
		require.Equal(t, "b", text)
	})
}

func TestStyle(t *testing.T) {
	require.Equal(t, `pla\u001bin`, show.Style{}.Red("pla\x1bin"))
	require.Equal(t, "\x1b[2ma\x1b[0m\n\x1b[2mb\x1b[0m", show.Style{Color: true}.Dim("a\nb"))
}

func TestShort(t *testing.T) {
	require.Equal(t, "a b", show.Short(" a\n\nb ", 3))
	require.Equal(t, "a b…", show.Short("a b cd", 4))
}

func TestUsage(t *testing.T) {
	for want, u := range map[string]reducer.Usage{
		"1 attempt, 0 tokens in, 0 out, $0.00":                 {Attempts: 1},
		"3 attempts, ~7 tokens in (4 cached), 2 out":           {Attempts: 3, InputTokens: 7, CachedTokens: 4, OutputTokens: 2, Estimated: true, Unpriced: 2},
		"2 attempts, 7 tokens in, 2 out (1 reasoning), $0.01+": {Attempts: 2, InputTokens: 7, OutputTokens: 2, ReasoningTokens: 1, CostMicros: 10_000, Unpriced: 1},
	} {
		require.Equal(t, want, show.Usage(u))
	}
}
