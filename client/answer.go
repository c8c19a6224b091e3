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
		return "", fmt.Errorf("ask context %s: %w", c.Name(), err)
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
	var o outcome
	for e, err := range turn {
		if err != nil {
			return "", err
		}
		o.apply(e)
	}
	switch {
	case o.isLost:
		return "", ErrUnanswered
	case o.rejection != nil:
		return "", Refused(o.rejection.Reason)
	}
	if _, ok := o.end.Body.(event.LLMRequestCompleted); ok || o.end.Body == nil {
		return o.text, nil
	}
	return "", &TurnError{End: o.end, Partial: o.text}
}

// outcome folds the events of a turn.
type outcome struct {
	text      string               // of the newest attempt
	end       event.Event          // of the newest request; zero: it runs, or there is none
	rejection *event.InputRejected // if it is the newest event: only the rejection of the turn's own input ends it
	isLost    bool                 // the run was terminated
}

func (o *outcome) apply(e event.Event) {
	o.rejection = nil
	switch body := e.Body.(type) {
	case event.LLMRequestStarted:
		o.text, o.end = "", event.Event{}
	case event.AssistantMessage:
		o.text = body.Content
	case event.InputRejected:
		o.rejection = &body
	case event.RequestEnd:
		o.end = e
	case event.SessionStarted:
		o.isLost = body.PreviousRunID != ""
	}
}
