package stream

import "github.com/seed-9ed7edd4/chronicle/event"

// fence lets through the deltas of the newest attempt of the newest request,
// in order. It has no clock and does no I/O.
type fence struct {
	request int // number of the request; 0 before the first
	attempt int
	next    int // index of the next delta
	shown   bool
	lost    bool // a gap was seen: only a Reset can go on
}

// pass decides about a delta: it is let through, possibly marked as a Reset, or
// dropped. gap says that deltas are missing before it and that the text so far
// should be asked for.
func (f *fence) pass(d event.TextDelta) (out event.TextDelta, ok, gap bool) {
	request := event.RequestNumber(d.RequestID)
	switch {
	case request < f.request,
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
		// The Reset itself may be lost; the first delta stands in for it.
		d.Reset = d.Reset || shown
	case d.Index > f.next:
		f.lost = true
	}
	if f.lost && !d.Reset {
		return d, false, true
	}
	f.lost = false
	f.next = d.Index + 1
	f.shown = true
	return d, true, false
}
