package eventlog

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// currentRun returns the newest run of a context and the length of its history.
// It fails with blobs.ErrOtherStore if the store of the context differs from that of the archive.
func (l *Log) currentRun(ctx context.Context, contextName string) (runID string, length int64, err error) {
	d, err := l.describe(ctx, contextName, "")
	if err != nil {
		return "", 0, fmt.Errorf("look for context %s: %w", contextName, notFound(err))
	}
	info := d.GetWorkflowExecutionInfo()
	if bound := wire.StoreOf(info.GetMemo()); bound != "" && l.archive != nil {
		id, err := l.archive.Store().ReadIdentity(ctx)
		if err == nil && id != bound {
			return "", 0, blobs.OtherStore("context "+contextName, bound, id)
		}
	}
	return info.GetExecution().GetRunId(), info.GetHistoryLength(), nil
}

type view struct {
	run         string
	length      int64 // of the history of the run; 0 if unknown
	parts       []archive.Part
	archiveErr  error // of an unavailable archive; the parts are then those of the histories
	isForgotten bool  // the server has no run of the context
	// unregistered is the current run if the view is that of an earlier one; "": it is not.
	unregistered string
}

// current falls back to the newest registered run if the current run has not registered or the
// server has no run.
func (l *Log) current(ctx context.Context, contextName string, after int) (view, error) {
	run, length, err := l.currentRun(ctx, contextName)
	isForgotten := errors.Is(err, ErrNoContext)
	if err != nil && (!isForgotten || l.archive == nil) {
		return view{}, err
	}
	v, viewErr := view{}, error(archive.ErrNoRun)
	unregistered := ""
	if !isForgotten {
		v, viewErr = l.view(ctx, contextName, run, after)
		v.length = length
	}
	if errors.Is(viewErr, archive.ErrNoRun) {
		unregistered = run
		v, viewErr = l.view(ctx, contextName, "", after)
	}
	if errors.Is(viewErr, archive.ErrNoRun) {
		return view{unregistered: unregistered}, err // nil for a context without events
	}
	v.isForgotten, v.unregistered = isForgotten, unregistered
	return v, viewErr
}

// view returns the log of a run after a counter; "" is the newest run in the archive.
// It fails with archive.ErrNoRun if the run is not registered.
func (l *Log) view(ctx context.Context, contextName, runID string, after int) (view, error) {
	if l.archive == nil {
		return l.viewHistories(ctx, contextName, runID, after)
	}
	v, archiveErr := l.viewArchive(ctx, contextName, runID, after)
	if !errors.Is(archiveErr, blobs.ErrUnavailable) || runID == "" {
		return v, archiveErr
	}
	v, err := l.viewHistories(ctx, contextName, runID, after)
	v.archiveErr = archiveErr
	return v, err
}

func (l *Log) viewArchive(ctx context.Context, contextName, runID string, after int) (view, error) {
	folder, err := l.archive.Folder(ctx, contextName)
	if err != nil {
		return view{}, err
	}
	if runID == "" {
		newest, err := folder.Run(ctx, "")
		if err != nil {
			return view{}, err
		}
		runID = newest.ID
	}
	parts, err := folder.View(ctx, runID, after)
	return view{run: runID, parts: parts}, err
}

// viewHistories follows the runs that histories name, back to the oldest that the server still has.
func (l *Log) viewHistories(ctx context.Context, contextName, runID string, after int) (view, error) {
	v := view{run: runID}
	through := math.MaxInt
	for runID != "" {
		first, previous, err := l.beginning(ctx, contextName, runID, after)
		if errors.Is(err, ErrNoContext) && len(v.parts) > 0 {
			break
		}
		if err != nil {
			return v, err
		}
		if first == 0 && previous == "" {
			break // the history does not name the preceding run, if there is one
		}
		v.parts = append(v.parts, archive.Part{ContextName: contextName, RunID: runID, After: max(0, first-1), Through: through})
		if first > 0 {
			if through = first - 1; through <= after {
				break
			}
		}
		runID = previous
	}
	slices.Reverse(v.parts)
	if len(v.parts) == 0 {
		return v, archive.ErrNoRun
	}
	return v, nil
}

// beginning returns the counter of a run's first event, or 0, and the run that it continues, or "".
func (l *Log) beginning(ctx context.Context, contextName, runID string, after int) (first int, previous string, err error) {
	earlier := unreadable{after: after}
	for page, err := range l.pages(ctx, contextName, runID, bookmark{}, 0) {
		if err != nil {
			return 0, "", readError(contextName, runID, err)
		}
		for _, h := range page.entries {
			if started := h.GetWorkflowExecutionStartedEventAttributes(); started != nil {
				previous = started.GetContinuedExecutionRunId()
			}
			events, err := l.decode(ctx, h)
			if err = earlier.check(0, events, err); err != nil {
				return 0, "", readError(contextName, runID, err)
			}
			if len(events) == 0 {
				continue
			}
			if body, ok := events[0].Body.(event.SessionStarted); ok {
				previous = body.PreviousRunID
			}
			return event.Counter(events[0].ID), previous, nil
		}
	}
	if earlier.err != nil {
		return 0, "", readError(contextName, runID, earlier.err)
	}
	return 0, previous, nil
}
