package workflows

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// decode returns the reducer input of a signal. Malformed signals become [reducer.Malformed].
func decode(s signal, now time.Time) reducer.Input {
	if s.append != nil {
		return reducer.Received{At: now, Events: s.append.events}
	}
	data, err := s.body()
	switch s.name {
	case wire.SignalEvent:
		var events []event.Event
		if err == nil {
			events, err = decodeEvents(data)
		}
		if err != nil {
			input := malformed(now, s, data, err)
			if len(events) > 0 {
				input.ClientEventID = events[0].ClientEventID
			}
			return input
		}
		return reducer.Received{At: now, Events: events}
	case wire.SignalInterrupt:
		return reducer.InterruptAsked{At: now}
	case wire.SignalClose:
		in := decodeClose(s)
		return reducer.CloseAsked{At: now, Reason: event.Redact(in.Reason, 200), InactiveSince: in.InactiveSince}
	default:
		return malformed(now, s, data, fmt.Errorf("want one of %s", strings.Join([]string{
			wire.SignalEvent, wire.SignalInterrupt, wire.SignalClose}, ", ")))
	}
}

// decodeClose returns no error: a malformed reason does not prevent closing.
func decodeClose(s signal) (in wire.Close) {
	data, _ := s.body()
	_ = json.Unmarshal(data, &in)
	return in
}

// decodeEvents returns oversized events together with the error.
func decodeEvents(data []byte) ([]event.Event, error) {
	events, err := event.DecodeInput(data)
	if err == nil {
		err = fits(events, data)
	}
	return events, err
}

func malformed(now time.Time, s signal, data []byte, err error) reducer.Malformed {
	return reducer.Malformed{
		At:     now,
		Reason: event.Redact(fmt.Sprintf("signal %s: %v", s.name, err), 1000),
		Input:  event.Redact(string(data), event.MaxRejectedInput),
	}
}

func (s signal) body() ([]byte, error) {
	if s.problem != nil {
		return s.payloads.GetPayloads()[0].GetData(), s.problem
	}
	if s.loaded != nil {
		return body(s.loaded)
	}
	return body(s.payloads)
}

// body returns the JSON of a signal. Several payloads form an array. Nil: no payload.
func body(payloads *commonpb.Payloads) ([]byte, error) {
	var parts [][]byte
	for _, p := range payloads.GetPayloads() {
		switch encoding := string(p.GetMetadata()[converter.MetadataEncoding]); encoding {
		case converter.MetadataEncodingJSON, converter.MetadataEncodingProtoJSON:
			parts = append(parts, p.GetData())
		case converter.MetadataEncodingNil:
		default:
			return p.GetData(), fmt.Errorf("want JSON (encoding %s), got encoding %q", converter.MetadataEncodingJSON, encoding)
		}
	}
	switch len(parts) {
	case 0:
		return nil, nil
	case 1:
		return parts[0], nil
	}
	for i, part := range parts {
		if !json.Valid(part) {
			return part, fmt.Errorf("input %d of %d is not JSON", i+1, len(parts))
		}
	}
	return slices.Concat([]byte("["), bytes.Join(parts, []byte(",")), []byte("]")), nil
}

// maxGrowth bounds how many times longer the JSON of an event is than its input: each byte becomes six at most, and
// some bytes are those of fields that the input omits.
const maxGrowth = 8

// fits returns an error if an event of an input is too large to be recorded. It encodes only what may be.
func fits(events []event.Event, input []byte) error {
	if len(input) < wire.MaxStoredBytes/maxGrowth {
		return nil
	}
	for _, e := range events {
		data, err := e.MarshalJSON()
		if err != nil {
			return err
		}
		if len(data) > wire.MaxStoredBytes {
			return fmt.Errorf("%s: %d bytes of JSON, at most %d can be recorded", e.Tag(), len(data), wire.MaxStoredBytes)
		}
	}
	return nil
}
