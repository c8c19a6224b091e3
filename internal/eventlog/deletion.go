package eventlog

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// IsDeleting reports whether a deletion of a context runs.
func (l *Log) IsDeleting(ctx context.Context, contextName string) (bool, error) {
	d, err := l.temporal.DescribeWorkflowExecution(ctx, wire.DeletionID(contextName), "")
	if errors.As(err, new(*serviceerror.NotFound)) {
		return false, nil
	}
	return d.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, typed(err)
}

var errDeleting = errors.New("it is being deleted (the run opens when the deletion has ended)")

// checkIsNotDeleting keeps a run from the log that a deletion removes. A deletion that begins later finds the run.
func (l *Log) checkIsNotDeleting(ctx context.Context, contextName string) error {
	isDeleting, err := l.IsDeleting(ctx, contextName)
	if err == nil && isDeleting {
		err = errDeleting
	}
	return err
}

// LastActivity returns the time of the newest event that is not the end of a session.
func (l *Log) LastActivity(ctx context.Context, contextName string) (last time.Time, err error) {
	_, archived, err := l.Archived(ctx, contextName)
	if err != nil {
		return last, fmt.Errorf("read the end of context %s: %w", contextName, err)
	}
	from := "" // the end of a session follows another event
	if archived > 2 {
		from = event.FormatID(contextName, archived-2)
	}
	for e, err := range l.Events(ctx, contextName, from) {
		if err != nil {
			return last, err
		}
		if e.Tag() != event.TagSessionEnded {
			last = e.Timestamp
		}
	}
	return last, nil
}
