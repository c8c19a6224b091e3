package show

import (
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Answer assembles the text of live answers, one request at a time. Its output is always a
// gapless prefix of the answer: after a missing delta, the rest waits for the recorded answer.
// The zero value is ready to use.
type Answer struct {
	requestID string
	attempt   int
	next      int
	text      strings.Builder
	// ended is the latest request that ended; its late deltas are dropped.
	ended string
}

// Add processes a delta and returns the text to show. If restart is true, it replaces what was
// shown of this answer.
func (a *Answer) Add(d event.TextDelta) (text string, restart bool) {
	if d.RequestID == a.ended {
		return "", false
	}
	if d.RequestID != a.requestID {
		a.begin(d.RequestID)
	}
	switch {
	case d.Attempt < a.attempt:
		return "", false
	case d.Reset || d.Attempt > a.attempt:
		restart = a.text.Len() > 0
		a.text.Reset()
		a.attempt, a.next = d.Attempt, 0
		if d.Reset {
			a.next = d.Index
		}
	}
	if d.Index != a.next {
		return "", restart
	}
	a.next++
	a.text.WriteString(d.Delta)
	return d.Delta, restart
}

// Complete processes the recorded answer and returns the text still to be shown. If restart is
// true, that text replaces the text of this answer that was already shown.
func (a *Answer) Complete(m event.AssistantMessage) (rest string, restart bool) {
	if m.RequestID == "" || m.RequestID != a.requestID {
		return m.Content, false
	}
	rest, ok := strings.CutPrefix(m.Content, a.text.String())
	a.End(m.RequestID)
	return rest, !ok
}

func (a *Answer) End(requestID string) {
	a.ended = requestID
	if a.requestID == requestID {
		a.begin("")
	}
}

func (a *Answer) begin(requestID string) {
	a.requestID, a.attempt, a.next = requestID, 0, 0
	a.text.Reset()
}
