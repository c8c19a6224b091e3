package eventlog

import (
	"context"
	"errors"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// reading is one pass through a log: first the archive, then the histories.
type reading struct {
	log         *Log
	contextName string
	// last is the counter of the newest event that was passed.
	last int
	// failed is why the archive could not be read any further. Nil: it ends
	// there.
	failed error
}

// pass lets every event pass once, in order.
func (r *reading) pass(e event.Event) bool {
	counter := event.Counter(e.ID)
	if counter <= r.last {
		return false
	}
	r.last = counter
	return true
}

// past yields what the archive has behind the last event, up to the one with a
// counter. It reports whether to go on.
func (r *reading) past(ctx context.Context, through int, yield func(event.Event, error) bool) bool {
	r.failed = nil
	if r.log.archive == nil || r.last >= through {
		return true
	}
	for e, err := range r.log.archive.Events(ctx, r.contextName, r.last) {
		if err != nil {
			r.failed = err
			break
		}
		if r.pass(e) && !yield(e, nil) {
			return false
		}
		if r.last == through {
			break
		}
	}
	return true
}

// unread lists the runs up to the one given that have what comes next, oldest
// first, also with a [*GapError]. The run named until was read already.
func (r *reading) unread(ctx context.Context, runID, until string) ([]string, error) {
	runs, first, err := r.log.chain(ctx, r.contextName, runID, r.last, until)
	if err == nil {
		err = r.gap(first)
	}
	return runs, err
}

// present yields what is in the runs behind the last event. The error is the one
// with which they could not be found.
func (r *reading) present(ctx context.Context, runs []string, err error, yield func(event.Event, error) bool) {
	if errors.Is(err, ErrNoContext) {
		err = r.gone(ctx, err)
	}
	if err != nil {
		yield(event.Event{}, err)
		return
	}
	for _, run := range runs {
		for e, err := range r.log.run(ctx, r.contextName, run, false) {
			if err == nil && !r.pass(e) {
				continue
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// gap is the error for what is missing between the last event and the first one
// in the histories, whose counter is 0 when they hold none. Without an archive
// nobody can tell what is lost from what never was.
func (r *reading) gap(first int) error {
	if r.log.archive == nil || first == 0 && r.failed == nil || 0 < first && first <= r.last+1 {
		return nil
	}
	return &GapError{r.contextName, r.last + 1, max(first-1, 0), r.failed}
}

// gone is the error for a context that the server does not know; nil when the
// archive had all of it.
func (r *reading) gone(ctx context.Context, notFound error) error {
	if r.log.archive == nil {
		return notFound
	}
	if r.failed == nil {
		var last int
		if last, r.failed = r.log.archive.Last(ctx, r.contextName); r.failed == nil && last == 0 {
			return notFound
		}
	}
	return r.gap(0)
}
