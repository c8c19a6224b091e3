package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/starter/show"
)

// Unless the turn completes, the error of ask says how it ended.
func (a *app) ask(ctx context.Context, to conversation, events []event.Event) error {
	answer := answerWriter{streams: a.streams}
	notes := toolNotes{app: a, in: to}
	defer answer.endLine()
	for e, err := range a.turn(ctx, to, events) {
		if err != nil {
			return err
		}
		answer.take(e)
		notes.take(ctx, e.Body)
	}
	return turnError(answer.end)
}

// endsTurn reports whether an event ends a request or a session, or rejects input.
func endsTurn(body event.Body) bool {
	switch body.(type) {
	case event.RequestEnd, event.InputRejected, event.SessionEnded:
		return true
	}
	return false
}

// turnError returns nil if the turn completed.
func turnError(end event.Body) error {
	switch body := end.(type) {
	case event.LLMRequestCompleted:
		return nil
	case event.LLMRequestInterrupted:
		_, reason := body.Words()
		if body.Reason == event.ReasonTimeout {
			// A timeout is a failure, unlike an interruption by a person.
			return errors.New("the answer was interrupted: " + reason)
		}
		return fmt.Errorf("the answer was %w: %s", errInterrupted, reason)
	case nil:
		return errors.New("the log ended before the answer was complete")
	default:
		return errors.New(show.Note(end))
	}
}

// answerWriter prints live text only to a terminal: a later attempt may replace it.
type answerWriter struct {
	streams
	live show.Answer
	// first is the counter of the first event of the turn. Answers to earlier events do not
	// belong to the turn.
	first int
	// shown is the request whose answer was written last; "": none.
	shown string
	// end is the latest event for which endsTurn is true; nil before the first.
	end event.Body
	// midLine reports whether the text written so far lacks a final newline.
	midLine bool
}

func (w *answerWriter) take(e event.Event) {
	if w.first == 0 {
		w.first = event.Counter(e.ID)
	}
	if e.Tag().Class() == event.ClassEphemeral && !w.outTerminal {
		return
	}
	switch body := e.Body.(type) {
	case event.TextDelta:
		w.add(w.live.Add(body))
	case event.ReasoningDelta:
		w.add("", w.live.AddReasoning(body))
	case event.AssistantMessage:
		if body.RequestID != "" && event.Counter(body.ThroughEventID) >= w.first {
			w.add(w.live.Complete(body))
			w.endLine()
			w.shown = body.RequestID
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
	if body, ok := e.Body.(event.LLMRequestCompleted); ok && body.RequestID == w.shown {
		if text := show.Incomplete(body); text != "" {
			w.note("%s", text)
		}
	}
}

// With restart, the text replaces what was written of the answer.
func (w *answerWriter) add(text string, restart bool) {
	if restart {
		w.endLine()
		fmt.Fprintln(w.out, restarted)
	}
	if text == "" {
		return
	}
	w.midLine = !strings.HasSuffix(text, "\n")
	fmt.Fprint(w.out, text)
}

// restarted separates a failed attempt from the next one.
const restarted = "[the answer restarts; disregard the part above]"

func (w *answerWriter) endLine() {
	if w.midLine {
		fmt.Fprintln(w.out)
		w.midLine = false
	}
}
