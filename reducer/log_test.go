package reducer_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

func TestContextTokensAreThoseOfTheNewestAnswer(t *testing.T) {
	used := func(input, output int) event.Usage { return event.Usage{InputTokens: input, OutputTokens: output} }
	ended := func(request string, outcome event.AttemptOutcome, usage event.Usage) event.Body {
		return event.LLMAttemptEnded{RequestID: request, Attempt: 1, Outcome: outcome, Usage: usage}
	}
	started := func(request string) event.Body {
		return event.LLMRequestStarted{RequestID: request, ProviderID: "p", Model: "m", Attempt: 1}
	}
	const first, second, third = "demo:r0001", "demo:r0002", "demo:r0003"
	var log []event.Event
	for _, step := range []struct {
		body event.Body
		want int // after the event
	}{
		{event.SessionStarted{}, 0},
		{event.UserMessage{Content: "Hello"}, 0},
		{started(first), 0},
		{ended(first, event.AttemptToolCalls, used(10, 2)), 12},
		{started(first), 12},
		{ended(first, event.AttemptFailed, used(100, 50)), 12},
		{started(first), 12},
		{event.LLMRequestFellBack{RequestID: first, Usage: used(100, 0)}, 12},
		{started(first), 12},
		{event.LLMRequestCompleted{RequestID: first, Usage: used(20, 3)}, 23},
		{event.LLMRequestCompleted{RequestID: first, Usage: used(7, 7)}, 23},
		{event.UserMessage{Content: "And?"}, 23},
		{started(second), 23},
		{event.LLMRequestInterrupted{RequestID: second, PartialResponse: "We", Usage: event.Usage{InputTokens: 30, OutputTokens: 1, Estimated: true}}, 31},
		{started(third), 31},
		{event.Compacted{RequestID: third, Strategy: event.StrategySummarise, ThroughEventID: "demo:0002", Summary: "Hi", Window: 40, WindowSource: event.WindowLearned, ProviderID: "p", Model: "m"}, 0},
		{ended(third, event.AttemptCompacted, used(40, 9)), 0},
		{started(third), 0},
		{event.LLMRequestInterrupted{RequestID: third, Usage: used(12, 0)}, 0},
		{started("demo:r0004"), 0},
		{event.LLMRequestCompleted{RequestID: "demo:r0004", Usage: used(13, 4)}, 17},
		{started("demo:r0005"), 17},
		{event.LLMRequestCompleted{RequestID: "demo:r0005"}, 17}, // without usage
		{event.SessionStarted{ForkedFrom: "other"}, 17},
	} {
		e := event.New(step.body)
		e.ID = event.FormatID("demo", len(log)+1)
		log = append(log, e)
		s := reducer.Load("demo", reducer.Reduce, log...)
		require.Equal(t, step.want, s.ContextTokens, "%s %s", e.ID, e.Tag())
		data, err := json.Marshal(s)
		require.NoError(t, err)
		var restored reducer.Session
		require.NoError(t, json.Unmarshal(data, &restored))
		require.Equal(t, step.want, restored.ContextTokens)
		require.Equal(t, s.ProviderID, restored.ProviderID)
	}
	s := reducer.Load("demo", reducer.Reduce, log...)
	require.Equal(t, 40, s.LearnedWindow(s.ProviderID, s.Model))
}
