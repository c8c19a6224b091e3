package stream

import (
	"encoding/json"
	"fmt"
	"iter"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Delta is a piece of the text of an answer or of the model's reasoning. A Reset contains all text
// and reasoning so far.
type Delta struct {
	event.TextDelta
	After     string `json:"afterEventId,omitempty"` // event that followers show first; "": ThroughEventID
	Reasoning string `json:"reasoning,omitempty"`    // a piece has either text or reasoning
	// Progress of a running tool call; all other fields are zero. Nil: this is a delta of an answer.
	Progress *event.ToolProgress `json:"-"`
}

// Bodies returns the events of a delta: one, or two for a Reset with reasoning and text.
func (d Delta) Bodies() iter.Seq[event.Body] {
	return func(yield func(event.Body) bool) {
		if d.Progress != nil {
			yield(*d.Progress)
			return
		}
		text := d.TextDelta
		if d.Reasoning != "" {
			reasoning := event.ReasoningDelta(text)
			reasoning.Delta = d.Reasoning
			if text.Delta == "" {
				yield(reasoning)
				return
			}
			// Both indexes are below that of the next delta. They are not negative, since reasoning
			// and text were at least two deltas.
			reasoning.Index--
			text.Reset = false
			if !yield(reasoning) {
				return
			}
		}
		yield(text)
	}
}

// message is the JSON of a delta, an [event.TextDelta] event with an empty envelope. Text and reasoning
// share a type, because detecting the type before decoding each delta would take several times as long.
type message struct {
	Tag event.Tag `json:"_tag"`
	Delta
}

func encodeDelta(d Delta) ([]byte, error) {
	return json.Marshal(message{event.TagTextDelta, d})
}

func decodeDelta(data []byte) (Delta, error) {
	var m message
	if err := json.Unmarshal(data, &m); err != nil {
		return Delta{}, err
	}
	if m.Tag == event.TagToolProgress {
		var progress event.ToolProgress
		err := json.Unmarshal(data, &progress)
		return Delta{Progress: &progress}, err
	}
	if m.Tag != event.TagTextDelta {
		return Delta{}, fmt.Errorf("want a %s, got a %q", event.TagTextDelta, m.Tag)
	}
	return m.Delta, nil
}

// progressMessage is an [event.ToolProgress] event with an empty envelope.
type progressMessage struct {
	Tag event.Tag `json:"_tag"`
	event.ToolProgress
}

// PublishProgress publishes the progress of a tool call. It never blocks on subscribers.
func (c *Conn) PublishProgress(contextName string, progress event.ToolProgress) {
	if !c.Connected() {
		return
	}
	if data, err := json.Marshal(progressMessage{event.TagToolProgress, progress}); err == nil {
		// An error means that the connection has just been lost.
		_ = c.nats.Publish(c.deltaSubject(contextName), data)
	}
}
