package eventlog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// currentRun is the newest run of a context.
func (l *Log) currentRun(ctx context.Context, contextName string) (string, error) {
	d, err := l.temporal.DescribeWorkflowExecution(ctx, wire.WorkflowID(contextName), "")
	if err != nil {
		return "", fmt.Errorf("look for context %s: %w", contextName, noContext(err))
	}
	return d.GetWorkflowExecutionInfo().GetExecution().GetRunId(), nil
}

// chain lists the runs up to the one given, oldest first, as far back as is
// needed to have the event after the one with the counter last, the run named
// until is reached, or the server has them. First is the counter of the first
// event in them; 0 when they have none.
func (l *Log) chain(ctx context.Context, contextName, runID string, last int, until string) (runs []string, first int, err error) {
	for runID != "" && runID != until {
		begin, previous, err := l.beginning(ctx, contextName, runID)
		if errors.Is(err, ErrNoContext) && len(runs) > 0 {
			// The retention of the server has taken what lies further back.
			break
		}
		if err != nil {
			return nil, 0, err
		}
		runs = append(runs, runID)
		if begin > 0 {
			first = begin
			if first <= last+1 {
				break
			}
		}
		runID = previous
	}
	slices.Reverse(runs)
	return runs, first, nil
}

// beginning reads how a run begins: the counter of its first event, or 0 when
// there is none yet, and the run before it, or "".
func (l *Log) beginning(ctx context.Context, contextName, runID string) (first int, previous string, err error) {
	history := l.temporal.GetWorkflowHistory(ctx, wire.WorkflowID(contextName), runID, false,
		enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		h, err := history.Next()
		if err != nil {
			return 0, "", fmt.Errorf("read the log of context %s: %w", contextName, noContext(err))
		}
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
	if previous == "" {
		previous, err = l.Previous(ctx, contextName, runID)
	}
	return 0, previous, err
}

// Next is the run that another one has handed over to; "" when there is none, or
// the retention of the server has taken the one that did.
func (l *Log) Next(ctx context.Context, contextName, runID string) (string, error) {
	end := l.temporal.GetWorkflowHistory(ctx, wire.WorkflowID(contextName), runID, false,
		enumspb.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT)
	for end.HasNext() {
		h, err := end.Next()
		if err = noContext(err); errors.Is(err, ErrNoContext) {
			return "", nil
		}
		if err != nil {
			return "", fmt.Errorf("look for the end of run %s of context %s: %w", runID, contextName, err)
		}
		if next := h.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId(); next != "" {
			return next, nil
		}
	}
	return "", nil
}

// Previous is the newest run of a context before the one given, by the server's
// list of workflows; "" when there is none. The list lags behind what happens,
// so the workflow waits until it is [Log.Listed] before it ends.
func (l *Log) Previous(ctx context.Context, contextName, runID string) (string, error) {
	starts := map[string]time.Time{}
	err := l.list(ctx, fmt.Sprintf("WorkflowId = '%s'", wire.WorkflowID(contextName)),
		func(run string, start time.Time) { starts[run] = start })
	// A run that is not listed yet is the newest.
	own, listed := starts[runID]
	var previous string
	for run, start := range starts {
		isBefore := run != runID && (!listed || start.Before(own))
		if isBefore && (previous == "" || start.After(starts[previous])) {
			previous = run
		}
	}
	return previous, err
}

// Listed reports whether the server's list of workflows has the run.
func (l *Log) Listed(ctx context.Context, contextName, runID string) (bool, error) {
	listed := false
	err := l.list(ctx, fmt.Sprintf("WorkflowId = '%s' AND RunId = '%s'", wire.WorkflowID(contextName), runID),
		func(string, time.Time) { listed = true })
	return listed, err
}

func (l *Log) list(ctx context.Context, query string, each func(runID string, start time.Time)) error {
	request := &workflowservice.ListWorkflowExecutionsRequest{Query: query}
	for {
		page, err := l.temporal.ListWorkflow(ctx, request)
		if err != nil {
			return fmt.Errorf("list the runs where %s: %w", query, err)
		}
		for _, x := range page.GetExecutions() {
			each(x.GetExecution().GetRunId(), x.GetStartTime().AsTime())
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return nil
		}
	}
}
