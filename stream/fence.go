package stream

import "github.com/seed-9ed7edd4/chronicle/event"

// fence lets through the deltas of the newest attempt of the newest request,
// in order. It has no clock and does no I/O.
type fence struct {
	request int // number of the request; 0 before the first
	attempt int
	next    int // index of the next delta
	heard   int // index of the newest delta heard of, let through or not
	shown   bool
	lost    bool // a gap was seen: only a Reset can go on
}

// pass decides about a delta: it is let through, possibly marked as a Reset, or
// dropped. gap says that deltas are missing, before it or after it, and that the
// text so far should be asked for.
func (f *fence) pass(d event.TextDelta) (out event.TextDelta, ok, gap bool) {
	request := event.RequestNumber(d.RequestID)
	switch {
	case request == 0,
		request < f.request,
		request == f.request && d.Attempt < f.attempt,
		request == f.request && d.Attempt == f.attempt && d.Index < f.next && !(f.lost && d.Reset && d.Index == f.next-1):
		return d, false, false
	}
	switch {
	case request > f.request:
		*f = fence{request: request, attempt: d.Attempt, lost: d.Index > 0}
	case d.Attempt > f.attempt:
		shown := f.shown
		*f = fence{request: request, attempt: d.Attempt, shown: shown, lost: d.Index > 0}
		// The first delta begins the answer anew, whether it says so or not. A
		// later one must not: what came before it is missing.
		d.Reset = d.Reset || shown && d.Index == 0
	case d.Index > f.next:
		f.lost = true
	}
	f.heard = max(f.heard, d.Index)
	if f.lost && !d.Reset {
		return d, false, true
	}
	f.lost = false
	f.next = d.Index + 1
	f.shown = true
	// What came while the text so far was on its way may go beyond it.
	return d, true, f.next <= f.heard
}
