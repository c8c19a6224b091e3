package stream

import (
	"encoding/json"
	"fmt"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// message is the JSON of a delta, an [event.Event] with an empty envelope. Both ends know the
// type of the event; detecting it for each delta would take several times as long.
type message struct {
	Tag event.Tag `json:"_tag"`
	event.TextDelta
}

func encodeDelta(d event.TextDelta) ([]byte, error) {
	return json.Marshal(message{event.TagTextDelta, d})
}

func decodeDelta(data []byte) (event.TextDelta, error) {
	var m message
	if err := json.Unmarshal(data, &m); err != nil {
		return event.TextDelta{}, err
	}
	if m.Tag != event.TagTextDelta {
		return event.TextDelta{}, fmt.Errorf("want a %s, got a %q", event.TagTextDelta, m.Tag)
	}
	return m.TextDelta, nil
}
