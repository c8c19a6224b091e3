package activities_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/seed-9ed7edd4/chronicle/activities"
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

// heartbeats records the details of heartbeats.
func (w *world) heartbeats() (last func() any) {
	var details any
	w.env.SetOnActivityHeartbeatListener(func(_ *activity.Info, values converter.EncodedValues) {
		require.NoError(w.t, values.Get(&details))
	})
	return func() any { return details }
}

func prompt(r llmtest.Request) []string {
	var out []string
	for _, m := range r.Messages {
		out = append(out, m.Role+": "+m.Content)
	}
	return out
}

// requireInvalid requires the error of an invalid answer.
func requireInvalid(t *testing.T, err error, isRepaired bool) {
	t.Helper()
	var failed *temporal.ApplicationError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, "invalid answer", failed.Type())
	require.Equal(t, !isRepaired, failed.NonRetryable())
	if isRepaired {
		require.Equal(t, time.Millisecond, failed.NextRetryDelay())
	}
}

var repaired = []string{
	"user: Hello", `assistant: {"nick":"A"}`,
	"user: Your answer is invalid: root: missing property 'name'\n" +
		"Answer again. Write valid JSON and nothing else: no explanation and no code fence.",
}

func TestAnInvalidAnswerIsRepairedOnce(t *testing.T) {
	w := newWorld(t, newSession(inPerson), llmtest.Answer(`{"nick":"A"}`), llmtest.Answer(`{"name":"Ann"}`))
	w.in.MaxAttempts = 1 // the repair is not a retry
	_, err := w.generate()
	requireInvalid(t, err, true)
	require.ErrorContains(t, err, missingName+` (the answer: {"nick":"A"})`)

	w.in.FirstAttempt = 2
	result, err := w.generate()
	require.NoError(t, err)
	require.Equal(t, reducer.Completed, result.Outcome)
	require.Equal(t, `{"name":"Ann"}`, result.Text)
	require.Equal(t, 2, result.Attempt)
	require.Equal(t, repaired, prompt(w.model.Requests()[1]))
}

func TestHooksSeeARepair(t *testing.T) {
	w := newWorld(t, newSession(inPerson), llmtest.Answer(`{"nick":"A"}`), llmtest.Answer(`{"name":"Ann"}`))
	var seen []*hook.Repair
	w.use(hook.Hook{Name: "guard", Before: func(_ context.Context, r hook.Request) (hook.Verdict, error) {
		seen = append(seen, r.Repair)
		return hook.Verdict{Change: &hook.Change{HookChange: event.HookChange{Instructions: "Be brief."}}}, nil
	}})
	_, err := w.generate()
	requireInvalid(t, err, true)
	w.in.FirstAttempt = 2
	_, err = w.generate()
	require.NoError(t, err)
	require.Equal(t, []*hook.Repair{nil, {Answer: `{"nick":"A"}`, Problem: "root: missing property 'name'"}}, seen)
	require.Equal(t, append([]string{"system: Be brief."}, repaired...), prompt(w.model.Requests()[1]))
}

// Details of heartbeats become part of the history if the worker dies.
func TestTheHeartbeatOfARepairOmitsAnAnswerThatHooksCheck(t *testing.T) {
	w := newWorld(t, newSession(inPerson), llmtest.Answer(`{"nick":"A"}`))
	w.use(hook.Hook{Name: "pii", After: saysAfter(hook.Verdict{})})
	last := w.heartbeats()
	_, err := w.generate()
	requireInvalid(t, err, true)
	require.NotContains(t, fmt.Sprint(last()), "nick")
	require.Contains(t, fmt.Sprint(last()), "problem:it does not have the response format")
}

func TestASecondInvalidAnswerFails(t *testing.T) {
	w := newWorld(t, newSession(inPerson), llmtest.Answer(`{"nick":"A"}`), llmtest.Answer(`{}`))
	_, err := w.generate()
	requireInvalid(t, err, true)
	w.in.FirstAttempt = 2
	_, err = w.generate()
	requireInvalid(t, err, false)
	require.ErrorContains(t, err, missingName+` (the answer: {})`)
}

func TestAFailedRepairIsRetriedAsARepair(t *testing.T) {
	w := newWorld(t, newSession(inPerson), llmtest.Answer(`{"nick":"A"}`), llmtest.Error(503, "overloaded", "busy"), llmtest.Answer(`{}`))
	w.in.MaxAttempts = 1
	_, err := w.generate()
	requireInvalid(t, err, true)
	w.in.FirstAttempt = 2
	_, err = w.generate()
	require.ErrorContains(t, err, "busy")
	var failed *temporal.ApplicationError
	require.ErrorAs(t, err, &failed)
	require.False(t, failed.NonRetryable(), "the repair is in addition to the %d attempts", w.in.MaxAttempts)
	w.in.FirstAttempt = 3
	_, err = w.generate()
	requireInvalid(t, err, false)
	require.Equal(t, repaired, prompt(w.model.Requests()[2]))
}

func TestAnotherWorkerRepairs(t *testing.T) {
	long := `{"nick":"` + strings.Repeat("A", 40_000) + `"}`
	for name, test := range map[string]struct {
		answer string
		want   []string
	}{
		"a short answer":                    {`{"nick":"A"}`, repaired},
		"a long answer, without showing it": {long, []string{repaired[0], repaired[2]}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newSession(inPerson), llmtest.Answer(test.answer), llmtest.Answer(`{"name":"Ann"}`))
			details := w.heartbeats()
			_, err := w.generate()
			requireInvalid(t, err, true)

			w.reset(nil)
			w.in.FirstAttempt = 2
			data, err := json.Marshal(details())
			require.NoError(t, err)
			require.Less(t, len(data), 36<<10)
			w.env.SetHeartbeatDetails(details())
			_, err = w.generate()
			require.NoError(t, err)
			require.Equal(t, test.want, prompt(w.model.Requests()[1]))
		})
	}
}

func TestAChangedConversationNeedsNoRepair(t *testing.T) {
	first := newSession(inPerson)
	w := newWorld(t, first, llmtest.Answer(`{"nick":"A"}`), llmtest.Answer(`{}`))
	_, err := w.generate()
	requireInvalid(t, err, true)
	w.server.session = func(int) (reducer.Session, error) { return withInput(first, "and you?"), nil }
	w.in.FirstAttempt = 2
	_, err = w.generate()
	requireInvalid(t, err, false)
	require.Equal(t, []string{"user: Hello", "user: and you?"}, prompt(w.model.Requests()[1]))
}

func TestAnAnswerThatEndsEarlyIsNotRepaired(t *testing.T) {
	w := newWorld(t, newSession(inPerson), llmtest.Answer(`{"name":"A`).Finish("length"))
	_, err := w.generate()
	requireInvalid(t, err, false)
	require.ErrorContains(t, err, "the answer reached the maximum length before its JSON was complete (raise maxTokens, or ask for less)")
	require.ErrorContains(t, err, `(the answer: {"name":"A)`)
}

func TestARequestThatCannotBeSentIsNoAttempt(t *testing.T) {
	invalid := event.SetRequestSettings{ResponseFormat: &event.ResponseFormat{
		Type: event.FormatJSONSchema, Schema: event.Object(`{"type":"strin"}`),
	}}
	w := newWorld(t, newSession(invalid))
	w.in.FirstAttempt = 2 // would be announced at once
	_, err := w.generate()
	var failed *temporal.ApplicationError
	require.ErrorAs(t, err, &failed)
	require.ErrorContains(t, err, "the schema of the response format is invalid: /type: ")
	require.True(t, failed.NonRetryable())
	var details activities.Failure
	require.NoError(t, failed.Details(&details))
	require.Equal(t, event.FailureConfiguration, details.Kind)
	require.False(t, details.Sent)
	require.Empty(t, w.server.started)
}

func TestTheSettingsOfTheMessageAreSent(t *testing.T) {
	s := reducer.NewSession("demo")
	s, _ = reducer.Step(s, reducer.Opened{At: time.Now()})
	s, _ = reducer.Step(s, reducer.Received{At: time.Now(), Events: []event.Event{
		event.New(event.SetRequestSettings{TopP: new(0.5), Seed: new(int64(1))}),
		event.New(event.UserMessage{Content: "Hello", Settings: &event.RequestSettings{Seed: new(int64(2))}}),
	}})
	w := newWorld(t, s, llmtest.Answer("Hi"))
	_, err := w.generate()
	require.NoError(t, err)
	require.InDelta(t, 0.5, w.model.Requests()[0].TopP, 1e-6)
	require.Equal(t, 2, *w.model.Requests()[0].Seed)
}
