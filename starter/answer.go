package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/starter/show"
)

// ask sends events and writes their answer as it comes. The error says how the
// turn ended, unless it was completed.
func (a *app) ask(ctx context.Context, to conversation, events []event.Event) error {
	answer := answerWriter{streams: a.streams}
	defer answer.endLine()
	for e, err := range a.turn(ctx, to, events) {
		if err != nil {
			return err
		}
		answer.take(e)
	}
	return turnError(answer.end)
}

// endsTurn reports whether an event ends a request or stands for one that never
// began.
func endsTurn(body event.Body) bool {
	switch body.(type) {
	case event.LLMRequestCompleted, event.LLMRequestInterrupted, event.LLMRequestFailed,
		event.InputRejected, event.SessionEnded:
		return true
	}
	return false
}

// turnError is what the event that ended a turn means for who waited for it;
// nil when the turn was completed.
func turnError(end event.Body) error {
	switch body := end.(type) {
	case event.LLMRequestCompleted:
		return nil
	case event.LLMRequestInterrupted:
		_, reason := show.Words(body)
		if body.Reason == event.ReasonTimeout {
			// Nobody wanted that.
			return errors.New("the answer was interrupted: " + reason)
		}
		return fmt.Errorf("the answer was %w: %s", errInterrupted, reason)
	case nil:
		return errors.New("the log ended before the answer did")
	default:
		return errors.New(show.Note(end))
	}
}

// answerWriter writes the answer of one turn to standard output as it comes,
// for people and pipes.
type answerWriter struct {
	streams
	live show.Answer
	// first counts the first event of the turn in the log; answers to what was
	// before it are not of the turn.
	first int
	// end is the newest event that ended a request; nil before.
	end event.Body
	// midLine says that what was written does not end with a newline.
	midLine bool
}

// take writes what an event adds to the answer.
func (w *answerWriter) take(e event.Event) {
	if w.first == 0 {
		w.first = event.Counter(e.ID)
	}
	switch body := e.Body.(type) {
	case event.TextDelta:
		w.add(w.live.Add(body))
	case event.AssistantMessage:
		if body.RequestID != "" && event.Counter(body.ThroughEventID) >= w.first {
			w.add(w.live.Complete(body))
			w.endLine()
		}
	case event.LLMRequestFellBack:
		w.endLine()
		w.note("%s", show.Note(body))
	}
	if endsTurn(e.Body) {
		w.endLine()
		w.live.End(event.RequestOf(e.Body))
		w.end = e.Body
	}
}

// add writes text; void says that it takes the place of what stands before.
func (w *answerWriter) add(text string, void bool) {
	if void {
		w.endLine()
		fmt.Fprintln(w.out, restarted)
	}
	if text == "" {
		return
	}
	w.midLine = !strings.HasSuffix(text, "\n")
	fmt.Fprint(w.out, text)
}

// restarted stands between an attempt that broke off and the next one.
const restarted = "[the answer begins anew; what stands above is void]"

func (w *answerWriter) endLine() {
	if w.midLine {
		fmt.Fprintln(w.out)
		w.midLine = false
	}
}
