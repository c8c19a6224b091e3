package eventlog

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
)

// Archive archives the log of a context through a counter, and returns the log's newest run. It
// fails with a [*GapError] if the event with that counter is lost.
func (l *Log) Archive(ctx context.Context, contextName string, through int) (runID string, err error) {
	v, err := l.current(ctx, contextName, 0)
	if err == nil {
		err = v.archiveErr
	}
	archived := 0
	if err == nil {
		archived, err = l.archiveParts(ctx, contextName, v, through)
	}
	if err == nil && archived < through {
		err = lost(contextName, v.parts, archived, through)
	}
	if err != nil {
		return "", fmt.Errorf("archive context %s: %w", contextName, err)
	}
	return v.run, nil
}

// ArchiveRun archives the events of one run through a counter. It fails if the run ends before it.
func (l *Log) ArchiveRun(ctx context.Context, contextName, runID string, through int) error {
	archived, err := l.archiveOwn(ctx, contextName, runID, through)
	if err == nil && archived < through {
		err = endsBefore(contextName, archived, through)
	}
	return err
}

func lost(contextName string, parts []archive.Part, archived, counter int) error {
	for _, p := range parts {
		if p.After < counter && counter <= p.Through && p.Through != math.MaxInt {
			return &GapError{ContextName: contextName, First: max(archived, p.After) + 1, Last: p.Through}
		}
	}
	return endsBefore(contextName, archived, counter)
}

// ErrNoEvent is the error for an event that was not recorded.
var ErrNoEvent = errors.New("no such event")

func endsBefore(contextName string, last, through int) error {
	return fmt.Errorf("%w: the log ends at %s, before %s", ErrNoEvent, event.FormatID(contextName, last), event.FormatID(contextName, through))
}

// Archived returns how many segments the log of a context needs, and the counter up to which it is
// archived completely.
func (l *Log) Archived(ctx context.Context, contextName string) (segments, through int, err error) {
	v, err := l.current(ctx, contextName, 0)
	for _, p := range v.parts {
		segments += p.Segments()
		if through == p.After {
			through = p.ArchivedThrough()
		}
	}
	return segments, through, err
}

// archiveOwn archives what the server still has of a run. It returns the counter that it reached,
// at least that of the last event before the run.
func (l *Log) archiveOwn(ctx context.Context, contextName, runID string, through int) (archived int, err error) {
	v, err := l.viewArchive(ctx, contextName, runID, math.MaxInt) // one part, that of the run
	if err != nil {
		return 0, err
	}
	archived, err = l.archiveParts(ctx, contextName, v, through)
	return max(archived, v.parts[0].After), err
}

func (l *Log) archiveParts(ctx context.Context, contextName string, v view, through int) (archived int, err error) {
	for _, p := range archive.Truncate(v.parts, through) {
		inArchive := p.ArchivedThrough()
		if inArchive > p.After {
			archived = inArchive
		}
		if inArchive >= p.Through {
			continue
		}
		events, err := l.readAndArchive(ctx, contextName, view{parts: []archive.Part{p}, isForgotten: v.isForgotten}, inArchive)
		if err != nil {
			return 0, err
		}
		archived = max(archived, lastCounter(events))
	}
	return archived, nil
}

func (l *Log) readAndArchive(ctx context.Context, contextName string, v view, after int) ([]event.Event, error) {
	r := &reader{log: l, contextName: contextName, last: after, skipsGaps: true, unarchived: map[string][]event.Event{}}
	var events []event.Event
	err := r.read(ctx, v, func(e event.Event) error {
		events = append(events, e)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, p := range v.parts {
		if rest := r.unarchived[p.RunID]; len(rest) > 0 {
			if _, err := l.archive.Write(ctx, p.ContextName, p.RunID, rest); err != nil {
				return nil, err
			}
		}
	}
	return events, nil
}
