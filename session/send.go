package session

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// Send delivers events as one input, which is taken or refused as a whole, and
// creates the context or its next session when there is none. Events that could
// not be taken by any context are refused here, as *event.FieldError. When Send
// returns nil, Temporal has stored the input. Each event is given a
// ClientEventID, unless it has one; they are returned in order.
func (c *Context) Send(ctx context.Context, events ...event.Event) (clientEventIDs []string, err error) {
	clientEventIDs, _, err = c.send(ctx, events)
	return clientEventIDs, err
}

// send is Send; runID is the run that took the events.
func (c *Context) send(ctx context.Context, events []event.Event) (clientEventIDs []string, runID string, err error) {
	if len(events) == 0 {
		return nil, "", &event.FieldError{Problem: "there is no event to send"}
	}
	if len(events) > event.MaxInputEvents {
		return nil, "", &event.FieldError{Problem: fmt.Sprintf("%d events, at most %d are one input", len(events), event.MaxInputEvents)}
	}
	events = slices.Clone(events)
	for i := range events {
		if events[i].ClientEventID == "" {
			events[i].ClientEventID = rand.Text()
		}
		if err := sendable(events[i]); err != nil {
			return nil, "", err
		}
		clientEventIDs = append(clientEventIDs, events[i].ClientEventID)
	}
	input, err := payload(events)
	if err != nil {
		return nil, "", err
	}
	id := wire.WorkflowID(c.name)
	run, err := c.client.options.Temporal.SignalWithStartWorkflow(ctx, id, wire.SignalEvent, input,
		client.StartWorkflowOptions{ID: id, TaskQueue: c.client.options.TaskQueue}, wire.WorkflowType)
	if err != nil {
		return nil, "", c.explain(ctx, "send to", err, ErrUnreachable)
	}
	return clientEventIDs, run.GetRunID(), nil
}

// payload is the JSON of an input.
func payload(events []event.Event) (converter.RawValue, error) {
	var value any = events
	if len(events) == 1 {
		value = events[0]
	}
	input, err := wire.JSON(value)
	if size := len(input.Payload().GetData()); err == nil && size > wire.MaxInputBytes {
		return input, &event.FieldError{Problem: fmt.Sprintf(
			"%d bytes of JSON in one input, at most %d can be sent at once: send the events one by one", size, wire.MaxInputBytes)}
	}
	return input, err
}

// sendable refuses what no context could take.
func sendable(e event.Event) error {
	if err := e.Validate(); err != nil {
		return err
	}
	if !e.Tag().IsInput() {
		return &event.FieldError{Tag: e.Tag(), Field: "_tag", Problem: "is written by the session itself and cannot be sent"}
	}
	data, err := e.MarshalJSON()
	if err != nil {
		return err
	}
	if len(data) > wire.MaxEventBytes {
		return &event.FieldError{Tag: e.Tag(), Problem: fmt.Sprintf(
			"%d bytes of JSON, at most %d can be recorded", len(data), wire.MaxEventBytes)}
	}
	return nil
}
