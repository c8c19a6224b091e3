package activities_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sashabaranov/go-openai"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/hook"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// summarise returns a environment whose request summarises the beginning of a session, because it exceeds a
// window by far.
func summarise(t *testing.T, s reducer.Session, window int, steps ...llmtest.Step) *environment {
	t.Helper()
	s, _ = reducer.Step(s, reducer.AttemptEnded{
		At: time.Now(), RequestID: s.Request.ID, Attempt: 1, ProviderID: "openai", Model: "scripted",
		Outcome: reducer.TooLong, Overflow: &reducer.Overflow{Tokens: 100 * window, Window: window, Source: event.WindowConfigured},
	})
	require.NotNil(t, s.Request.Compaction, "no summary is requested")
	return newEnvironment(t, s, steps...)
}

func TestASummaryRepeatsThePrefixOfTheConversation(t *testing.T) {
	session := longSession(5, event.SystemPrompt{Content: "Be brief."}, event.SetTools{Tools: event.ToolList{ask}}, event.SetRequestSettings{
		Temperature: new(0.5), Stop: []string{"."}, MaxTokens: new(10), ResponseFormat: &event.ResponseFormat{Type: event.FormatJSONObject},
		ToolChoice: &event.ToolChoice{Mode: "required"},
	})
	plain := newEnvironment(t, session, llmtest.Answer(`{}`))
	plain.generated()

	w := summarise(t, session, 40_000, llmtest.Answer("They", " said word."))
	sub := w.connect()
	result := w.generated()
	require.Equal(t, reducer.Completed, result.Outcome)
	require.Equal(t, "They said word.", result.Text)
	require.Zero(t, result.Omitted)
	require.Empty(t, w.published(sub), "viewers see no deltas of a summary")

	before, request := plain.model.Requests()[0], w.model.Requests()[0]
	n := len(request.Messages) - 1
	require.Equal(t, before.Messages[:n], request.Messages[:n])
	require.Len(t, before.Messages, n+1, "all but the newest message")
	require.Contains(t, request.LastUser(), "Summarise the conversation above.")
	require.Contains(t, request.LastUser(), "at most 1000 words")
	require.Equal(t, before.Tools, request.Tools)
	require.Equal(t, "none", request.ToolChoice)
	require.InDelta(t, 0.5, request.Temperature, 0.001)
	require.Equal(t, 4096, request.OutputLimit())
	require.Empty(t, request.Stop)
	require.Nil(t, request.ResponseFormat)
}

func TestExtraFieldsDoNotReplaceTheSettingsOfASummary(t *testing.T) {
	w := summarise(t, longSession(5, event.SetRequestSettings{Extra: event.Object(
		`{"response_format":{"type":"json_object"},"stop":["."],"tool_choice":"required","max_completion_tokens":16,"top_k":3}`,
	)}), 40_000, llmtest.Answer("They said word."))
	w.generated()
	request := w.model.Requests()[0]
	require.Nil(t, request.ResponseFormat)
	require.Empty(t, request.Stop)
	require.NotEqual(t, "required", request.ToolChoice)
	require.Equal(t, 4096, request.OutputLimit())
	require.NotContains(t, string(request.Body), "max_completion_tokens")
	require.Contains(t, string(request.Body), `"top_k":3`)
}

// Providers reject a request whose reasoning may take all of the output.
func TestTheReasoningOfASummaryIsBelowItsOutputLimit(t *testing.T) {
	for extra, isSent := range map[string]bool{
		`{"thinking":{"type":"enabled","budget_tokens":4095}}`: true,
		`{"thinking":{"type":"enabled","budget_tokens":4096}}`: false,
		`{"thinking":{"type":"disabled"}}`:                     true,
		`{"reasoning":{"max_tokens":2000}}`:                    true,
		`{"reasoning":{"max_tokens":8000}}`:                    false,
		`{"reasoning":{"effort":"high"}}`:                      true,
		`{"reasoning":"high"}`:                                 true,
	} {
		t.Run(extra, func(t *testing.T) {
			w := summarise(t, longSession(5, event.SetRequestSettings{Extra: event.Object(extra)}), 40_000, llmtest.Answer("They said word."))
			w.generated()
			body := string(w.model.Requests()[0].Body)
			require.Equal(t, isSent, strings.Contains(body, strings.Trim(extra, "{}")), body)
		})
	}
}

func TestASummaryOmitsTheOldestMessages(t *testing.T) {
	w := summarise(t, longSession(9, event.SystemPrompt{Content: "Be brief."}), 6000, llmtest.Answer("They said word."))
	result := w.generated()
	request := w.model.Requests()[0]
	require.Equal(t, 9-result.Omitted+2, len(request.Messages))
	require.Equal(t, openai.ChatMessageRoleSystem, request.Messages[0].Role)
	require.InDelta(t, 5, result.Omitted, 1)
	require.Equal(t, 750, request.OutputLimit())
}

func TestASummaryNeverSplitsCallsFromTheirResults(t *testing.T) {
	bodies := []event.Body{event.SetCompaction{Strategies: []event.Strategy{event.StrategySummarise}}}
	for range 4 {
		bodies = append(bodies, event.UserMessage{Content: strings.Repeat("word ", 1000)},
			event.AssistantMessage{Content: "I look."}, event.ToolCall{ToolCallID: "call_1", ToolName: "look"},
			event.ToolResult{ToolCallID: "call_1", Value: []byte(`"` + strings.Repeat("word ", 1000) + `"`)})
	}
	for window := 1000; window < 12_000; window += 500 {
		w := summarise(t, longSession(1, bodies...), window, llmtest.Answer("They looked."))
		w.generated()
		called := false
		for _, m := range w.model.Requests()[0].Messages {
			require.False(t, m.Role == openai.ChatMessageRoleTool && !called)
			require.NotContains(t, m.Content, "Result of a tool call that is not part of this conversation")
			called = len(m.ToolCalls) > 0 || m.Role == openai.ChatMessageRoleTool
		}
	}
}

func TestAMessageBeyondTheWindowIsShortened(t *testing.T) {
	w := summarise(t, longSession(1), 800, llmtest.Answer("They said word."))
	result := w.generated()
	require.Equal(t, 1, result.Omitted, "the message is not complete")
	content := w.model.Requests()[0].Messages[0].Content
	require.Greater(t, len(strings.Fields(content)), 200, "the room of some 500 tokens is used")
	require.Less(t, len(strings.Fields(content)), 620)
	require.True(t, strings.HasSuffix(content, "…"))
}

func TestHooksSeeThePurposeOfASummary(t *testing.T) {
	w := summarise(t, longSession(5), 40_000, llmtest.Answer("Ann said word."))
	var seen []event.Purpose
	w.use(hook.Hook{Name: "pii",
		Before: func(_ context.Context, r hook.Request) (hook.Verdict, error) {
			seen = append(seen, r.Purpose)
			return hook.Verdict{}, nil
		},
		After: func(_ context.Context, r hook.Request, answer hook.Response) (hook.Verdict, error) {
			seen = append(seen, r.Purpose)
			return hook.ReplaceText(strings.ReplaceAll(answer.Text, "Ann", "[name]"), ""), nil
		},
	})
	result := w.generated()
	require.Equal(t, "[name] said word.", result.Text)
	require.Equal(t, []event.Purpose{event.PurposeCompaction, event.PurposeCompaction}, seen)
}

func TestABudgetCoversASummary(t *testing.T) {
	w := summarise(t, longSession(5, tokens(8000)), 40_000)
	require.InDelta(t, 5000+4096, float64(exceeded(t, w.generated()).Wanted.Tokens), 250)
}
