package workflows

import (
	"fmt"
	"slices"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// pendingAppend is an update "append" that has not returned. The update delivers events like the
// signal "event", at a lower cost: the server persists only the completed workflow task.
type pendingAppend struct {
	events     []event.Event
	size       int // of the input, in bytes
	sent       wire.Sent
	isRecorded bool
	// isAbandoned: the handler returned before the events were recorded, because the workflow was cancelled.
	isAbandoned bool
	known       map[string]string // log ids of repeated events, by ClientEventID
	before      int               // number of events in the log before those of the update
	result      wire.Appended     // of the update; valid once isRecorded is true
	err         error
}

func (r *run) append(ctx workflow.Context, in converter.RawValue, sent wire.Sent) (wire.Appended, error) {
	events, err := appendedEvents(in, workflow.GetCurrentUpdateInfo(ctx).ID)
	if err != nil {
		return wire.Appended{}, err // possible only if another version validated the update
	}
	a := &pendingAppend{events: events, size: proto.Size(in.Payload()), sent: r.expiryOf(sent)}
	r.inbox.updated++
	r.inbox.put(signal{name: wire.SignalEvent, append: a, trace: received(ctx), origin: wire.Taken{Signals: r.inbox.signalled}})
	isRecorded := func() bool { return a.isRecorded }
	if workflow.Await(ctx, isRecorded) != nil && r.session.EventCount > 0 {
		// The workflow was cancelled, but still records its input, so the update waits for the ids.
		ctx, _ = workflow.NewDisconnectedContext(ctx)
		_ = workflow.Await(ctx, isRecorded)
	}
	if a.isRecorded {
		r.appends.unanswered--
	} else {
		a.isAbandoned = true
	}
	return a.result, a.err
}

// validateAppend rejects invalid events.
func (r *run) validateAppend(ctx workflow.Context, in converter.RawValue, sent wire.Sent) (err error) {
	if sent = r.expiryOf(sent); sent.IsExpired(r.now()) {
		return errExpired(sent)
	}
	_, err = appendedEvents(in, workflow.GetCurrentUpdateInfo(ctx).ID)
	return err
}

// expiryOf returns no expiry in a run that a reset created: there, Temporal delivers again what the previous run
// accepted, and no sender repeats it.
func (r *run) expiryOf(sent wire.Sent) wire.Sent {
	info := workflow.GetInfo(r.ctx)
	if info.OriginalRunID != "" && info.OriginalRunID != info.WorkflowExecution.RunID { // "": in the SDK's test environment
		return wire.Sent{}
	}
	return sent
}

// appendedEvents decodes the events of an update. A missing ClientEventID is derived from the
// update id.
func appendedEvents(in converter.RawValue, updateID string) ([]event.Event, error) {
	data, err := body(&commonpb.Payloads{Payloads: slices.DeleteFunc(
		[]*commonpb.Payload{in.Payload()}, func(p *commonpb.Payload) bool { return p == nil })})
	var events []event.Event
	if err == nil && len(data) > wire.MaxAppendBytes {
		err = fmt.Errorf("%d bytes (an update appends at most %d; send the signal %s)", len(data), wire.MaxAppendBytes, wire.SignalEvent)
	}
	if err == nil {
		events, err = decodeEvents(data)
	}
	for i := range events {
		e := &events[i]
		if e.ClientEventID == "" && i == 0 {
			e.ClientEventID = updateID
		} else if e.ClientEventID == "" {
			e.ClientEventID = fmt.Sprintf("%s/%d", updateID, i+1)
		}
		if err == nil {
			err = e.Validate() // the update id may be too long
		}
	}
	if err != nil {
		return nil, appendError(wire.ErrorInvalid, err.Error())
	}
	return events, nil
}

func appendError(kind, reason string, details ...any) error {
	return temporal.NewNonRetryableApplicationError(event.Redact(reason, 1000), kind, nil, details...)
}

func (a *pendingAppend) payloads() *commonpb.Payloads {
	value, err := wire.JSON(a.events)
	if err != nil {
		panic(fmt.Sprintf("encode event: %v", err)) // it was validated
	}
	return &commonpb.Payloads{Payloads: []*commonpb.Payload{value.Payload()}}
}

// findKnown finds the ids of repeated events. It runs before the step that applies the update, because
// that step may evict the ids. The receiver is nil for a signal.
func (a *pendingAppend) findKnown(session reducer.Session) {
	if a == nil {
		return
	}
	a.known, a.before = map[string]string{}, session.EventCount
	for _, e := range a.events {
		if id, ok := session.Find(e.ClientEventID); ok {
			a.known[e.ClientEventID] = id
		}
	}
}

// expire makes an expired update fail. The receiver is nil for a signal.
func (a *pendingAppend) expire(now time.Time) bool {
	if a == nil || !a.sent.IsExpired(now) {
		return false
	}
	a.err = errExpired(a.sent)
	return true
}

func errExpired(sent wire.Sent) error {
	return appendError(wire.ErrorExpired, fmt.Sprintf("the update expired at %s", sent.Expires.UTC().Format(time.RFC3339)))
}

// resolve sets the result to the log ids of the events. If the session rejected the events, it sets the
// error to the reason.
func (a *pendingAppend) resolve(session reducer.Session, recorded []pendingEvent) *pendingAppend {
	if a.err = a.rejection(recorded); a.err != nil { // the ids may be those of other events
		return a
	}
	for _, e := range a.events {
		id, ok := a.known[e.ClientEventID]
		if !ok {
			id, ok = session.Find(e.ClientEventID)
		}
		if ok {
			a.result.EventIDs = append(a.result.EventIDs, id)
			continue
		}
		a.result, a.err = wire.Appended{}, appendError(wire.ErrorRejected, "the context recorded neither the event nor a rejection")
		break
	}
	return a
}

// rejection returns the reason of the rejection of the events; nil without one.
func (a *pendingAppend) rejection(recorded []pendingEvent) error {
	for _, e := range slices.Backward(recorded) {
		isOurs := func(other event.Event) bool { return other.ClientEventID == e.ClientEventID }
		if body, ok := e.Body.(event.InputRejected); ok && event.Counter(e.ID) > a.before && slices.ContainsFunc(a.events, isOurs) {
			return appendError(wire.ErrorRejected, body.Reason, e.ID)
		}
	}
	return nil
}
