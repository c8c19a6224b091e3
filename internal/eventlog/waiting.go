package eventlog

import (
	"context"
	"slices"
	"sync"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/proto"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/references"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// Waiting is the work of a context that the server holds for a worker. Zero: none.
type Waiting struct {
	// Since is when the server scheduled the workflow task that no worker has completed; zero: there is none.
	Since time.Time
	// Input returns the newest events that no worker has recorded, oldest first, at most [MaxWaiting] of 1 MiB. Those of a
	// run that was terminated wait for the next run. Their
	// Timestamp is when the server stored them. It omits malformed input. Input in the blob store that is
	// unreadable, or larger than the rest of the 1 MiB, is a note. Nil: all input is recorded.
	Input func(ctx context.Context) []event.Event
}

// IsZero reports whether nothing waits.
func (w Waiting) IsZero() bool { return w.Since.IsZero() && w.Input == nil }

const (
	// MaxWaiting bounds the inputs and the events of a [Waiting].
	MaxWaiting      = 100
	maxWaitingBytes = 1 << 20
)

// unprocessed is the work of a run that no worker has done, derived from its history.
type unprocessed struct {
	since time.Time
	// signals are in the order of the inbox, in which the run processes them.
	signals []storedSignal
	unread  int   // number of references among older signals that are not in signals
	loading int64 // entry that scheduled the running Load activity; 0: none
	// hasRecorded means that the run processes its signals in every workflow task. Before it records its
	// first events, it restores its session, which may take several tasks. A full task leaves signals to the next
	// one, which its timer starts at once; the history does not show which.
	hasRecorded bool
	started     int64 // entry that started the newest completed task
	isChanged   bool
	inputs      *inputs
}

// storedSignal is available to a workflow task that starts after entry. A reference is not, until Load has read it.
type storedSignal struct {
	id, entry   int64
	at          time.Time
	payloads    *commonpb.Payloads
	isReference bool
}

func (u *unprocessed) hasInput() bool { return len(u.signals) > 0 || u.unread > 0 }

// apply folds a history entry, and the events that it records.
func (u *unprocessed) apply(h *historypb.HistoryEvent, events []event.Event) {
	was := len(u.signals)
	since := u.since
	switch {
	case h.GetWorkflowExecutionStartedEventAttributes() != nil:
		*u = unprocessed{hasRecorded: h.GetWorkflowExecutionStartedEventAttributes().GetContinuedExecutionRunId() != "", isChanged: true}
	case h.GetWorkflowExecutionSignaledEventAttributes().GetSignalName() == wire.SignalEvent:
		u.add(h)
	case h.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName() == wire.ActivityLoad:
		u.loading = h.GetEventId()
	case u.loading > 0 && activityEnd(h) == u.loading:
		u.loaded(h.GetEventId())
	case h.GetWorkflowTaskScheduledEventAttributes() != nil && since.IsZero():
		u.since = h.GetEventTime().AsTime()
	case h.GetWorkflowTaskCompletedEventAttributes() != nil:
		u.since, u.started = time.Time{}, h.GetWorkflowTaskCompletedEventAttributes().GetStartedEventId()
	case isEnd(h):
		u.since, u.signals, u.unread = time.Time{}, nil, 0
	case isTermination(h):
		u.since = time.Time{} // the next run records the input
	}
	if u.hasRecorded = u.hasRecorded || len(events) > 0; u.hasRecorded && u.unread == 0 {
		for len(u.signals) > 0 && !u.signals[0].isReference && u.signals[0].entry < u.started {
			u.signals = u.signals[1:]
		}
	}
	u.isChanged = u.isChanged || len(u.signals) != was || !u.since.Equal(since)
}

// add appends a signal, and drops the oldest ones above the limits.
func (u *unprocessed) add(h *historypb.HistoryEvent) {
	payloads := h.GetWorkflowExecutionSignaledEventAttributes().GetInput()
	if all := payloads.GetPayloads(); len(all) == 1 && references.IsInert(all[0]) { // by the connection of a worker
		payloads = &commonpb.Payloads{Payloads: []*commonpb.Payload{references.Active(all[0].GetData())}}
	}
	u.signals = append(u.signals, storedSignal{
		h.GetEventId(), h.GetEventId(), h.GetEventTime().AsTime(), payloads,
		len(payloads.GetPayloads()) == 1 && references.Is(payloads.GetPayloads()[0]), // a worker rejects a reference among others
	})
	u.isChanged = true
	size := 0
	for i := len(u.signals) - 1; i >= 0; i-- {
		if size += proto.Size(u.signals[i].payloads); i == len(u.signals)-1 || size <= maxWaitingBytes && len(u.signals)-i <= MaxWaiting {
			continue
		}
		for _, dropped := range u.signals[:i+1] {
			if dropped.isReference {
				u.unread++
			}
		}
		u.signals = slices.Clone(u.signals[i+1:])
		return
	}
}

// loaded folds the end of Load, which reads the oldest reference.
func (u *unprocessed) loaded(entry int64) {
	u.loading = 0
	if u.unread > 0 {
		u.unread--
		return
	}
	if i := slices.IndexFunc(u.signals, func(s storedSignal) bool { return s.isReference }); i >= 0 {
		u.signals[i].isReference, u.signals[i].entry = false, entry
	}
}

// activityEnd returns the entry that scheduled the activity which an entry ends; 0: none.
func activityEnd(h *historypb.HistoryEvent) int64 {
	return h.GetActivityTaskCompletedEventAttributes().GetScheduledEventId() + h.GetActivityTaskFailedEventAttributes().GetScheduledEventId() +
		h.GetActivityTaskTimedOutEventAttributes().GetScheduledEventId() + h.GetActivityTaskCanceledEventAttributes().GetScheduledEventId()
}

func isEnd(h *historypb.HistoryEvent) bool {
	return h.GetWorkflowExecutionCompletedEventAttributes() != nil || h.GetWorkflowExecutionContinuedAsNewEventAttributes() != nil
}

// isTermination reports whether a run ends without its worker.
func isTermination(h *historypb.HistoryEvent) bool {
	return h.GetWorkflowExecutionTerminatedEventAttributes() != nil || h.GetWorkflowExecutionTimedOutEventAttributes() != nil ||
		h.GetWorkflowExecutionFailedEventAttributes() != nil || h.GetWorkflowExecutionCanceledEventAttributes() != nil
}

// report calls waiting if the work has changed since the last call.
func (u *unprocessed) report(blobs *archive.Blobs, waiting func(Waiting)) {
	if waiting == nil || !u.isChanged {
		return
	}
	u.isChanged = false
	if u.inputs == nil {
		u.inputs = &inputs{blobs: blobs}
	}
	w := Waiting{Since: u.since}
	if in, signals := u.inputs, slices.Clone(u.signals); len(signals) > 0 {
		w.Input = func(ctx context.Context) []event.Event { return in.events(ctx, signals) }
	}
	waiting(w)
}

// inputs reads the signals of a run, each once.
type inputs struct {
	blobs *archive.Blobs // of the context; nil: none
	mu    sync.Mutex
	// read has the signals that the newest call returned completely.
	read map[int64]input
}

type input struct {
	events      []event.Event
	bytes       int
	isTruncated bool // it has a note for a reference
}

func (in *inputs) events(ctx context.Context, signals []storedSignal) (all []event.Event) {
	in.mu.Lock()
	defer in.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, inputTimeout)
	defer cancel()
	read, size := map[int64]input{}, 0
	for _, s := range slices.Backward(signals) {
		if len(all) >= MaxWaiting {
			break
		}
		one, isKnown := in.read[s.id]
		if !isKnown || size+one.bytes > maxWaitingBytes {
			one = in.input(ctx, s, maxWaitingBytes-size)
		}
		if !one.isTruncated {
			read[s.id] = one
		}
		size += one.bytes
		all = append(slices.Clone(one.events), all...)
	}
	in.read = read
	return all[max(0, len(all)-MaxWaiting):]
}

// input reads a signal of which at most limit bytes are in the blob store.
func (in *inputs) input(ctx context.Context, s storedSignal, limit int) (all input) {
	for _, p := range s.payloads.GetPayloads() {
		var events []event.Event
		if references.Is(p) {
			p = in.referred(ctx, p, limit-all.bytes)
		}
		if p == nil {
			all.isTruncated = true
			events = []event.Event{event.New(event.Note{Kind: event.NoteSystem, Content: "Large input. It is shown when a worker has recorded it."})}
		} else if events, _ = event.DecodeInput(p.GetData()); len(events) == 0 {
			continue // a worker will reject it
		}
		all.bytes += len(p.GetData())
		for _, e := range events[max(0, len(events)-MaxWaiting):] {
			e.Timestamp = s.at
			all.events = append(all.events, e)
		}
	}
	return all
}

// referred returns nil for a payload that cannot be read.
func (in *inputs) referred(ctx context.Context, reference *commonpb.Payload, limit int) *commonpb.Payload {
	if in.blobs == nil || limit <= 0 {
		return nil
	}
	payload, err := in.blobs.Payload(ctx, reference, int64(limit))
	if err != nil {
		return nil
	}
	return payload
}

const inputTimeout = 5 * time.Second // for all input
