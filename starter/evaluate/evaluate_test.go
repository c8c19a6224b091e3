package evaluate_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/starter/evaluate"
)

func logOf(bodies ...event.Body) (log []event.Event) {
	for i, body := range bodies {
		e := event.New(body)
		e.ID = event.FormatID("demo", i+1)
		log = append(log, e)
	}
	return log
}

const request = "demo:r0001"

func started(purpose event.Purpose) event.Body {
	return event.LLMRequestStarted{RequestID: request, ProviderID: "p", Model: "m", Purpose: purpose}
}

var recorded = logOf(
	event.UserMessage{Content: "Look"},
	started(""), // an attempt that failed
	event.LLMAttemptEnded{RequestID: request, Attempt: 1, Outcome: event.AttemptFailed},
	started(""),
	event.AssistantMessage{RequestID: request, Content: "Let me look."},
	event.ToolCall{ToolCallID: "call_1", MessageID: "demo:0005", ToolName: "fetch", Parameters: json.RawMessage(`{"a":1}`), RequestID: request},
	event.LLMAttemptEnded{RequestID: request, Attempt: 2, Outcome: event.AttemptToolCalls, DurationMs: 5, Usage: event.Usage{InputTokens: 7}},
	event.ToolResult{ToolCallID: "call_1", Value: json.RawMessage(`"ok"`)},
	started(event.PurposeCompaction),
	event.LLMAttemptEnded{RequestID: request, Attempt: 3, Outcome: event.AttemptCompacted},
	started(""),
	event.UserMessage{Content: "And?"},
	event.AssistantMessage{RequestID: request, Content: "Done.", ThroughEventID: "demo:0010"},
	event.LLMRequestCompleted{RequestID: request, DurationMs: 9, FinishReason: "stop", Usage: event.Usage{OutputTokens: 3}},
	event.LLMRequestStarted{RequestID: "demo:r0002"},
	event.AssistantMessage{RequestID: "demo:r0002", Content: "And", Partial: true},
)

func TestEachCompleteAnswerIsAQuestion(t *testing.T) {
	require.Equal(t, []evaluate.Question{
		{
			ContextName: "demo", Answer: "demo:0005", Through: "demo:0004", Text: "Look",
			Recorded: client.Evaluated{
				ProviderID: "p", Model: "m", Text: "Let me look.", DurationMs: 5, FinishReason: "tool_calls", Usage: event.Usage{InputTokens: 7},
				Calls: []client.EvaluatedCall{{Name: "fetch", Arguments: json.RawMessage(`{"a":1}`)}},
			},
		},
		{
			ContextName: "demo", Answer: "demo:0013", Through: "demo:0011", Text: `[result of call_1] "ok"` + "\n\nAnd?",
			Recorded: client.Evaluated{ProviderID: "p", Model: "m", Text: "Done.", DurationMs: 9, FinishReason: "stop", Usage: event.Usage{OutputTokens: 3}},
		},
	}, evaluate.QuestionsOf("demo", recorded))
}

func TestAnImportedAnswerIsAQuestionIfItAnswersSomething(t *testing.T) {
	questions := evaluate.QuestionsOf("demo", logOf(
		event.AssistantMessage{Content: "Welcome"}, event.UserMessage{Content: "Hello"}, event.AssistantMessage{Content: "Hi"}, event.AssistantMessage{Content: "How are you?"},
	))
	require.Equal(t, []evaluate.Question{
		{ContextName: "demo", Answer: "demo:0003", Through: "demo:0002", Text: "Hello", Recorded: client.Evaluated{Text: "Hi"}},
	}, questions)
}

func calls(pairs ...string) (e client.Evaluated) {
	for i := 0; i < len(pairs); i += 2 {
		e.Calls = append(e.Calls, client.EvaluatedCall{Name: pairs[i], Arguments: json.RawMessage(pairs[i+1])})
	}
	return e
}

func TestMeasures(t *testing.T) {
	text := func(text string) client.Evaluated { return client.Evaluated{Text: text} }
	thinking := calls("a", `{}`)
	thinking.Text = "Let me see."
	for name, test := range map[string]struct {
		a, b                     client.Evaluated
		exact, normalized, words float64
	}{
		"the same text":            {text("It is 4."), text("It is 4."), 1, 1, 1},
		"formatting":               {text("It is **4**."), text("it is 4"), 0, 1, 1},
		"half of the words":        {text("red green"), text("red blue"), 0, 0, 0.5},
		"repeated words":           {text("no no no"), text("no"), 0, 0, 0.5},
		"scripts without spaces":   {text("你好"), text("你们"), 0, 0, 0.5},
		"nothing in common":        {text("yes"), text("no"), 0, 0, 0},
		"both empty":               {text(""), text(""), 1, 1, 1},
		"an error":                 {text("yes"), client.Evaluated{Text: "yes", Error: "timeout"}, 0, 0, 0},
		"the same call":            {calls("a", `{"x":1,"y":2}`), calls("a", ` {"y":2, "x":1}`), 1, 1, 1},
		"no arguments":             {calls("a", `{}`), calls("a", ``), 1, 1, 1},
		"another order of calls":   {calls("a", `{}`, "b", `{}`), calls("b", `{}`, "a", `{}`), 1, 1, 1},
		"a call more":              {calls("a", `{}`), calls("a", `{}`, "a", `{}`), 0, 0, 2.0 / 3},
		"large numbers":            {calls("a", `{"n":9007199254740993}`), calls("a", `{"n":9007199254740992}`), 0, 0, 0},
		"another text beside":      {calls("a", `{}`), thinking, 0, 1, 1},
		"a call instead of a text": {calls("a", `{}`), text("Let me see."), 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			for measure, want := range map[evaluate.Measure]float64{evaluate.Exact: test.exact, evaluate.Normalized: test.normalized, evaluate.Words: test.words} {
				require.InDelta(t, want, measure.Agreement(test.a, test.b), 1e-9, measure)
				require.InDelta(t, want, measure.Agreement(test.b, test.a), 1e-9, measure)
			}
		})
	}
}

func TestChangesAreMarked(t *testing.T) {
	require.Equal(t, []evaluate.Part{{Text: "It is "}, {Text: "probably ", IsChanged: true}, {Text: "fine."}}, evaluate.Changed("It is probably fine.", "It  is\nfine."))
	require.Equal(t, []evaluate.Part{{Text: "Yes", IsChanged: true}}, evaluate.Changed("Yes", ""))
	require.Empty(t, evaluate.Changed("", "Yes"))
	long := strings.Repeat("word ", 2000)
	require.Equal(t, []evaluate.Part{{Text: long}}, evaluate.Changed(long, "other"))
}

// asked collects the ids of evaluations, in order.
type asked struct {
	mu  sync.Mutex
	ids []string
}

func (a *asked) ask(answer func(v evaluate.Variant, q evaluate.Question) (client.Evaluated, error)) evaluate.Ask {
	return func(_ context.Context, id string, q evaluate.Question, v evaluate.Variant) (client.Evaluated, error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.ids = append(a.ids, id[strings.IndexByte(id, '/')+1:])
		return answer(v, q)
	}
}

func open(t *testing.T, path string, settings evaluate.Settings) *evaluate.Results {
	t.Helper()
	results, err := evaluate.Open(path, settings)
	require.NoError(t, err)
	t.Cleanup(func() { _ = results.Close() })
	return results
}

func TestAnEvaluationContinuesWhereItWasCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "eval.jsonl")
	questions := evaluate.QuestionsOf("demo", recorded)
	settings := evaluate.Settings{System: new("Be brief.")}
	cut := errors.New("cut")
	var a asked
	var progress []evaluate.Progress
	note := func(p evaluate.Progress) { progress = append(progress, p) }
	first := open(t, path, settings)
	err := evaluate.Run(t.Context(), questions, first, 1, a.ask(func(v evaluate.Variant, q evaluate.Question) (client.Evaluated, error) {
		switch {
		case q.Answer == "demo:0013" && v == evaluate.Candidate:
			return client.Evaluated{}, cut
		case v == evaluate.Candidate:
			return client.Evaluated{Error: "no key"}, nil
		}
		return client.Evaluated{Model: "m", Text: "Yes"}, nil
	}), note)
	require.ErrorIs(t, err, cut)
	require.Equal(t, []string{"demo:0005/baseline/0", "demo:0005/candidate/0", "demo:0013/baseline/0", "demo:0013/candidate/0"}, a.ids)
	require.Equal(t, []evaluate.Progress{{0, 0, 4}, {1, 0, 4}, {2, 1, 4}, {3, 1, 4}}, progress)

	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = file.WriteString(`{"key":"demo`) // a line that was cut off
	require.NoError(t, errors.Join(err, file.Close()))
	a.ids, progress = nil, nil
	_, err = evaluate.Open(path, settings)
	require.EqualError(t, err, "results "+path+": another evaluation uses the file (wait for its end, or name another file)")
	require.NoError(t, first.Close())
	results := open(t, path, settings)
	require.NoError(t, evaluate.Run(t.Context(), questions, results, 2, a.ask(func(evaluate.Variant, evaluate.Question) (client.Evaluated, error) {
		return client.Evaluated{Model: "m", Text: "Done."}, nil
	}), note))
	slices.Sort(a.ids)
	require.Equal(t, []string{"demo:0005/candidate/1", "demo:0013/candidate/0"}, a.ids)
	require.Equal(t, []evaluate.Progress{{2, 0, 4}, {3, 0, 4}, {4, 0, 4}}, progress)
	require.Equal(t, "Yes", results.Get(questions[0], evaluate.Baseline).Text)
	require.Equal(t, "Done.", results.Get(questions[1], evaluate.Candidate).Text)

	require.NoError(t, results.Close())
	_, err = evaluate.Open(path, evaluate.Settings{})
	require.EqualError(t, err, "results "+path+": another provider, model or system prompt (name another file)")
}

func TestOtherFilesAreNotChanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "eval.jsonl")
	for _, data := range []string{"{}\n", "notes", "notes\nmore"} {
		require.NoError(t, os.WriteFile(path, []byte(data), 0o600))
		_, err := evaluate.Open(path, evaluate.Settings{})
		require.EqualError(t, err, "results "+path+": line 1: not the results of an evaluation (name another file)")
		kept, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, data, string(kept))
	}
}

func TestARunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	results := open(t, filepath.Join(t.TempDir(), "eval.jsonl"), evaluate.Settings{})
	err := evaluate.Run(ctx, evaluate.QuestionsOf("demo", recorded), results, 2, func(ctx context.Context, _ string, _ evaluate.Question, _ evaluate.Variant) (client.Evaluated, error) {
		return client.Evaluated{}, ctx.Err()
	}, func(evaluate.Progress) {})
	require.ErrorIs(t, err, context.Canceled)
}

func TestAgreementsAreFormattedWithoutErrorsOfFloats(t *testing.T) {
	tenths := 0.0
	for range 8 {
		tenths += 0.1
	}
	require.Less(t, tenths, 0.8)
	for agreement, want := range map[float64][2]string{
		0: {"0%", "0.000"}, 0.29: {"29%", "0.290"}, 0.57: {"57%", "0.570"}, tenths: {"80%", "0.800"},
		0.7999: {"79%", "0.799"}, 0.9999: {"99%", "0.999"}, 1: {"100%", "1.000"},
	} {
		require.Equal(t, want, [2]string{evaluate.Percent(agreement), evaluate.Decimal(agreement)})
	}
	require.False(t, evaluate.Below(tenths, 0.8))
	require.False(t, evaluate.Below(1.0/3, 1.0/3))
	require.True(t, evaluate.Below(0.7999, 0.8))
}

func TestTheReportComparesAnswersSafely(t *testing.T) {
	questions := evaluate.QuestionsOf("demo", recorded)
	questions[0].Text = "<script>alert(1)</script>"
	settings := evaluate.Settings{Provider: &event.SetProviderConfig{ProviderID: "q", Model: "n"}}
	results := open(t, filepath.Join(t.TempDir(), "eval.jsonl"), settings)
	require.NoError(t, evaluate.Run(t.Context(), questions, results, 1, func(_ context.Context, _ string, q evaluate.Question, v evaluate.Variant) (client.Evaluated, error) {
		switch {
		case v == evaluate.Baseline:
			return q.Recorded, nil
		case q.Answer == "demo:0005":
			return client.Evaluated{Error: "no key"}, nil
		}
		return client.Evaluated{ProviderID: "q", Model: "n", Text: "Almost. Done.", DurationMs: 1500, Usage: event.Usage{InputTokens: 10, CostMicros: new(int64(20_000))}}, nil
	}, func(evaluate.Progress) {}))
	report := evaluate.NewReport(settings, evaluate.Words, questions, results)
	require.Equal(t, evaluate.Sum{Answers: 2, Agreement: 1, InputTokens: 7, OutputTokens: 3, Unpriced: 2, DurationMs: 14}, report.Baseline)
	require.Equal(t, evaluate.Sum{Answers: 1, Failed: 1, Agreement: 1.0 / 3, InputTokens: 10, CostMicros: 20_000, DurationMs: 1500}, report.Candidate)
	require.Equal(t, "unknown", report.Baseline.Cost())
	require.Equal(t, "$0.02", report.Candidate.Cost())

	var page, data strings.Builder
	require.NoError(t, report.WriteHTML(&page))
	require.NotContains(t, page.String(), "<script")
	require.NotContains(t, page.String(), "http://")
	for _, want := range []string{"<mark>Almost. </mark>Done.", `<p class="error">no key</p>`, "<code>fetch {&#34;a&#34;:1}</code>", "color-scheme: light dark", "33%"} {
		require.Contains(t, page.String(), want)
	}
	require.NoError(t, report.WriteJSON(&data))
	var read evaluate.Report
	require.NoError(t, json.Unmarshal([]byte(data.String()), &read))
	require.Equal(t, report.Candidate, read.Candidate)
	require.Len(t, read.Questions, 2)
}
