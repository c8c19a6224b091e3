package show

import (
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Answer assembles the text of live answers, one at a time. A request has several answers if the
// model calls tools. The output is always a gapless prefix of the answer: after a missing delta, it
// pauses until a delta with Reset or of a later attempt, or until the recorded answer. The zero value is
// ready to use.
type Answer struct {
	requestID string
	attempt   int
	next      int
	// complete is the newest attempt of the request whose answer is recorded; its late deltas
	// are dropped.
	complete int

	text, reasoning strings.Builder
	// ended is the latest request that ended; its late deltas are dropped.
	ended string
}

// Add processes a delta and returns the text to show. If restart is true, it replaces what was
// shown of this answer.
func (a *Answer) Add(d event.TextDelta) (text string, restart bool) {
	ok, restart := a.place(d)
	if !ok {
		return "", restart
	}
	a.text.WriteString(d.Delta)
	return d.Delta, restart
}

// AddReasoning processes a delta of reasoning. restart is as in [Answer.Add].
func (a *Answer) AddReasoning(d event.ReasoningDelta) (restart bool) {
	ok, restart := a.place(event.TextDelta(d))
	if ok {
		a.reasoning.WriteString(d.Delta)
	}
	return restart
}

// Reasoning returns the reasoning of the running answer so far.
func (a *Answer) Reasoning() string { return a.reasoning.String() }

// place reports whether a delta is the next one, and whether the answer starts over.
func (a *Answer) place(d event.TextDelta) (ok, restart bool) {
	if d.RequestID == a.ended {
		return false, false
	}
	if d.RequestID != a.requestID {
		a.begin(d.RequestID)
	}
	switch {
	case d.Attempt < a.attempt, d.Attempt <= a.complete:
		return false, false
	case d.Reset || d.Attempt > a.attempt:
		restart = a.text.Len() > 0
		a.text.Reset()
		a.reasoning.Reset()
		a.attempt, a.next = d.Attempt, 0
		if d.Reset {
			a.next = d.Index
		}
	}
	if d.Index != a.next {
		return false, restart
	}
	a.next++
	return true, restart
}

// Complete processes the recorded answer and returns the text still to be shown. If restart is
// true, that text replaces the text of this answer that was already shown.
func (a *Answer) Complete(m event.AssistantMessage) (rest string, restart bool) {
	if m.RequestID == "" || m.RequestID != a.requestID {
		return m.Content, false
	}
	rest, ok := strings.CutPrefix(m.Content, a.text.String())
	a.complete = a.attempt
	a.text.Reset()
	a.reasoning.Reset()
	return rest, !ok
}

// End drops what was streamed, of whichever request, and all further deltas of this one.
func (a *Answer) End(requestID string) {
	a.ended = requestID
	a.begin("")
}

func (a *Answer) begin(requestID string) {
	a.requestID, a.attempt, a.next, a.complete = requestID, 0, 0, 0
	a.reasoning.Reset()
	a.text.Reset()
}
