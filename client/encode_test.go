package client_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	sdkclient "go.temporal.io/sdk/client"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs/blobstest"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// counted counts how often it is encoded.
type counted struct {
	event.UserMessage
	encodings *int
}

func (c counted) MarshalJSON() ([]byte, error) {
	*c.encodings++
	return json.Marshal(c.UserMessage)
}

func TestSendEncodesEachEventOnce(t *testing.T) {
	store := archive.New(blobstest.New(t).Store)
	for name, test := range map[string]struct {
		temporal *temporal
		size     int // of the content in bytes
		events   int
	}{
		"one event by update":                   {&temporal{update: appends}, 10, 1},
		"several events by update":              {&temporal{update: appends}, 10, 3},
		"an update that falls back to a signal": {&temporal{}, 10, 3},
		"a large event by signal":               {&temporal{}, wire.MaxAppendBytes, 1},
		"several large events by signal":        {&temporal{}, wire.MaxAppendBytes, 3},
	} {
		t.Run(name, func(t *testing.T) {
			encodings := 0
			var events []event.Event
			for range test.events {
				events = append(events, event.New(counted{event.UserMessage{Content: strings.Repeat("x", test.size)}, &encodings}))
			}
			_, err := archived(t, test.temporal, store, "demo").Send(t.Context(), events...)
			require.NoError(t, err)
			require.Positive(t, len(test.temporal.updates)+len(test.temporal.signals))
			require.Equal(t, test.events, encodings)
		})
	}
}

func TestTheInputIsTheJSONOfItsEvents(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var events []event.Event
		for i, body := range rapid.SliceOfN(eventtest.InputBody(), 1, 5).Draw(r, "bodies") {
			e := event.New(body)
			e.ClientEventID = id(i + 1)
			e.Extra = map[string]json.RawMessage{"unknown": eventtest.Value().Draw(r, "extra")}
			if e.ValidateInput() != nil {
				e.Extra = nil // settings have no unknown fields
			}
			events = append(events, e)
		}
		f := &temporal{update: func(sdkclient.UpdateWorkflowOptions) (wire.Appended, error) { return wire.Appended{}, nil }}
		c, err := client.New(client.Options{Temporal: f}).Open("demo")
		require.NoError(r, err)
		_, err = c.Send(t.Context(), events...)
		require.NoError(r, err)
		var value any = events
		if len(events) == 1 {
			value = events[0]
		}
		want, err := wire.JSON(value)
		require.NoError(r, err)
		require.Equal(r, string(want.Payload().GetData()), dataOf(t, f.updates[0].Args))
	})
}
