package eventlog

import (
	"context"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

const (
	activePage  = 50 // history entries; more than a session has from its last turn to its end
	activePages = 4
)

// LastActive returns the time of the newest event of a context that is an activity ([event.Tag.IsActivity]), from the end of
// the history of its newest run; zero if that has none. The error is ErrNoContext if the server does not have the context.
func (l *Log) LastActive(ctx context.Context, contextName string) (time.Time, error) {
	request := &workflowservice.GetWorkflowExecutionHistoryReverseRequest{
		Namespace: l.namespace, Execution: &commonpb.WorkflowExecution{WorkflowId: wire.WorkflowID(contextName)}, MaximumPageSize: activePage,
	}
	for range activePages {
		response, err := l.temporal.WorkflowService().GetWorkflowExecutionHistoryReverse(ctx, request)
		if err != nil {
			return time.Time{}, notFound(typed(err))
		}
		for _, h := range response.GetHistory().GetEvents() {
			record, err := l.record(ctx, h)
			if err != nil { // it is in a blob store that cannot be read
				return h.GetEventTime().AsTime(), nil
			}
			for i := len(record.Events) - 1; i >= 0; i-- {
				if e := record.Events[i]; e.Tag().IsActivity() {
					return e.Timestamp, nil
				}
			}
		}
		if request.NextPageToken = response.GetNextPageToken(); len(request.NextPageToken) == 0 {
			break
		}
	}
	return time.Time{}, nil
}
