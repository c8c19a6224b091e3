package client

import (
	"context"
	"fmt"
	"iter"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Answer sends events and returns the text of the answer after all its steps; "" if no event requires an
// answer. It waits for approvals and results of clients until ctx ends. The error is that of [Context.Ask],
// ErrRefused, or a [TurnError] if the turn ended without a complete answer.
func (c *Context) Answer(ctx context.Context, events ...event.Event) (string, error) {
	text, err := answerOf(c.Ask(ctx, events...))
	if err != nil {
		return "", fmt.Errorf("ask context %s: %w", c.name, err)
	}
	return text, nil
}

// TurnError is a turn that ended without a complete answer.
type TurnError struct {
	End     event.Event // an LLMRequestFailed or an LLMRequestInterrupted
	Partial string      // what the model said before an interruption
}

func (e *TurnError) Error() string {
	switch body := e.End.Body.(type) {
	case event.LLMRequestFailed:
		return "the request failed: " + body.Error
	case event.LLMRequestInterrupted:
		return "the answer was interrupted: " + string(body.Reason)
	default:
		return "no answer"
	}
}

func answerOf(turn iter.Seq2[event.Event, error]) (string, error) {
	text := ""
	var end event.Event
	var rejection error
	for e, err := range turn {
		if err != nil {
			return "", err
		}
		rejection = nil // only the rejection of the turn's own input is its last event
		switch body := e.Body.(type) {
		case event.LLMRequestStarted:
			text, end = "", event.Event{}
		case event.AssistantMessage:
			text = body.Content
		case event.InputRejected:
			rejection = fmt.Errorf("%w: %s", ErrRefused, body.Reason)
		case event.RequestEnd:
			end = e
		case event.SessionStarted:
			if body.PreviousRunID != "" {
				return "", ErrUnanswered
			}
		}
	}
	if rejection != nil {
		return "", rejection
	}
	if _, ok := end.Body.(event.LLMRequestCompleted); ok || end.Body == nil {
		return text, nil
	}
	return "", &TurnError{End: end, Partial: text}
}
