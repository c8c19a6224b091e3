package eventlog

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
)

// reader reads the archived events of each part, then the rest from its history.
type reader struct {
	log         *Log
	contextName string
	last        int // counter of the newest event read
	run         string
	follow      bool                     // until the newest run is closed
	skipsGaps   bool                     // where neither the archive nor the server has the events
	unarchived  map[string][]event.Event // events by run id; nil: not collected
	paused      func() error             // called after each page of a followed history; nil: not called
	waiting     func(Waiting)            // called when it changes, after a page; nil: not called
}

// next returns what a follower reads next: nothing if the current run is done. IsMissing: the
// server has no run of the context.
func (r *reader) next(ctx context.Context, done string) (v view, isMissing bool, err error) {
	run, _, err := r.log.currentRun(ctx, r.contextName)
	switch isMissing = errors.Is(err, ErrNoContext); {
	case isMissing && r.log.archive != nil:
		v, err = r.log.view(ctx, r.contextName, "", r.last) // the retention period may have expired
		v.isForgotten = true
		isKnown := done != "" || r.run != ""
		switch {
		case errors.Is(err, archive.ErrNoRun) && isKnown:
			err = fmt.Errorf("follow context %s: %w", r.contextName, ErrDeleted)
		case errors.Is(err, archive.ErrNoRun):
			err = nil
		case done != "":
			v = view{}
		}
	case err == nil && run != done:
		v, err = r.log.view(ctx, r.contextName, run, max(0, r.last-1))
		if err == nil {
			v, err = r.rewind(ctx, v)
		}
		if errors.Is(err, archive.ErrNoRun) { // a run registers before it records anything
			v, err = view{}, r.readUntilMarker(ctx, run, following)
		}
	}
	return v, isMissing, err
}

func (r *reader) read(ctx context.Context, v view, take func(event.Event) error) error {
	if v.archiveErr != nil && len(v.parts) > 0 && v.parts[0].After > r.last {
		return &GapError{r.contextName, r.last + 1, v.parts[0].After, v.archiveErr}
	}
	var archived *archive.Reader
	if r.log.archive != nil {
		archived = r.log.archive.Read(ctx, v.parts, r.last)
		defer archived.Close()
	}
	for i, p := range v.parts {
		if r.last >= p.Through {
			continue
		}
		pass := func(e event.Event) error {
			r.last, r.run = event.Counter(e.ID), p.RunID
			return take(e.MovedTo(r.contextName))
		}
		var archiveErr error
		if archived != nil {
			for e, err := range archived.Part(i) {
				if err != nil {
					archiveErr = err
				} else if event.Counter(e.ID) == r.last+1 {
					if err := pass(e); err != nil {
						return err
					}
				}
			}
		}
		isForgotten := !IsRun(p.RunID) || v.isForgotten && p.ContextName == r.contextName
		if r.last < p.Through && !isForgotten {
			length := int64(0)
			switch {
			case r.follow && i == len(v.parts)-1 && p.Through == math.MaxInt:
				length = following
			case p.RunID == v.run && p.ContextName == r.contextName:
				length = v.length
			}
			err := r.readHistory(ctx, p, length, pass)
			if isForgotten = errors.Is(err, ErrNoContext); err != nil && !isForgotten {
				return err
			}
		}
		// A part without an end (Through is MaxInt) ends at its newest event. It is complete, unless the
		// server has no history of its run and the archive cannot be read. Without an archive, the end of a
		// part is known from the first event of the next run, so a part has no end if that run has no event.
		isComplete := r.last >= p.Through || p.Through == math.MaxInt && !(isForgotten && archiveErr != nil)
		if isComplete || r.log.archive == nil {
			continue
		}
		gap := &GapError{r.contextName, r.last + 1, p.Through, archiveErr}
		if p.Through == math.MaxInt {
			gap.Last = 0
		}
		if !r.skipsGaps || archiveErr != nil {
			return gap
		}
		if !isForgotten {
			return endsBefore(p.ContextName, r.last, p.Through)
		}
		r.last = p.Through
	}
	return nil
}

func (r *reader) readHistory(ctx context.Context, p archive.Part, length int64, pass func(event.Event) error) error {
	var work unprocessed
	for e, err := range r.log.runEvents(ctx, p.ContextName, p.RunID, max(r.last, p.After), length, &work) {
		counter := event.Counter(e.ID)
		switch {
		case err != nil:
			return err
		case e.ID == "": // the end of a page
			work.report(r.blobs(), r.waiting)
			if r.paused != nil {
				err = r.paused()
			}
			if err != nil {
				return err
			}
			continue
		case counter > p.Through:
			return nil
		case counter <= max(r.last, p.After):
			continue
		}
		if r.unarchived != nil {
			r.unarchived[p.RunID] = append(r.unarchived[p.RunID], e)
		}
		if err := pass(e); err != nil {
			return err
		}
	}
	work.report(r.blobs(), r.waiting)
	return nil
}

// blobs returns nil without an archive.
func (r *reader) blobs() *archive.Blobs {
	if r.log.archive == nil {
		return nil
	}
	return r.log.archive.Blobs(r.contextName)
}

func (r *reader) rewind(ctx context.Context, v view) (view, error) {
	if r.run == "" {
		r.run = runOf(v.parts, r.last) // unknown so far: the reader began after an event id
	}
	if r.run == "" || slices.ContainsFunc(v.parts, func(p archive.Part) bool { return p.RunID == r.run && r.last <= p.Through }) {
		return v, nil
	}
	current, err := r.log.view(ctx, r.contextName, v.run, 0)
	if err != nil {
		return v, err
	}
	if current.archiveErr != nil && len(current.parts) > 0 && current.parts[0].After > 0 {
		return v, current.archiveErr // the histories do not tell whether the log was rewound
	}
	// A run that was read while the archive was unavailable may have closed without registering.
	// Nothing then tells where its log began.
	former, err := r.log.view(ctx, r.contextName, r.run, 0)
	if err != nil && !errors.Is(err, archive.ErrNoRun) {
		return v, err
	}
	r.last = min(r.last, commonPrefix(former.parts, current.parts))
	r.run = runOf(current.parts, r.last)
	return current, nil // v may begin after the reset point
}

// runOf returns the run that recorded an event of a log; "" for none.
func runOf(parts []archive.Part, counter int) string {
	for _, p := range parts {
		if p.After < counter && counter <= p.Through {
			return p.RunID
		}
	}
	return ""
}

func commonPrefix(a, b []archive.Part) int {
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
