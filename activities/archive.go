package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/eventlog"
)

// ArchiveTimeout bounds one try of [Activities.Archive].
const ArchiveTimeout = time.Minute

// ArchiveInput says which events to archive.
type ArchiveInput struct {
	ContextName string `json:"contextName"`
	// Through is the counter of the newest of them. They are recorded.
	Through int `json:"through"`
}

// Archive makes sure that a run can be forgotten by the server: it writes all
// events that are not in the archive yet, as one segment. Without an archive it
// does nothing. A retry writes the same again.
func (a *Activities) Archive(ctx context.Context, in ArchiveInput) error {
	if a.options.Archive == nil {
		return nil
	}
	last, err := a.options.Archive.Last(ctx, in.ContextName)
	if err != nil || last >= in.Through {
		return err
	}
	events, err := a.unarchived(ctx, in, last)
	var gap *eventlog.GapError
	if errors.As(err, &gap) && gap.Err == nil && gap.Last > 0 {
		// There was no archive yet when the server forgot them.
		events, err = a.unarchived(ctx, in, gap.Last)
	}
	if err != nil {
		return fmt.Errorf("archive context %s: %w", in.ContextName, err)
	}
	if n := len(events); n == 0 || event.Counter(events[n-1].ID) != in.Through {
		return fmt.Errorf("archive context %s: its log ends before %s", in.ContextName, event.FormatID(in.ContextName, in.Through))
	}
	segment, err := a.options.Archive.Write(ctx, in.ContextName, events)
	if err != nil {
		return fmt.Errorf("archive context %s: %w", in.ContextName, err)
	}
	activity.GetLogger(ctx).Debug("Archived", "context", in.ContextName, "first", segment.First, "last", segment.Last)
	return nil
}

// unarchived are the events behind a counter.
func (a *Activities) unarchived(ctx context.Context, in ArchiveInput, last int) (events []event.Event, err error) {
	from := ""
	if last > 0 {
		from = event.FormatID(in.ContextName, last)
	}
	for e, err := range a.log.Events(ctx, in.ContextName, from) {
		if err != nil {
			return nil, err
		}
		if events = append(events, e); event.Counter(e.ID) >= in.Through {
			break
		}
	}
	return events, nil
}
