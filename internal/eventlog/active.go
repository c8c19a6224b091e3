package eventlog

import (
	"cmp"
	"context"
	"slices"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

const (
	activePage  = 50 // history entries; more than a session has from its last turn to its end
	activePages = 4
)

// Activity is when a context was last active, and whether it is archived since.
type Activity struct {
	At       time.Time
	Archived bool
}

// Activity returns the time of the newest event of a context that is an activity ([event.Tag.IsActivity]), from the end of
// the history of its newest run; zero if that has none. Only if that does not tell whether the context is archived, it reads
// the whole log, and takes a log that it cannot read for not archived. The error is ErrNoContext if the server does not
// have the context.
func (l *Log) Activity(ctx context.Context, contextName string) (a Activity, err error) {
	isDecided := false
	request := &workflowservice.GetWorkflowExecutionHistoryReverseRequest{
		Namespace: l.namespace, Execution: &commonpb.WorkflowExecution{WorkflowId: wire.WorkflowID(contextName)}, MaximumPageSize: activePage,
	}
	for range activePages {
		response, err := l.temporal.WorkflowService().GetWorkflowExecutionHistoryReverse(ctx, request)
		if err != nil {
			return a, notFound(typed(err))
		}
		for _, h := range response.GetHistory().GetEvents() {
			record, err := l.record(ctx, h)
			if err != nil { // it is in a blob store that cannot be read
				a.At = cmp.Or(a.At, h.GetEventTime().AsTime())
				return a, nil
			}
			for _, e := range slices.Backward(record.Events) {
				if a.At.IsZero() && e.Tag().IsActivity() {
					a.At = e.Timestamp
				}
				if archived, ok := reducer.Archives(e.Body); !isDecided && (ok || event.Counter(e.ID) == 1) {
					a.Archived, isDecided = archived, true
				}
			}
			if isDecided && !a.At.IsZero() {
				return a, nil
			}
		}
		if request.NextPageToken = response.GetNextPageToken(); len(request.NextPageToken) == 0 {
			break
		}
	}
	if !isDecided {
		a.Archived = l.isArchived(ctx, contextName)
	}
	return a, nil
}

func (l *Log) isArchived(ctx context.Context, contextName string) (is bool) {
	for e, err := range l.Events(ctx, contextName, "") {
		if err != nil {
			return false
		}
		if archived, ok := reducer.Archives(e.Body); ok {
			is = archived
		}
	}
	return is
}
