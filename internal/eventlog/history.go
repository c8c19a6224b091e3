package eventlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/references"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// Page sizes, in transactions of about three entries. Most readers want few events.
const (
	smallPage  = 64
	smallPages = 8
	largePage  = 256
)

const (
	pageTimeout     = 10 * time.Second
	longPollTimeout = time.Minute // the server answers after at most 20 s
)

const following = -1

type page struct {
	entries []*historypb.HistoryEvent
	next    bookmark // after the page, without a counter
}

// pages yields the history of a run from a bookmark on, up to a length in entries. Length 0 means the
// current length; following means until the run is closed. An error is the last element: ErrNoContext
// if the server does not have the run.
func (l *Log) pages(ctx context.Context, contextName, runID string, from bookmark, length int64) iter.Seq2[page, error] {
	return func(yield func(page, error) bool) {
		wait := true
		switch {
		case length == 0 && from.entry == 0:
			wait, length = false, math.MaxInt64
		case length == 0:
			d, err := l.describe(ctx, contextName, runID)
			if err != nil {
				yield(page{}, notFound(err))
				return
			}
			length = d.GetWorkflowExecutionInfo().GetHistoryLength()
		}
		for n, at := 0, from; length == following || at.entry < length; n++ {
			size := int32(largePage)
			if n < smallPages {
				size = smallPage
			}
			// Without WaitNewEvent, pages end where the history ended at the first request. With it,
			// a request for entries that exist returns at once.
			response, err := l.page(ctx, length == following, &workflowservice.GetWorkflowExecutionHistoryRequest{
				Namespace:       l.namespace,
				Execution:       &commonpb.WorkflowExecution{WorkflowId: wire.WorkflowID(contextName), RunId: runID},
				MaximumPageSize: size, NextPageToken: at.token, WaitNewEvent: wait, SkipArchival: true,
			})
			if err != nil {
				yield(page{}, notFound(err))
				return
			}
			entries := response.GetHistory().GetEvents() // may be empty: another page follows each full one
			if n := len(entries); n > 0 {
				at.entry = entries[n-1].GetEventId()
			}
			at.token = response.GetNextPageToken()
			if !yield(page{entries, at}, nil) || len(at.token) == 0 {
				return
			}
		}
	}
}

func (l *Log) page(ctx context.Context, isLongPoll bool, request *workflowservice.GetWorkflowExecutionHistoryRequest) (*workflowservice.GetWorkflowExecutionHistoryResponse, error) {
	timeout := pageTimeout
	if isLongPoll {
		timeout = longPollTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for b := (backoff{}); ; b.wait(ctx, nil, false) {
		response, err := l.temporal.WorkflowService().GetWorkflowExecutionHistory(ctx, request)
		if err = typed(err); err != nil {
			if isLongPoll || ctx.Err() != nil || !isTransient(err) {
				return nil, err
			}
			continue
		}
		if err := references.DecodeRaw(response); err != nil {
			return nil, fmt.Errorf("run %s: %w", request.GetExecution().GetRunId(), err)
		}
		return response, nil
	}
}

// runEvents yields an event without an id after each page of a history that it follows, and then the work
// that no worker has done is known.
func (l *Log) runEvents(ctx context.Context, contextName, runID string, after int, length int64, work *unprocessed) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		from := l.bookmarks.find(runID, after)
		counter := from.counter
		*work = unprocessed{hasRecorded: counter > 0, isChanged: true}
		earlier := unreadable{after: after}
		for page, err := range l.pages(ctx, contextName, runID, from, length) {
			if err != nil && from.entry > 0 && (!isTransient(err) || errors.As(err, new(*serviceerror.Internal))) {
				l.bookmarks.forget(runID) // the server may reject the token
				l.runEvents(ctx, contextName, runID, after, length, work)(yield)
				return
			}
			if err != nil {
				yield(event.Event{}, readError(contextName, runID, err))
				return
			}
			for _, h := range page.entries {
				events, err := l.decode(ctx, h)
				if err = earlier.check(counter, events, err); err != nil {
					yield(event.Event{}, readError(contextName, runID, err))
					return
				}
				work.apply(h, events)
				for _, e := range events {
					counter = event.Counter(e.ID)
					if !yield(e, nil) {
						return
					}
				}
			}
			if page.next.counter = counter; len(page.next.token) > 0 && earlier.err == nil && !work.hasInput() {
				l.bookmarks.add(runID, page.next)
			}
			if length == following && !yield(event.Event{}, nil) {
				return
			}
		}
		if earlier.err != nil {
			yield(event.Event{}, readError(contextName, runID, earlier.err))
		}
	}
}

// unreadable are records in a blob store for a reader without one. They matter only if they have
// events after its position.
type unreadable struct {
	after   int   // the position
	records int   // since the last readable one
	err     error // of the first; nil: none
}

// check returns an error if an event after the position is unreadable. Counter is that of the last
// event read; events and err are a decoded history entry. An unreadable record counts as one event
// until the id in the next readable record shows how many there were.
func (u *unreadable) check(counter int, events []event.Event, err error) error {
	switch {
	case errors.Is(err, ErrNoArchive):
		u.records++
		u.err = cmp.Or(u.err, err)
		if counter+u.records > u.after {
			return u.err
		}
	case err != nil:
		return err
	case len(events) > 0 && u.err != nil:
		if event.Counter(events[0].ID) > u.after+1 {
			return u.err
		}
		u.records, u.err = 0, nil
	}
	return nil
}

func readError(contextName, runID string, err error) error {
	return fmt.Errorf("read the log of context %s, run %s: %w", contextName, runID, err)
}

func (l *Log) describe(ctx context.Context, contextName, runID string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	d, err := l.temporal.DescribeWorkflowExecution(ctx, wire.WorkflowID(contextName), runID)
	return d, typed(err)
}

// typed converts errors with the gRPC code Unknown, for which package serviceerror has no type. The
// server returns them for failures of its own, such as a database read that its timeout interrupted.
func typed(err error) error {
	if err == nil || errors.As(err, new(serviceerror.ServiceError)) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return serviceerror.NewInternal(err.Error())
}

// notFound converts "not found" errors to ErrNoContext. While a server with an SQL database deletes
// a run, it returns an InvalidArgument that only its message identifies.
func notFound(err error) error {
	var invalid *serviceerror.InvalidArgument
	if errors.As(err, new(*serviceerror.NotFound)) || errors.As(err, &invalid) && strings.Contains(invalid.Message, "history not found") {
		return NoContext(err)
	}
	return err
}
