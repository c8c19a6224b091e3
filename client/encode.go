package client

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"fmt"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/schema"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// encode encodes each event once: the bytes whose size is checked are the bytes that are sent.
func (c *Context) encode(events []event.Event) (clientEventIDs []string, input []byte, err error) {
	byID := map[string][]byte{}
	parts := make([][]byte, len(events))
	for i, e := range events {
		e.ClientEventID = cmp.Or(e.ClientEventID, rand.Text())
		if parts[i], err = c.encodeEvent(e); err != nil {
			return nil, nil, err
		}
		// The context would record only the first one.
		if other, ok := byID[e.ClientEventID]; ok && !bytes.Equal(parts[i], other) {
			return nil, nil, &event.FieldError{Tag: e.Tag(), Field: "clientEventId",
				Problem: fmt.Sprintf("event %d of %d has the id of another event (assign unique ids)", i+1, len(events))}
		}
		byID[e.ClientEventID] = parts[i]
		clientEventIDs = append(clientEventIDs, e.ClientEventID)
	}
	if len(parts) == 1 {
		return clientEventIDs, parts[0], nil
	}
	size := len(parts) + len("[]") - len(",")
	for _, part := range parts {
		size += len(part)
	}
	if problem := c.tooLarge(size, "input", "; send the events one by one"); problem != "" {
		return nil, nil, &event.FieldError{Problem: problem}
	}
	input = append(make([]byte, 0, size), '[')
	for i, part := range parts {
		if i > 0 {
			input = append(input, ',')
		}
		input = append(input, part...)
	}
	return clientEventIDs, append(input, ']'), nil
}

// Validate returns a *event.FieldError for an event that [Context.Send] rejects, except for its size.
func Validate(e event.Event) error {
	if err := e.ValidateInput(); err != nil {
		return err
	}
	return checkSchemas(e)
}

func (c *Context) encodeEvent(e event.Event) ([]byte, error) {
	if err := Validate(e); err != nil {
		return nil, err
	}
	data, err := e.MarshalJSON()
	if err != nil {
		return nil, err
	}
	if problem := c.tooLarge(len(data), "event", ""); problem != "" {
		return nil, &event.FieldError{Tag: e.Tag(), Problem: problem}
	}
	return data, nil
}

// checkSchemas rejects invalid JSON Schemas, which would fail every request.
func checkSchemas(e event.Event) error {
	switch body := e.Body.(type) {
	case event.SetRequestSettings:
		return checkFormat(e, "", body.ResponseFormat)
	case event.UserMessage:
		if body.Settings != nil {
			return checkFormat(e, "settings.", body.Settings.ResponseFormat)
		}
	case event.AnswerRequested:
		if body.Settings != nil {
			return checkFormat(e, "settings.", body.Settings.ResponseFormat)
		}
	case event.SetTools:
		for i, t := range body.Tools {
			if err := checkSchema(e, fmt.Sprintf("tools.%d.parameters", i), t.Parameters); err != nil {
				return err
			}
		}
		for i, rule := range body.Approve {
			if err := checkSchema(e, fmt.Sprintf("approve.%d.when", i), rule.When); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkFormat(e event.Event, prefix string, format *event.ResponseFormat) error {
	if format == nil {
		return nil
	}
	return checkSchema(e, prefix+"responseFormat.schema", format.Schema)
}

// checkSchema accepts nil, which is no schema.
func checkSchema(e event.Event, field string, source event.Object) error {
	if source == nil {
		return nil
	}
	if _, err := schema.Compile(source); err != nil {
		return &event.FieldError{Tag: e.Tag(), Field: field, Problem: "invalid JSON Schema: " + event.Redact(err.Error(), 300)}
	}
	return nil
}

// maxInputWithoutStore bounds the JSON of an input. The record of a larger one, with a few more fields,
// would go to the store of the workers, where a client without a store could not read the turn.
const maxInputWithoutStore = blobs.PayloadThreshold - 4<<10

func (c *Context) tooLarge(size int, object, advice string) string {
	switch {
	case c.client.options.Archive == nil && size > maxInputWithoutStore:
		return fmt.Sprintf("the %s has %d bytes of JSON (at most %d without a blob store; %s)",
			object, size, maxInputWithoutStore, eventlog.StoreAdvice)
	case size > wire.MaxStoredBytes:
		return fmt.Sprintf("the %s has %d bytes of JSON (at most %d%s)", object, size, wire.MaxStoredBytes, advice)
	}
	return ""
}
