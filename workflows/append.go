package workflows

import (
	"fmt"
	"slices"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// The update "append" delivers what the signal "event" does, through the same
// inbox, and waits for what becomes of it. To the server it is the cheaper of
// the two: the workflow task that takes an update is stored only when it is
// over, with all that it did, and needs no queue on disk on its way.

// appending is an update under way.
type appending struct {
	events     []event.Event
	size       int // of the input, in bytes
	isRecorded bool
	// known are the ids of events that were in the log before, by their
	// ClientEventIDs.
	known map[string]string
	// result or err is the answer once the events are recorded.
	result wire.Appended
	err    error
}

// append is the handler of the update.
func (r *run) append(ctx workflow.Context, in converter.RawValue) (wire.Appended, error) {
	events, err := appendedEvents(in, workflow.GetCurrentUpdateInfo(ctx).ID)
	if err != nil {
		return wire.Appended{}, err // not if the validator of this code was asked
	}
	a := &appending{events: events, size: proto.Size(in.Payload())}
	r.inbox.updated++
	r.inbox.put(signal{name: wire.SignalEvent, append: a})
	// Never an error: the context of a handler is not cancelled.
	_ = workflow.Await(ctx, func() bool { return a.isRecorded })
	r.unanswered--
	return a.result, a.err
}

// validateAppend rejects invalid events.
func (r *run) validateAppend(ctx workflow.Context, in converter.RawValue) error {
	_, err := appendedEvents(in, workflow.GetCurrentUpdateInfo(ctx).ID)
	return err
}

// appendedEvents are the events of an update. Each has a ClientEventID, by
// which it is found again; without one of its own it is made of the update's.
func appendedEvents(in converter.RawValue, updateID string) ([]event.Event, error) {
	data, err := body(&commonpb.Payloads{Payloads: slices.DeleteFunc(
		[]*commonpb.Payload{in.Payload()}, func(p *commonpb.Payload) bool { return p == nil })})
	var events []event.Event
	if err == nil && len(data) > wire.MaxAppendBytes {
		err = fmt.Errorf("%d bytes, at most %d are appended by an update: send the signal %s", len(data), wire.MaxAppendBytes, wire.SignalEvent)
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
			err = e.Validate() // an update's id may be longer
		}
	}
	if err != nil {
		return nil, answer(wire.ErrorInvalid, err.Error())
	}
	return events, nil
}

// answer is an error for whoever appends.
func answer(kind, reason string, details ...any) error {
	return temporal.NewNonRetryableApplicationError(event.Redact(reason, 1000), kind, nil, details...)
}

// payloads are the events as a signal brings them.
func (a *appending) payloads() *commonpb.Payloads {
	value, err := wire.JSON(a.events)
	if err != nil {
		panic(fmt.Sprintf("an event has no JSON: %v", err)) // it was checked
	}
	return &commonpb.Payloads{Payloads: []*commonpb.Payload{value.Payload()}}
}

// recall looks for events that came before, in the session that is about to take
// these: new ones may make it forget old ones. Of a signal there is nothing to
// look for.
func (a *appending) recall(session reducer.Session) {
	if a == nil {
		return
	}
	a.known = map[string]string{}
	for _, e := range a.events {
		if id, ok := session.Find(e.ClientEventID); ok {
			a.known[e.ClientEventID] = id
		}
	}
}

// settle finds the answer in the session that took the events and in what it
// is about to record.
func (a *appending) settle(session reducer.Session, recorded []event.Event) *appending {
	for _, e := range a.events {
		id, ok := a.known[e.ClientEventID]
		if !ok {
			id, ok = session.Find(e.ClientEventID)
		}
		if ok {
			a.result.EventIDs = append(a.result.EventIDs, id)
			continue
		}
		a.result, a.err = wire.Appended{}, refusal(recorded, a.events)
		break
	}
	return a
}

// refusal is the newest refusal of one of the events.
func refusal(recorded, events []event.Event) error {
	for _, e := range slices.Backward(recorded) {
		isOurs := func(other event.Event) bool { return other.ClientEventID == e.ClientEventID }
		if body, ok := e.Body.(event.InputRejected); ok && slices.ContainsFunc(events, isOurs) {
			return answer(wire.ErrorRefused, body.Reason, e.ID)
		}
	}
	return answer(wire.ErrorRefused, "the session did not take it")
}
