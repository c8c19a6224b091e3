package client_test

import (
	"errors"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
)

func TestAnAnswerIsTheTextOfTheLastStepOrAnError(t *testing.T) {
	const id = "demo:r0001"
	started := event.LLMRequestStarted{RequestID: id}
	away := errors.New("away")
	for name, c := range map[string]struct {
		turn    []event.Body
		err     error
		want    string
		wantErr string
	}{
		"the answer":   {[]event.Body{started, event.AssistantMessage{Content: "Hi"}, event.LLMRequestCompleted{RequestID: id}}, nil, "Hi", ""},
		"after a tool": {[]event.Body{started, event.AssistantMessage{Content: "Wait"}, event.ToolResult{}, started, event.AssistantMessage{Content: "Hi"}, event.LLMRequestCompleted{RequestID: id}}, nil, "Hi", ""},
		"after an interruption": {[]event.Body{started, event.AssistantMessage{Content: "No", Partial: true}, event.LLMRequestInterrupted{RequestID: id, Reason: event.ReasonNewUserInput},
			started, event.AssistantMessage{Content: "Hi"}, event.LLMRequestCompleted{RequestID: id}}, nil, "Hi", ""},
		"a step without text": {[]event.Body{started, event.AssistantMessage{Content: "Wait"}, started, event.LLMRequestCompleted{RequestID: id}}, nil, "", ""},
		"no answer required":  {[]event.Body{event.SystemPrompt{Content: "Briefly."}}, nil, "", ""},
		"a failure":           {[]event.Body{started, event.LLMRequestFailed{RequestID: id, Error: "no credit"}}, nil, "", "the request failed: no credit"},
		"an interruption":     {[]event.Body{started, event.AssistantMessage{Content: "No", Partial: true}, event.LLMRequestInterrupted{RequestID: id, Reason: event.ReasonCancelled}}, nil, "", "the answer was interrupted: cancelled"},
		"a rejection":         {[]event.Body{event.InputRejected{Reason: "too long"}}, nil, "", "rejected: too long"},
		"input of others is rejected": {[]event.Body{event.UserMessage{Content: "Hello"}, started, event.InputRejected{Reason: "too long"},
			event.AssistantMessage{Content: "Hi"}, event.LLMRequestCompleted{RequestID: id}}, nil, "Hi", ""},
		"a terminated run":     {[]event.Body{started, event.SessionStarted{PreviousRunID: "x"}}, nil, "", client.ErrUnanswered.Error()},
		"an error of the turn": {[]event.Body{started}, away, "", "away"},
	} {
		var turn iter.Seq2[event.Event, error] = func(yield func(event.Event, error) bool) {
			for _, body := range c.turn {
				if !yield(event.New(body), nil) {
					return
				}
			}
			if c.err != nil {
				yield(event.Event{}, c.err)
			}
		}
		got, err := client.AnswerOf(turn)
		require.Equal(t, c.want, got, name)
		if c.wantErr == "" {
			require.NoError(t, err, name)
		} else {
			require.ErrorContains(t, err, c.wantErr, name)
		}
	}
	_, err := client.AnswerOf(func(yield func(event.Event, error) bool) {
		_ = yield(event.New(event.AssistantMessage{Content: "One"}), nil) && yield(event.New(event.LLMRequestInterrupted{RequestID: id}), nil)
	})
	var ended *client.TurnError
	require.ErrorAs(t, err, &ended)
	require.Equal(t, "One", ended.Partial)
}
