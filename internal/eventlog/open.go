package eventlog

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
)

// Opening is the result of [Log.Open].
type Opening struct {
	Run    archive.Run     // the registration
	Events []event.Event   // the log before the run
	Origin *archive.Origin // for the first session of a fork
	Root   string          // the context from which a fork descends; "": the context is no fork
}

var errNotCurrent = errors.New("the run was terminated")

// Open registers a run that begins a session, and returns the log before it. It archives what the
// preceding run has not archived. After a reset, base is the result of [Log.Base]. Open is idempotent.
func (l *Log) Open(ctx context.Context, contextName, runID, base string) (o Opening, err error) {
	err = l.registering(ctx, contextName, func(folder *archive.Folder) error {
		isRegistered := false
		if o, isRegistered, err = l.opening(ctx, folder, contextName, runID, base); err != nil || isRegistered {
			return err
		}
		return l.register(ctx, folder, contextName, o.Run)
	})
	return o, err
}

// Continue registers a run that continues the session of run.Behind. Before that, it archives the
// events of run.Behind through a counter; 0 archives nothing. It is idempotent.
func (l *Log) Continue(ctx context.Context, contextName string, run archive.Run, through int) error {
	return l.registering(ctx, contextName, func(folder *archive.Folder) error {
		// Archive before registering: if this run ended in between, nobody would archive run.Behind,
		// because the next run archives only the run before it.
		if through > 0 {
			if _, err := l.archiveOwn(ctx, contextName, run.Behind, through); err != nil {
				return err
			}
		}
		_, err := folder.Run(ctx, run.ID)
		if errors.Is(err, archive.ErrNoRun) {
			err = l.register(ctx, folder, contextName, run)
		}
		return err
	})
}

// registering calls register again if another run registers at the same time.
func (l *Log) registering(ctx context.Context, contextName string, register func(*archive.Folder) error) error {
	for {
		err := l.checkIsNotDeleting(ctx, contextName)
		var folder *archive.Folder
		if err == nil {
			folder, err = l.archive.Folder(ctx, contextName)
		}
		if err == nil {
			err = register(folder)
		}
		if errors.Is(err, blobs.ErrExists) {
			continue
		}
		if err != nil {
			return fmt.Errorf("open context %s: %w", contextName, err)
		}
		return nil
	}
}

func (l *Log) opening(ctx context.Context, folder *archive.Folder, contextName, runID, base string) (o Opening, isRegistered bool, err error) {
	run, err := folder.Run(ctx, runID)
	isRegistered = err == nil
	if errors.Is(err, archive.ErrNoRun) && base != "" {
		run, err = folder.Run(ctx, base)
	}
	isNew := errors.Is(err, archive.ErrNoRun)
	if isNew {
		var newest archive.Run
		if newest, err = folder.Run(ctx, ""); errors.Is(err, archive.ErrNoRun) {
			err = nil
		}
		run = archive.Run{After: math.MaxInt, Behind: newest.ID}
	}
	if err != nil {
		return o, false, err
	}
	o.Run = archive.Run{ID: runID, After: run.After, Behind: run.Behind}
	if run.Behind != "" {
		previous, err := folder.Run(ctx, run.Behind)
		if err != nil {
			return o, false, err
		}
		o.Origin = previous.Origin
		parts, err := folder.View(ctx, run.Behind, 0)
		if err != nil {
			return o, false, err
		}
		if root := parts[0].ContextName; root != contextName {
			o.Root = root
		}
		if o.Events, err = l.readAndArchive(ctx, contextName, view{parts: parts}, 0); err != nil {
			return o, false, err
		}
	}
	for n := len(o.Events); n > 0 && event.Counter(o.Events[n-1].ID) > run.After; n-- {
		o.Events = o.Events[:n-1]
	}
	if isNew {
		o.Run.After = lastCounter(o.Events)
	}
	return o, isRegistered, nil
}

func lastCounter(events []event.Event) int {
	if len(events) == 0 {
		return 0
	}
	return event.Counter(events[len(events)-1].ID)
}

// register registers a run. It fails if the context has a newer run, whose log would not contain this
// one.
func (l *Log) register(ctx context.Context, folder *archive.Folder, contextName string, run archive.Run) error {
	// The workflow has compared the stores. The memo of a new run may be anybody's.
	current, err := l.describe(ctx, contextName, "")
	if err != nil {
		return fmt.Errorf("look for context %s: %w", contextName, notFound(err))
	}
	if current.GetWorkflowExecutionInfo().GetExecution().GetRunId() != run.ID {
		return fmt.Errorf("register run %s: %w", run.ID, errNotCurrent)
	}
	return folder.Register(ctx, run)
}

// Base goes from a run that a reset created back to the run that was reset, and so on, and returns the first
// of these that is registered. It returns "" if none is, or if the server has no history that names the next one.
func (l *Log) Base(ctx context.Context, contextName, runID string) (string, error) {
	folder, err := l.archive.Folder(ctx, contextName)
	if err != nil {
		return "", err
	}
	for {
		base, err := l.resetBase(ctx, contextName, runID)
		if err != nil {
			return "", fmt.Errorf("find the run whose reset created run %s of context %s: %w", runID, contextName, err)
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

func (l *Log) resetBase(ctx context.Context, contextName, runID string) (base string, err error) {
	for page, err := range l.pages(ctx, contextName, runID, bookmark{}, 0) {
		if errors.Is(err, ErrNoContext) {
			return "", nil // the retention period has expired
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

// IsRun reports whether an id is a Temporal run id, not "" or the id of an import or a fork.
func IsRun(id string) bool {
	return id != "" && id != archive.ForkID && !strings.HasPrefix(id, archive.ImportID)
}
