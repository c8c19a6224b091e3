package activities_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/hook"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// inPerson sets the response format to an object with a name.
var inPerson = event.SetRequestSettings{ResponseFormat: &event.ResponseFormat{
	Type: event.FormatJSONSchema, Schema: event.Object(`{"type":"object","required":["name"]}`),
}}

const missingName = "openai: invalid answer: root: missing property 'name'"

func prompt(r llmtest.Request) []string {
	var out []string
	for _, m := range r.Messages {
		out = append(out, m.Role+": "+m.Content)
	}
	return out
}

var toRepair = &reducer.Repair{Answer: `{"nick":"A"}`, Problem: "root: missing property 'name'"}

var repaired = []string{
	"user: Hello", `assistant: {"nick":"A"}`,
	"user: Your answer is invalid: root: missing property 'name'\n" +
		"Answer again. Write valid JSON and nothing else: no explanation and no code fence.",
}

func TestAnInvalidAnswerAsksForItsRepair(t *testing.T) {
	long := `{"nick":"` + strings.Repeat("A", 40_000) + `"}`
	checked := hook.Hook{Name: "pii", After: saysAfter(hook.Verdict{})}
	for name, test := range map[string]struct {
		answer string
		hooks  []hook.Hook
		want   reducer.Repair
	}{
		"a short answer":            {`{"nick":"A"}`, nil, *toRepair},
		"a long one is omitted":     {long, nil, reducer.Repair{Problem: toRepair.Problem}},
		"one that hooks check, too": {`{"nick":"A"}`, []hook.Hook{checked}, reducer.Repair{Problem: "it does not have the response format"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newSession(inPerson), llmtest.Answer(test.answer))
			w.use(test.hooks...)
			failed := w.failure()
			require.Equal(t, event.FailureBadResponse, failed.Kind)
			require.True(t, failed.Retryable)
			require.Equal(t, &test.want, failed.Repair)
			if test.hooks != nil {
				require.NotContains(t, failed.Error, "nick")
				return
			}
			require.True(t, strings.HasPrefix(failed.Error, missingName+` (the answer: {"nick":"A`), failed.Error)
		})
	}
}

func TestARepairShowsTheInvalidAnswer(t *testing.T) {
	for name, test := range map[string]struct {
		repair *reducer.Repair
		want   []string
	}{
		"its text":         {toRepair, repaired},
		"only its problem": {&reducer.Repair{Problem: toRepair.Problem}, []string{repaired[0], repaired[2]}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newSession(inPerson), llmtest.Answer(`{"name":"Ann"}`))
			w.in.Repair = test.repair
			result := w.generated()
			require.Equal(t, reducer.Completed, result.Outcome)
			require.Equal(t, `{"name":"Ann"}`, result.Text)
			require.Equal(t, test.want, prompt(w.model.Requests()[0]))
		})
	}
}

func TestHooksSeeARepair(t *testing.T) {
	w := newWorld(t, newSession(inPerson), llmtest.Answer(`{"name":"Ann"}`))
	w.in.Repair = toRepair
	var seen []*reducer.Repair
	w.use(hook.Hook{Name: "guard", Before: func(_ context.Context, r hook.Request) (hook.Verdict, error) {
		seen = append(seen, r.Repair)
		return hook.Verdict{Change: &hook.Change{HookChange: event.HookChange{Instructions: "Be brief."}}}, nil
	}})
	w.generated()
	require.Equal(t, []*reducer.Repair{{Answer: `{"nick":"A"}`, Problem: "root: missing property 'name'"}}, seen)
	require.Equal(t, append([]string{"system: Be brief."}, repaired...), prompt(w.model.Requests()[0]))
}

func TestAnInvalidRepairIsNotRepaired(t *testing.T) {
	w := newWorld(t, newSession(inPerson), llmtest.Answer(`{}`))
	w.in.Repair = toRepair
	failed := w.failure()
	require.False(t, failed.Retryable)
	require.Nil(t, failed.Repair)
	require.Equal(t, missingName+` (the answer: {})`, failed.Error)
}

func TestAnAnswerThatEndsEarlyIsNotRepaired(t *testing.T) {
	failed := newWorld(t, newSession(inPerson), llmtest.Answer(`{"name":"A`).Finish("length")).failure()
	require.False(t, failed.Retryable)
	require.Nil(t, failed.Repair)
	require.Contains(t, failed.Error, "the answer reached the maximum length before its JSON was complete (raise maxTokens, or ask for less)")
	require.Contains(t, failed.Error, `(the answer: {"name":"A)`)
}

func TestARequestThatCannotBeSentFails(t *testing.T) {
	invalid := event.SetRequestSettings{ResponseFormat: &event.ResponseFormat{
		Type: event.FormatJSONSchema, Schema: event.Object(`{"type":"strin"}`),
	}}
	w := newWorld(t, newSession(invalid))
	failed := w.failure()
	require.Contains(t, failed.Error, "the schema of the response format is invalid: /type: ")
	require.Equal(t, event.FailureConfiguration, failed.Kind)
	require.False(t, failed.Retryable)
	require.Empty(t, w.model.Requests())
}

func TestTheSettingsOfTheMessageAreSent(t *testing.T) {
	s := reducer.NewSession("demo")
	s, _ = reducer.Step(s, reducer.Opened{At: time.Now()})
	s, _ = reducer.Step(s, reducer.Received{At: time.Now(), Events: []event.Event{
		event.New(event.SetRequestSettings{TopP: new(0.5), Seed: new(int64(1))}),
		event.New(event.UserMessage{Content: "Hello", Settings: &event.RequestSettings{Seed: new(int64(2))}}),
	}})
	w := newWorld(t, s, llmtest.Answer("Hi"))
	w.generated()
	require.InDelta(t, 0.5, w.model.Requests()[0].TopP, 1e-6)
	require.Equal(t, 2, *w.model.Requests()[0].Seed)
}
