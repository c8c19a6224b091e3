package eventlog

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/eventlog/blobs"
)

// Opening is what a run opens with.
type Opening struct {
	// Run is the registration of the run.
	Run archive.Run
	// Events are the log before the run; nil when it continues another as new or was
	// reset, and has the session already.
	Events []event.Event
	// Origin is set for the first session of a fork.
	Origin *archive.Origin
}

// errNotCurrent: another run has taken the place of this one.
var errNotCurrent = errors.New("the run was terminated")

// Open registers a run that begins a session, and returns the log before it. What
// the run before has recorded and the archive does not have is archived. base is
// the run that was reset before it had opened, or "".
func (l *Log) Open(ctx context.Context, contextName, runID, base string) (Opening, error) {
	for {
		o, folder, err := l.prepare(ctx, contextName, runID, base)
		if err == nil && folder != nil {
			err = l.register(ctx, folder, contextName, o.Run)
		}
		if errors.Is(err, blobs.ErrExists) {
			continue
		}
		if err != nil {
			return o, fmt.Errorf("open context %s: %w", contextName, err)
		}
		return o, nil
	}
}

// prepare finds the log before a run. The folder is nil when the run is
// registered.
func (l *Log) prepare(ctx context.Context, contextName, runID, base string) (o Opening, _ *archive.Folder, err error) {
	folder, err := l.archive.Folder(ctx, contextName)
	if err != nil {
		return o, nil, err
	}
	through, registered := math.MaxInt, true
	if o.Run, err = folder.Run(ctx, runID); errors.Is(err, archive.ErrNoRun) {
		registered = false
		if base != "" {
			o.Run, err = folder.Run(ctx, base)
		}
	}
	switch {
	case err == nil:
		through = o.Run.After
	case errors.Is(err, archive.ErrNoRun):
		newest, err := folder.Run(ctx, "")
		if err != nil && !errors.Is(err, archive.ErrNoRun) {
			return o, nil, err
		}
		o.Run.Behind = newest.ID
	default:
		return o, nil, err
	}
	o.Run.ID, o.Run.Origin = runID, nil
	if o.Run.Behind != "" {
		parts, err := folder.View(ctx, o.Run.Behind, 0)
		if err != nil {
			return o, nil, err
		}
		before, err := folder.Run(ctx, o.Run.Behind)
		if err != nil {
			return o, nil, err
		}
		o.Origin = before.Origin
		if o.Events, err = l.archiveRest(ctx, contextName, parts, 0); err != nil {
			return o, nil, err
		}
		for n := len(o.Events); n > 0 && event.Counter(o.Events[n-1].ID) > through; n-- {
			o.Events = o.Events[:n-1]
		}
	}
	if through == math.MaxInt {
		o.Run.After = 0
		if n := len(o.Events); n > 0 {
			o.Run.After = event.Counter(o.Events[n-1].ID)
		}
	}
	if registered {
		folder = nil
	}
	return o, folder, nil
}

// Continue registers a run that has the session of the run behind it, and archives
// the events of that one up to a counter. With 0 it archives nothing.
func (l *Log) Continue(ctx context.Context, contextName string, run archive.Run, through int) error {
	for {
		folder, err := l.archive.Folder(ctx, contextName)
		if err == nil {
			// Also of a run that is registered the rest is archived: the attempt that
			// registered it may have got no further.
			_, err = folder.Run(ctx, run.ID)
		}
		if errors.Is(err, archive.ErrNoRun) {
			err = l.register(ctx, folder, contextName, run)
		}
		if errors.Is(err, blobs.ErrExists) {
			continue
		}
		if err == nil && through > 0 {
			err = l.archiveRun(ctx, contextName, run.Behind, through)
		}
		if err != nil {
			return fmt.Errorf("open context %s: %w", contextName, err)
		}
		return nil
	}
}

// register registers a run behind those that a folder lists, unless it is no
// longer the current run: then others do not continue it.
func (l *Log) register(ctx context.Context, folder *archive.Folder, contextName string, run archive.Run) error {
	current, _, err := l.currentRun(ctx, contextName)
	if err != nil {
		return err
	}
	if current != run.ID {
		return fmt.Errorf("register run %s: %w", run.ID, errNotCurrent)
	}
	return folder.Register(ctx, run)
}

// Base is the run whose log a run that was made by a reset goes on with: the run that
// was reset, or if that was reset itself before it registered, and so has recorded
// nothing, the one before; "" when it is unknown.
func (l *Log) Base(ctx context.Context, contextName, runID string) (string, error) {
	folder, err := l.archive.Folder(ctx, contextName)
	if err != nil {
		return "", err
	}
	for {
		base, err := l.base(ctx, contextName, runID)
		if err != nil {
			return "", fmt.Errorf("look for the run that was reset to make run %s of context %s: %w", runID, contextName, err)
		}
		if base == "" {
			return "", nil
		}
		if _, err := folder.Run(ctx, base); !errors.Is(err, archive.ErrNoRun) {
			return base, err
		}
		runID = base
	}
}

// base is the run that was reset to make another one; "" when the server does not know.
func (l *Log) base(ctx context.Context, contextName, runID string) (base string, err error) {
	for page, err := range l.pages(ctx, contextName, runID, bookmark{}, 0) {
		if errors.Is(err, ErrNoContext) {
			return "", nil // the retention of the server has taken it
		}
		if err != nil {
			return "", err
		}
		for _, h := range page.entries {
			if failed := h.GetWorkflowTaskFailedEventAttributes(); failed.GetCause() == enumspb.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW {
				base = failed.GetBaseRunId()
			}
		}
	}
	return base, nil
}

// Archive makes sure that the archive has the log of a context up to an event, and
// returns the run whose log that is.
func (l *Log) Archive(ctx context.Context, contextName string, through int) (runID string, err error) {
	v, err := l.current(ctx, contextName, 0)
	if err == nil {
		err = l.archiveParts(ctx, contextName, v.isGone, archive.Truncate(v.parts, through), through)
	}
	if err != nil {
		return "", fmt.Errorf("archive context %s: %w", contextName, err)
	}
	return v.run, nil
}

// Archived returns how many segments of the archive the log of a context needs, and
// the counter up to which the archive has all of it.
func (l *Log) Archived(ctx context.Context, contextName string) (segments, reach int, err error) {
	v, err := l.current(ctx, contextName, 0)
	for _, p := range v.parts {
		segments += p.Segments()
		if reach == p.After {
			reach = p.ArchivedThrough()
		}
	}
	return segments, reach, err
}

// ArchiveRun makes sure that the archive has the events of a run up to one.
func (l *Log) ArchiveRun(ctx context.Context, contextName, runID string, through int) error {
	own, err := l.own(ctx, contextName, runID, through)
	if err != nil {
		return err
	}
	return l.archiveParts(ctx, contextName, false, own, through)
}

// archiveRun archives the events of a run up to one that the server still has.
func (l *Log) archiveRun(ctx context.Context, contextName, runID string, through int) error {
	own, err := l.own(ctx, contextName, runID, through)
	if err == nil && own[0].ArchivedThrough() < through {
		_, err = l.archiveRest(ctx, contextName, own, own[0].ArchivedThrough())
	}
	return err
}

// own is the part of the log of a run that the run itself recorded, up to an event.
func (l *Log) own(ctx context.Context, contextName, runID string, through int) ([]archive.Part, error) {
	folder, err := l.archive.Folder(ctx, contextName)
	if err != nil {
		return nil, err
	}
	run, err := folder.Run(ctx, runID)
	if err != nil {
		return nil, err
	}
	parts, err := folder.View(ctx, runID, run.After)
	if err != nil {
		return nil, err
	}
	return archive.Truncate(parts[len(parts)-1:], through), nil
}

// archiveParts archives what is missing of parts, which must reach an event.
func (l *Log) archiveParts(ctx context.Context, contextName string, isGone bool, parts []archive.Part, through int) error {
	reach := 0
	for _, p := range parts {
		reach = max(reach, p.ArchivedThrough())
		if isGone || p.After >= through || p.ArchivedThrough() >= p.Through {
			continue
		}
		events, err := l.archiveRest(ctx, contextName, []archive.Part{p}, p.ArchivedThrough())
		if err != nil {
			return err
		}
		if n := len(events); n > 0 {
			reach = max(reach, event.Counter(events[n-1].ID))
		}
	}
	if reach < through {
		return fmt.Errorf("its log ends before %s", event.FormatID(contextName, through))
	}
	return nil
}

// archiveRest reads parts behind a counter, archives what the archive does not have
// of them, and returns their events. It skips events that are lost.
func (l *Log) archiveRest(ctx context.Context, contextName string, parts []archive.Part, after int) ([]event.Event, error) {
	r := &reading{log: l, contextName: contextName, last: after, skipsGaps: true, unarchived: map[string][]event.Event{}}
	var events []event.Event
	var failed error
	r.read(ctx, view{parts: parts}, func(e event.Event, err error) bool {
		if failed = err; err == nil {
			events = append(events, e)
		}
		return err == nil
	})
	if failed != nil {
		return nil, failed
	}
	for _, p := range parts {
		if rest := r.unarchived[p.RunID]; len(rest) > 0 {
			if _, err := l.archive.Write(ctx, p.ContextName, p.RunID, rest); err != nil {
				return nil, err
			}
		}
	}
	return events, nil
}

// IsRun reports whether an id is one of Temporal's, and not "" or of an import or
// fork.
func IsRun(id string) bool {
	return id != "" && id != archive.ForkID && !strings.HasPrefix(id, archive.ImportID)
}
