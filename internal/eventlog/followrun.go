package eventlog

import (
	"context"
	"errors"
	"iter"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
)

// Recorded is an event and the run that recorded it.
type Recorded struct {
	event.Event
	RunID   string
	Through int // counter of the newest event so far
	Epoch   int // archive.Run.Number of the followed run; 0 if the archive is unavailable
}

// FollowRun yields the events in the log of a run after a position, then new ones until the run is
// closed. After each page of the history, and thus whenever it has read all events, it yields an element
// without an event. It omits events that neither the archive nor the server has. An error comes last.
//
// If the position is in a branch that a reset has abandoned, it starts at the reset point.
func (l *Log) FollowRun(ctx context.Context, contextName, runID string, from archive.Position) iter.Seq2[Recorded, error] {
	return func(yield func(Recorded, error) bool) {
		r := &reader{log: l, contextName: contextName, last: from.After, run: from.RunID, follow: true, skipsGaps: true}
		epoch := 0
		take := func(e event.Event) error {
			if !yield(Recorded{e, r.run, r.last, epoch}, nil) {
				return errStopped
			}
			return nil
		}
		r.paused = func() error { return take(event.Event{}) }
		v, err := l.view(ctx, contextName, runID, max(0, r.last-1))
		if err == nil {
			v, err = r.rewind(ctx, v)
		}
		if err == nil {
			if n := len(v.parts); n > 0 {
				epoch = v.parts[n-1].Number
			}
			err = r.read(ctx, v, take)
		}
		if err != nil && !errors.Is(err, errStopped) {
			yield(Recorded{}, err)
		}
	}
}
