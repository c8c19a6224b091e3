package eventlog

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/eventlog/archive"
)

// reading is a pass through a log: of each part, what the archive has, and the
// rest from the history of the run.
type reading struct {
	log         *Log
	contextName string
	// last is the counter of the newest event that was read, and run the run that
	// recorded it; "" when nothing was read.
	last int
	run  string
	// wait waits for the end of the newest run.
	wait bool
	// skipsGaps continues after events that are lost.
	skipsGaps bool
	// unarchived are the events that the archive does not have, by their runs.
	// Nil: they are not kept.
	unarchived map[string][]event.Event
}

// read yields the events of parts behind the last one. An error comes last. It
// reports whether it came to the end.
func (r *reading) read(ctx context.Context, v view, yield func(event.Event, error) bool) bool {
	parts := v.parts
	if v.away != nil && len(parts) > 0 && parts[0].After > r.last {
		yield(event.Event{}, &GapError{r.contextName, r.last + 1, parts[0].After, v.away})
		return false
	}
	var archived *archive.Reader
	if r.log.archive != nil {
		archived = r.log.archive.Read(ctx, parts, r.last)
		defer archived.Close()
	}
	fail := func(err error) bool { yield(event.Event{}, err); return false }
	for i, p := range parts {
		if r.last >= p.Through {
			continue
		}
		pass := func(e event.Event) bool {
			r.last, r.run = event.Counter(e.ID), p.RunID
			return yield(e.MovedTo(r.contextName), nil)
		}
		var failed error
		if archived != nil {
			for e, err := range archived.Part(i) {
				if err != nil {
					failed = err
					break
				}
				if event.Counter(e.ID) == r.last+1 && !pass(e) {
					return false
				}
			}
		}
		isNewest := i == len(parts)-1 && p.Through == math.MaxInt
		isGone := !IsRun(p.RunID) || v.isGone && p.ContextName == r.contextName
		if r.last < p.Through && !isGone {
			length := int64(0)
			switch {
			case isNewest && r.wait:
				length = following
			case p.RunID == v.run && p.ContextName == r.contextName:
				length = v.length
			}
			for e, err := range r.log.run(ctx, p.ContextName, p.RunID, max(r.last, p.After), length) {
				if isGone = errors.Is(err, ErrNoContext); isGone {
					break
				}
				if err != nil {
					return fail(err)
				}
				counter := event.Counter(e.ID)
				if counter > p.Through {
					break
				}
				if counter <= max(r.last, p.After) {
					continue
				}
				if r.unarchived != nil {
					r.unarchived[p.RunID] = append(r.unarchived[p.RunID], e)
				}
				if !pass(e) {
					return false
				}
			}
		}
		// Behind the newest event nothing is missing. By the histories alone, that may be
		// in a run before one that has recorded nothing yet.
		if p.Through == math.MaxInt && !(isGone && failed != nil) || r.last >= p.Through || r.log.archive == nil {
			continue
		}
		gap := &GapError{r.contextName, r.last + 1, p.Through, failed}
		if p.Through == math.MaxInt {
			gap.Last = 0
		}
		if !r.skipsGaps || failed != nil {
			return fail(gap)
		}
		r.last = p.Through
	}
	return true
}

// goBack returns to the reset point when the newest event that was read is not in a
// log any more. It returns what is to be read next.
func (r *reading) goBack(ctx context.Context, v view) (view, error) {
	if r.run == "" {
		for _, p := range v.parts {
			if p.After < r.last && r.last <= p.Through {
				r.run = p.RunID // what was read before was in this log
			}
		}
	}
	if r.run == "" || slices.ContainsFunc(v.parts, func(p archive.Part) bool { return p.RunID == r.run && r.last <= p.Through }) {
		return v, nil
	}
	now, err := r.log.view(ctx, r.contextName, v.run, 0)
	if err != nil {
		return v, err
	}
	// A run that was read by its history, while the archive was away, may have ended
	// before it registered. It never does then, and nothing says where its log began.
	before, err := r.log.view(ctx, r.contextName, r.run, 0)
	if err != nil && !errors.Is(err, archive.ErrNoRun) {
		return v, err
	}
	r.last = min(r.last, common(before.parts, now.parts))
	r.run = ""
	return now, nil // v may begin behind that
}

// common is the counter up to which two logs of a context are the same.
func common(a, b []archive.Part) int {
	through := 0
	for i := range min(len(a), len(b)) {
		if a[i].RunID != b[i].RunID || a[i].ContextName != b[i].ContextName {
			break
		}
		through = min(a[i].Through, b[i].Through)
		if a[i].Through != b[i].Through {
			break
		}
	}
	return through
}
