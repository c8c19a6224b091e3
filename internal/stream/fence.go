package stream

import "github.com/seed-9ed7edd4/chronicle/event"

// fence passes the deltas of one attempt after another, each in order. It has no clock and does no I/O.
type fence struct {
	request string
	attempt int
	next    int // index of the next delta
	newest  int // highest index received, passed or not
	shown   bool
	lost    bool // there is a gap: only a Reset may follow

	text, reasoning int // bytes that have passed since the last Reset
}

// pass reports whether a delta passes, possibly marked as a Reset. Gap: the text so far should be
// requested. What is longer than an answer can be does not pass.
func (f *fence) pass(d Delta) (out Delta, ok, gap bool) {
	switch {
	case d.RequestID != f.request:
		*f = fence{request: d.RequestID, attempt: d.Attempt, lost: d.Index > 0}
	case d.Attempt != f.attempt:
		*f = fence{request: d.RequestID, attempt: d.Attempt, shown: f.shown, lost: d.Index > 0}
		// The first delta restarts the answer, even if not marked as a Reset. A later one does not,
		// since the deltas before it are missing.
		d.Reset = d.Reset || f.shown && d.Index == 0
	case d.Index < f.next && !(f.lost && d.Reset && d.Index == f.next-1):
		return d, false, false
	case d.Index > f.next:
		f.lost = true
	}
	f.newest = max(f.newest, d.Index)
	if f.lost && !d.Reset {
		return d, false, true
	}
	if d.Reset {
		f.text, f.reasoning = 0, 0
	}
	f.text, f.reasoning = f.text+len(d.Delta), f.reasoning+len(d.Reasoning)
	f.lost = false
	f.next = d.Index + 1
	f.shown = true
	isTooLong := f.text > event.MaxAnswerBytes || f.reasoning > event.MaxReasoningBytes
	return d, !isTooLong, f.next <= f.newest // deltas received while the text was requested may be newer than it
}
