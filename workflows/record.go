package workflows

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

type pendingEvent struct {
	event.Event
	json  []byte
	trace string // traceparent of the input that caused the event, for the log; empty: none
	turn  string // traceparent of the turn of its request; empty: none, or the turn begins with it
}

func newPendingEvent(e event.Event) pendingEvent {
	data, err := e.MarshalJSON()
	if err != nil {
		panic(fmt.Sprintf("an event has no JSON: %v", err)) // it was validated on receipt
	}
	return pendingEvent{Event: e, json: data}
}

// size is exact, in bytes: the server would reject a record that is too large, which would block the
// context. Estimates are wrong for control characters and for many small events.
func (p pendingEvent) size() int { return len(p.json) + len(",") }

// record writes events to SideEffect markers, each of which contains a [wire.Record]. It calls
// register before each marker, with the counter of the newest recorded event. The last marker contains taken.
func record(ctx workflow.Context, events []pendingEvent, taken *wire.Taken, register func(after int)) {
	for len(events) > 0 {
		register(event.Counter(events[0].ID) - 1)
		n := fitting(events)
		if n == len(events) {
			recordOne(ctx, events, taken)
		} else {
			recordOne(ctx, events[:n], nil)
		}
		events = events[n:]
	}
}

func recordOne(ctx workflow.Context, events []pendingEvent, taken *wire.Taken) {
	options := workflow.SideEffectOptions{Summary: summary(events)}
	value := workflow.SideEffectWithOptions(ctx, options, func(workflow.Context) any { return wire.Payload(recordJSON(events, taken)) })
	if !workflow.IsReplaying(ctx) {
		return
	}
	// The log is authoritative. On a mismatch, the task fails until a worker with matching code
	// takes it.
	var recorded wire.Record
	if err := value.Get(&recorded); err != nil {
		panic(fmt.Sprintf("the log cannot be read: %v", err))
	}
	if len(recorded.Events) != len(events) {
		panic(fmt.Sprintf("the log has %d events where this code makes %d"+wantMatchingCode, len(recorded.Events), len(events)))
	}
	for i, e := range recorded.Events {
		if e.ID != events[i].ID || e.Tag() != events[i].Tag() {
			panic(fmt.Sprintf("the log has %s %s where this code makes %s %s"+wantMatchingCode, e.Tag(), e.ID, events[i].Tag(), events[i].ID))
		}
	}
}

const wantMatchingCode = " (run a worker with the code that recorded the log)"

func recordJSON(events []pendingEvent, taken *wire.Taken) []byte {
	var data bytes.Buffer
	data.WriteString(`{"events":[`)
	for i, e := range events {
		if i > 0 {
			data.WriteByte(',')
		}
		data.Write(e.json)
	}
	data.WriteByte(']')
	if taken != nil {
		position, err := json.Marshal(taken)
		if err != nil {
			panic(fmt.Sprintf("encode a position: %v", err))
		}
		data.WriteString(`,"taken":`)
		data.Write(position)
	}
	data.WriteByte('}')
	return data.Bytes()
}

// task describes the current workflow task.
type task struct {
	length   int // of the history at the start of the task, in entries
	recorded int // bytes of events that the task recorded
	work     int // approximate time to fold the inputs of the task, in units of 3 µs
}

func (r *run) observeTask() {
	if length := workflow.GetInfo(r.ctx).GetCurrentHistoryLength(); length != r.task.length {
		r.task = task{length: length}
	}
}

func (r *run) isTaskFull() bool { return r.task.recorded >= maxTaskBytes || r.task.work >= maxTaskWork }

const (
	// A workflow task ends after maxTaskBytes of events, so that few signals arrive while it runs, and the server
	// accepts its completion, which has up to 4 MiB.
	maxTaskBytes = 2 << 20

	// An input that does not append, such as a system prompt, copies all messages, 3 µs for messagesPerWork of them. A
	// task folds about a second of such inputs.
	messagesPerWork = 64
	maxTaskWork     = 300_000
)

// endTask waits for the next workflow task. The timer starts one if no signal does.
func endTask(ctx workflow.Context) {
	info := workflow.GetInfo(ctx)
	length := info.GetCurrentHistoryLength()
	timer := workflow.NewTimer(ctx, time.Millisecond)
	_ = workflow.Await(ctx, func() bool { return timer.IsReady() || info.GetCurrentHistoryLength() != length })
}

func summary(events []pendingEvent) string {
	var names []string
	for _, e := range events {
		names = append(names, strings.TrimSuffix(string(e.Tag()), "Event"))
	}
	return cut(strings.Join(names, ", "), shownTags)
}

// fitting returns how many events fit into one record, at least one.
func fitting(events []pendingEvent) int {
	size := 0
	for i, e := range events {
		size += e.size()
		if i > 0 && size > wire.MaxRecordBytes {
			return i
		}
	}
	return len(events)
}
