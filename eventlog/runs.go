package eventlog

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// currentRun is the newest run of a context, and the length of its history.
func (l *Log) currentRun(ctx context.Context, contextName string) (runID string, length int64, err error) {
	d, err := l.temporal.DescribeWorkflowExecution(ctx, wire.WorkflowID(contextName), "")
	if err != nil {
		return "", 0, fmt.Errorf("look for context %s: %w", contextName, noContext(err))
	}
	info := d.GetWorkflowExecutionInfo()
	bound, err := wire.StoreOf(info.GetMemo())
	if err != nil {
		return "", 0, fmt.Errorf("look for context %s: %w", contextName, err)
	}
	if bound != "" && l.archive != nil {
		id, err := l.archive.Store().ReadIdentity(ctx)
		if err == nil && id != bound {
			return "", 0, blobs.OtherStore("context "+contextName, bound, id)
		}
	}
	return info.GetExecution().GetRunId(), info.GetHistoryLength(), nil
}

// view is what the log of a run is made of, oldest part first.
type view struct {
	run string
	// length is that of the history of the run; 0 when it is not known.
	length int64
	parts  []archive.Part
	// away is why the archive did not say so: the parts are what the histories tell.
	away error
	// isGone says that the server knows no run of the context.
	isGone bool
}

// current is the log of the current run; before that has registered, or when the
// server knows none, the log of the newest run that has.
func (l *Log) current(ctx context.Context, contextName string, after int) (view, error) {
	run, length, err := l.currentRun(ctx, contextName)
	isGone := errors.Is(err, ErrNoContext)
	if err != nil && (!isGone || l.archive == nil) {
		return view{}, err
	}
	v, viewErr := view{}, error(archive.ErrNoRun)
	if !isGone {
		v, viewErr = l.view(ctx, contextName, run, after)
		v.length = length
	}
	if errors.Is(viewErr, archive.ErrNoRun) {
		v, viewErr = l.view(ctx, contextName, "", after)
	}
	if errors.Is(viewErr, archive.ErrNoRun) {
		return view{}, err // it has no events, or there is no such context
	}
	v.isGone = isGone
	return v, viewErr
}

// view is the log of a run as far back as the events behind a counter. The error
// is archive.ErrNoRun for a run that has not registered yet. With "" it is the
// log of the newest run in the archive.
func (l *Log) view(ctx context.Context, contextName, runID string, after int) (view, error) {
	if l.archive == nil {
		return l.histories(ctx, contextName, runID, after)
	}
	v, err := l.archived(ctx, contextName, runID, after)
	if errors.Is(err, blobs.ErrUnavailable) && runID != "" {
		away := err
		v, err = l.histories(ctx, contextName, runID, after)
		v.away = away
	}
	return v, err
}

// archived is view by what is registered in the archive.
func (l *Log) archived(ctx context.Context, contextName, runID string, after int) (view, error) {
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

// histories is view without an archive, or while it is away: each run names the one before it, in its
// first event or as the run that it continues. The log begins with what the
// server still has.
func (l *Log) histories(ctx context.Context, contextName, runID string, after int) (view, error) {
	v := view{run: runID}
	through := math.MaxInt
	for runID != "" {
		first, previous, err := l.beginning(ctx, contextName, runID)
		if errors.Is(err, ErrNoContext) && len(v.parts) > 0 {
			break
		}
		if err != nil {
			return v, err
		}
		if first == 0 && previous == "" && len(v.parts) == 0 {
			break
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

// beginning reads how a run begins: the counter of its first event, or 0 when
// there is none yet, and the run before it, or "".
func (l *Log) beginning(ctx context.Context, contextName, runID string) (first int, previous string, err error) {
	for page, err := range l.pages(ctx, contextName, runID, bookmark{}, 0) {
		if err != nil {
			return 0, "", fmt.Errorf("read the log of context %s: %w", contextName, err)
		}
		for _, h := range page.entries {
			if started := h.GetWorkflowExecutionStartedEventAttributes(); started != nil {
				previous = started.GetContinuedExecutionRunId()
			}
			events, err := l.decode(ctx, h)
			if err != nil {
				return 0, "", fmt.Errorf("read the log of context %s, run %s: %w", contextName, runID, err)
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
	return 0, previous, nil
}
