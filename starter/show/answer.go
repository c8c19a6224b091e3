package show

import (
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Answer follows the live text of answers, one request at a time. What it lets
// through always is the answer from its beginning and without a gap: when a
// delta is missing, or the first ones went by unseen, the rest waits for the
// answer as it is recorded. The zero value is ready.
type Answer struct {
	requestID string
	attempt   int
	// next is the index that the next delta must have.
	next int
	text strings.Builder
	// ended is the newest request that is over; its late deltas are dropped.
	ended string
}

// Add takes a delta and returns the text to show. When void is true, what was
// shown of the same answer before does not count any more.
func (a *Answer) Add(d event.TextDelta) (text string, void bool) {
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
		void = a.text.Len() > 0
		a.text.Reset()
		a.attempt, a.next = d.Attempt, 0
		if d.Reset {
			a.next = d.Index
		}
	}
	if d.Index != a.next {
		return "", void
	}
	a.next++
	a.text.WriteString(d.Delta)
	return d.Delta, void
}

// Complete takes an answer as it is recorded and returns what of it is still
// to be shown. When void is true, what was shown before was something else.
func (a *Answer) Complete(m event.AssistantMessage) (rest string, void bool) {
	if m.RequestID == "" || m.RequestID != a.requestID {
		return m.Content, false
	}
	rest, ok := strings.CutPrefix(m.Content, a.text.String())
	a.End(m.RequestID)
	return rest, !ok
}

// End says that a request is over, with an answer or without.
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
