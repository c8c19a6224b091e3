package eventlog

import (
	"context"
	"slices"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// Waiting is the work of a context that the server holds for a worker. Zero: none.
type Waiting struct {
	// Since is when the server scheduled the workflow task that no worker has completed; zero: there is none.
	Since time.Time
	// Input returns the events of the newest [MaxWaiting] inputs that no worker has recorded, oldest first.
	// Their Timestamp is when the server stored them. It omits malformed input, and reads the blob store.
	// Nil: all input is recorded.
	Input func(ctx context.Context) ([]event.Event, error)
}

// IsZero reports whether nothing waits.
func (w Waiting) IsZero() bool { return w.Since.IsZero() && w.Input == nil }

// MaxWaiting bounds the inputs of a [Waiting].
const MaxWaiting = 100

// unprocessed is the work of a run that no worker has done, derived from its history.
type unprocessed struct {
	since   time.Time
	signals []storedSignal
	// hasRecorded means that the run processes its signals in every workflow task. Before it records its
	// first events, it restores its session, which may take several tasks.
	hasRecorded bool
	started     int64 // entry that started the newest completed task
	isChanged   bool
}

type storedSignal struct {
	entry    int64
	at       time.Time
	payloads *commonpb.Payloads
}

func (u *unprocessed) isEmpty() bool { return u.since.IsZero() && len(u.signals) == 0 }

// apply folds a history entry, and the events that it records.
func (u *unprocessed) apply(h *historypb.HistoryEvent, events []event.Event) {
	was := len(u.signals)
	since := u.since
	switch {
	case h.GetWorkflowExecutionStartedEventAttributes() != nil:
		*u = unprocessed{hasRecorded: h.GetWorkflowExecutionStartedEventAttributes().GetContinuedExecutionRunId() != "", isChanged: true}
	case h.GetWorkflowExecutionSignaledEventAttributes().GetSignalName() == wire.SignalEvent:
		u.signals = append(u.signals[max(0, len(u.signals)+1-MaxWaiting):], storedSignal{
			h.GetEventId(), h.GetEventTime().AsTime(), h.GetWorkflowExecutionSignaledEventAttributes().GetInput(),
		})
		u.isChanged = true
	case h.GetWorkflowTaskScheduledEventAttributes() != nil && since.IsZero():
		u.since = h.GetEventTime().AsTime()
	case h.GetWorkflowTaskCompletedEventAttributes() != nil:
		u.since, u.started = time.Time{}, h.GetWorkflowTaskCompletedEventAttributes().GetStartedEventId()
	case isClosing(h):
		u.since, u.signals = time.Time{}, nil
	}
	if u.hasRecorded = u.hasRecorded || len(events) > 0; u.hasRecorded {
		u.signals = slices.DeleteFunc(u.signals, func(s storedSignal) bool { return s.entry < u.started })
	}
	u.isChanged = u.isChanged || len(u.signals) != was || !u.since.Equal(since)
}

func isClosing(h *historypb.HistoryEvent) bool {
	return h.GetWorkflowExecutionCompletedEventAttributes() != nil || h.GetWorkflowExecutionFailedEventAttributes() != nil ||
		h.GetWorkflowExecutionTerminatedEventAttributes() != nil || h.GetWorkflowExecutionCanceledEventAttributes() != nil ||
		h.GetWorkflowExecutionTimedOutEventAttributes() != nil || h.GetWorkflowExecutionContinuedAsNewEventAttributes() != nil
}

// report calls waiting if the work has changed since the last call.
func (u *unprocessed) report(l *Log, waiting func(Waiting)) {
	if waiting == nil || !u.isChanged {
		return
	}
	u.isChanged = false
	w := Waiting{Since: u.since}
	if signals := slices.Clone(u.signals); len(signals) > 0 {
		w.Input = func(ctx context.Context) (events []event.Event, err error) {
			for _, s := range signals {
				input, err := l.input(ctx, s)
				if err != nil {
					return nil, err
				}
				events = append(events, input...)
			}
			return events, nil
		}
	}
	waiting(w)
}

func (l *Log) input(ctx context.Context, s storedSignal) ([]event.Event, error) {
	payloads := s.payloads
	if l.archive != nil {
		var err error
		if payloads, err = l.archive.Store().Inline(ctx, payloads); err != nil {
			return nil, err
		}
	}
	var all []event.Event
	for _, p := range payloads.GetPayloads() {
		events, err := event.DecodeInput(p.GetData())
		if err != nil {
			continue // a worker will reject it, or has a blob store that this client lacks
		}
		for _, e := range events {
			e.Timestamp = s.at
			all = append(all, e)
		}
	}
	return all, nil
}
