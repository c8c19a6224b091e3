package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	sdkclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/eventlog"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// workerPatience is how long Send waits for a worker to take what is sent,
// before it lets Temporal store it for one.
const workerPatience = 2 * time.Second

// Receipt says what has become of events that were sent, in their order.
type Receipt struct {
	// ClientEventIDs are the ids that the events were sent with. Events with
	// the same ones may be sent again, and are in the log once.
	ClientEventIDs []string `json:"clientEventIds"`
	// EventIDs are their ids in the log; nil when no worker has answered, or when
	// the events are longer than wire.MaxAppendBytes: Temporal has stored them
	// then, and a worker will record them.
	EventIDs []string `json:"eventIds,omitempty"`
	// RefusalID is the id of the InputRejectedEvent when the error is ErrRefused.
	RefusalID string `json:"refusalId,omitempty"`
}

// Send delivers events as one input, which is taken or refused as a whole, and
// creates the context or its next session when there is none. When Send returns
// nil, nothing but a termination by hand can lose the input.
//
// Each event is given a ClientEventID, unless it has one. To send events again
// with the same ids, because nobody knows what became of them, is harmless: the
// context takes each once, among its newest thousand. Of events of one input, those
// with the same id have to be the same.
//
// A file of some length goes into the blob store, if the client has one, and the
// event refers to it.
//
// The error is a *event.FieldError for events that no context could take,
// ErrRefused when the context does not take them now, which its log tells too,
// and ErrFull when no worker runs and the history has no room for more. After
// ErrFull a worker that starts may still record the events, so send them again
// with the ids of the receipt.
func (c *Context) Send(ctx context.Context, events ...event.Event) (Receipt, error) {
	defer c.client.wakes.wake(c.name)
	if len(events) == 0 {
		return Receipt{}, &event.FieldError{Problem: "there is no event to send"}
	}
	if len(events) > event.MaxInputEvents {
		return Receipt{}, &event.FieldError{Problem: fmt.Sprintf("%d events, at most %d are one input", len(events), event.MaxInputEvents)}
	}
	if err := c.checkStore(ctx, "send to"); err != nil {
		return Receipt{}, err
	}
	var sent Receipt
	events, err := c.client.shelve(ctx, events)
	if err != nil {
		return Receipt{}, err
	}
	byID := map[string][]byte{} // their JSON
	for i := range events {
		id := cmp.Or(events[i].ClientEventID, rand.Text())
		events[i].ClientEventID = id
		data, err := c.sendable(events[i])
		if err != nil {
			return Receipt{}, err
		}
		// The context would take the first one for both.
		if other, ok := byID[id]; ok && !bytes.Equal(data, other) {
			return Receipt{}, &event.FieldError{Tag: events[i].Tag(), Field: "clientEventId",
				Problem: fmt.Sprintf("event %d of %d has that of another event before it: give each its own", i+1, len(events))}
		}
		byID[id] = data
		sent.ClientEventIDs = append(sent.ClientEventIDs, id)
	}
	input, err := c.payload(events)
	if err != nil {
		return Receipt{}, err
	}
	if len(input.Payload().GetData()) > wire.MaxAppendBytes {
		err = c.store(ctx, input)
		return sent, c.explain(ctx, "send to", err, ErrUnreachable)
	}
	appending, cancel := context.WithTimeout(ctx, workerPatience)
	defer cancel()
	sent.EventIDs, err = c.append(appending, input)
	var refused *refusal
	if errors.As(err, &refused) {
		sent.RefusalID = refused.eventID
	}
	if errors.As(err, new(*event.FieldError)) {
		return Receipt{}, err
	}
	if err == nil || errors.Is(err, ErrRefused) || ctx.Err() != nil {
		return sent, c.explain(ctx, "send to", err, ErrUnreachable)
	}
	// No worker, one of an earlier version, more updates than a run may have, a
	// run that ends just now: a signal waits for better times. What the update
	// may still come to is recorded once.
	err = c.store(ctx, input)
	return sent, c.explain(ctx, "send to", err, ErrUnreachable)
}

// append has a worker take the input and returns the ids in the log.
func (c *Context) append(ctx context.Context, input converter.RawValue) ([]string, error) {
	t, options := c.client.options.Temporal, c.startOptions(c.storeID(ctx))
	options.WorkflowIDConflictPolicy = enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING
	handle, err := t.UpdateWithStartWorkflow(ctx, sdkclient.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: t.NewWithStartWorkflowOperation(options, wire.WorkflowType),
		UpdateOptions: sdkclient.UpdateWorkflowOptions{
			// Not the id of the events: refused ones may be sent again.
			UpdateID: rand.Text(), WorkflowID: options.ID, UpdateName: wire.UpdateAppend, Args: []any{input},
			WaitForStage: sdkclient.WorkflowUpdateStageCompleted,
		},
	})
	if err != nil {
		return nil, err
	}
	var appended wire.Appended
	if err = handle.Get(ctx, &appended); err == nil {
		c.client.stores.opened(c.name)
	}
	var failure *temporal.ApplicationError
	if errors.As(err, &failure) {
		switch failure.Type() {
		case wire.ErrorRefused:
			refused := &refusal{reason: failure.Message()}
			_ = failure.Details(&refused.eventID) // there are none of a worker of an earlier version
			return nil, refused
		case wire.ErrorInvalid:
			return nil, &event.FieldError{Problem: failure.Message()}
		}
	}
	return appended.EventIDs, err
}

// refusal is ErrRefused with the event that says so.
type refusal struct{ reason, eventID string }

func (r *refusal) Error() string { return fmt.Sprintf("%v: %s", ErrRefused, r.reason) }
func (*refusal) Unwrap() error   { return ErrRefused }

// Is makes it an ErrKeyReused, too.
func (r *refusal) Is(target error) bool { return target == ErrKeyReused && r.reason == event.KeyReused }

// store has Temporal keep the input until a worker takes it, if the history has
// room for it.
func (c *Context) store(ctx context.Context, input converter.RawValue) error {
	if err := c.checkRoom(ctx, bytesInHistory(len(input.Payload().GetData()))); err != nil {
		return err
	}
	_, err := c.client.options.Temporal.SignalWithStartWorkflow(ctx, wire.WorkflowID(c.name), wire.SignalEvent, input,
		c.startOptions(c.storeID(ctx)), wire.WorkflowType)
	if isSignalLimit(err) {
		return &fullError{fmt.Sprintf("%s of %[1]s signals", thousands(maxSignals))}
	}
	return err
}

// payload is the JSON of an input.
func (c *Context) payload(events []event.Event) (converter.RawValue, error) {
	var value any = events
	if len(events) == 1 {
		value = events[0]
	}
	input, err := wire.JSON(value)
	if err != nil {
		return input, err
	}
	if problem := c.tooLong(len(input.Payload().GetData()), "one input", "can be sent at once: send the events one by one"); problem != "" {
		return input, &event.FieldError{Problem: problem}
	}
	return input, nil
}

// sendable is the JSON of an event. It refuses what no context could take.
func (c *Context) sendable(e event.Event) ([]byte, error) {
	if err := e.Validate(); err != nil {
		return nil, err
	}
	if !e.Tag().IsInput() {
		return nil, &event.FieldError{Tag: e.Tag(), Field: "_tag", Problem: "reserved for the session (clients cannot send it)"}
	}
	data, err := e.MarshalJSON()
	if err != nil {
		return nil, err
	}
	if problem := c.tooLong(len(data), "one event", "can be recorded"); problem != "" {
		return nil, &event.FieldError{Tag: e.Tag(), Problem: problem}
	}
	return data, nil
}

// tooLong says why JSON of a size cannot be sent; "" when it can. Without a blob
// store it has to fit into the history, where a run without a worker gathers it.
func (c *Context) tooLong(size int, where, what string) string {
	if c.client.options.Archive == nil && size > wire.MaxAppendBytes {
		return fmt.Sprintf("%d bytes of JSON in %s, at most %d can be sent without a blob store (%s)",
			size, where, wire.MaxAppendBytes, eventlog.StoreAdvice)
	}
	if size > wire.MaxStoredBytes {
		return fmt.Sprintf("%d bytes of JSON in %s, at most %d %s", size, where, wire.MaxStoredBytes, what)
	}
	return ""
}
