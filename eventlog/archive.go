package eventlog

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Archive makes sure that the archive, which must be there, has the events of a
// context up to the one with a counter: those that it does not have yet are
// written as one segment. Archiving them again writes nothing.
func (l *Log) Archive(ctx context.Context, contextName string, through int) error {
	if err := l.write(ctx, contextName, through); err != nil {
		return fmt.Errorf("archive context %s: %w", contextName, err)
	}
	return nil
}

func (l *Log) write(ctx context.Context, contextName string, through int) error {
	last, err := l.archive.Last(ctx, contextName)
	if err != nil || last >= through {
		return err
	}
	events, err := l.unarchived(ctx, contextName, last, through)
	var gap *GapError
	if errors.As(err, &gap) && gap.Err == nil && gap.Last > 0 {
		// There was no archive yet when the server forgot them.
		events, err = l.unarchived(ctx, contextName, gap.Last, through)
	}
	if err != nil {
		return err
	}
	if n := len(events); n == 0 || event.Counter(events[n-1].ID) != through {
		return fmt.Errorf("its log ends before %s", event.FormatID(contextName, through))
	}
	_, err = l.archive.Write(ctx, contextName, events)
	return err
}

// unarchived are the events behind a counter, up to another one.
func (l *Log) unarchived(ctx context.Context, contextName string, last, through int) (events []event.Event, err error) {
	from := ""
	if last > 0 {
		from = event.FormatID(contextName, last)
	}
	for e, err := range l.Events(ctx, contextName, from) {
		if err != nil {
			return nil, err
		}
		if events = append(events, e); event.Counter(e.ID) >= through {
			break
		}
	}
	return events, nil
}
