package stream

import "github.com/seed-9ed7edd4/chronicle/event"

// fence passes the deltas of the latest attempt of the latest request in order. It has no clock and
// does no I/O.
type fence struct {
	request int // number of the request; 0 before the first
	attempt int
	next    int // index of the next delta
	newest  int // highest index received, passed or not
	shown   bool
	lost    bool // there is a gap: only a Reset may follow
}

// pass reports whether a delta passes, possibly marked as a Reset. Gap: the text so far should be
// requested.
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
		// The first delta restarts the answer, even if not marked as a Reset. A later one does not,
		// since the deltas before it are missing.
		d.Reset = d.Reset || shown && d.Index == 0
	case d.Index > f.next:
		f.lost = true
	}
	f.newest = max(f.newest, d.Index)
	if f.lost && !d.Reset {
		return d, false, true
	}
	f.lost = false
	f.next = d.Index + 1
	f.shown = true
	return d, true, f.next <= f.newest // deltas received while the text was requested may be newer than it
}
