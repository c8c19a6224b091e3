package eventlog

import (
	"context"
	"fmt"
	"iter"
	"math"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/proto"

	"github.com/seed-9ed7edd4/chronicle/wire"
)

// The server counts a page in batches of entries that it wrote at once, about three
// each. Small pages first: most readers want a hundred events or a single one. The
// rest of a long history comes in large pages.
const (
	smallPage  = 64
	smallPages = 8
	largePage  = 256
)

// Timeouts of one request for a page. A server answers a request that waits for new
// entries after 20 s.
const (
	pageTimeout = 10 * time.Second
	waitTimeout = time.Minute
)

// following is the length of a history that is read until the run has ended.
const following = -1

// page is a part of a history.
type page struct {
	entries []*historypb.HistoryEvent
	// next is the bookmark behind the page, without a counter.
	next bookmark
}

// pages yields the history of a run from a bookmark on, up to its entry number length.
// Zero: as long as it is now. With following it waits for new entries until the run has
// ended. An error comes last; it is ErrNoContext when the server does not know the run.
func (l *Log) pages(ctx context.Context, contextName, runID string, from bookmark, length int64) iter.Seq2[page, error] {
	return func(yield func(page, error) bool) {
		wait := true
		switch {
		case length == 0 && from.entry == 0:
			wait, length = false, math.MaxInt64
		case length == 0:
			d, err := l.temporal.DescribeWorkflowExecution(ctx, wire.WorkflowID(contextName), runID)
			if err != nil {
				yield(page{}, noContext(err))
				return
			}
			length = d.GetWorkflowExecutionInfo().GetHistoryLength()
		}
		for n, at := 0, from; length == following || at.entry < length; n++ {
			size := int32(largePage)
			if n < smallPages {
				size = smallPage
			}
			// Without WaitNewEvent, pages end where the history ended when the first of them
			// was read. With it, no request waits, since the entry with the number length exists.
			response, err := l.page(ctx, length == following, &workflowservice.GetWorkflowExecutionHistoryRequest{
				Namespace:       l.namespace,
				Execution:       &commonpb.WorkflowExecution{WorkflowId: wire.WorkflowID(contextName), RunId: runID},
				MaximumPageSize: size, NextPageToken: at.token, WaitNewEvent: wait, SkipArchival: true,
			})
			if err != nil {
				yield(page{}, noContext(err))
				return
			}
			entries := response.GetHistory().GetEvents()
			if n := len(entries); n > 0 {
				at.entry = entries[n-1].GetEventId()
			} else if length != following {
				return
			}
			at.token = response.GetNextPageToken()
			if !yield(page{entries, at}, nil) || len(at.token) == 0 {
				return
			}
		}
	}
}

// page requests a page. Unless it waits for new entries, it tries again while the
// server is away.
func (l *Log) page(ctx context.Context, wait bool, request *workflowservice.GetWorkflowExecutionHistoryRequest) (*workflowservice.GetWorkflowExecutionHistoryResponse, error) {
	timeout := pageTimeout
	if wait {
		timeout = waitTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for p := (pause{}); ; p.wait(ctx, nil, false) {
		response, err := l.temporal.WorkflowService().GetWorkflowExecutionHistory(ctx, request)
		if err != nil {
			if wait || ctx.Err() != nil || !mayPass(err) {
				return nil, err
			}
			continue
		}
		// A server may be set up to send a history as it stores it.
		for _, blob := range response.GetRawHistory() {
			var history historypb.History
			if err := proto.Unmarshal(blob.GetData(), &history); err != nil {
				return nil, fmt.Errorf("decode a page of the history of run %s: %w", request.GetExecution().GetRunId(), err)
			}
			if response.History == nil {
				response.History = &historypb.History{}
			}
			response.History.Events = append(response.History.Events, history.GetEvents()...)
		}
		return response, nil
	}
}
