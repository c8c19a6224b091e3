package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/lines"
)

const (
	// MaxLineBytes is the maximum length of a line with an event, more than a context can store.
	MaxLineBytes = 16 << 20
	// MaxDocumentBytes is the maximum length of a conversation.
	MaxDocumentBytes = 32 << 20
	// MaxEvents is the maximum number of events in a log.
	MaxEvents = 1_000_000
)

const wanted = `want events, one JSON object per line, or a conversation like {"messages":[{"role":"user","content":"Hello"}]}`

// Read reads a log and assigns its events to the named context. Events without a
// timestamp get the time at.
//
// Events are streamed; an error is always the last element, with a zero event. To
// import all or nothing, buffer the events or read the input twice.
func Read(r io.Reader, contextName string, at time.Time) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		if err := event.ValidateContextName(contextName); err != nil {
			yield(event.Event{}, err)
			return
		}
		p := placing{to: contextName, at: at.UTC(), others: map[string]int{}}
		err := decode(input{lines.New(r, MaxDocumentBytes)}, func(e event.Event) error {
			e, err := p.place(e)
			if err == nil && !yield(e, nil) {
				err = errEnough
			}
			return err
		})
		if err == nil && p.count == 0 {
			err = errors.New("the input has no events: " + wanted)
		}
		if err != nil && !errors.Is(err, errEnough) {
			yield(event.Event{}, err)
		}
	}
}

var errEnough = errors.New("enough")

// decode calls take for each event of either format. It stops at the first error.
func decode(in input, take func(event.Event) error) error {
	if !in.next() {
		return in.Err()
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(in.Text, &fields) == nil && fields["_tag"] != nil {
		return decodeEvents(in, take)
	}
	if in.Text[0] != '{' && in.Text[0] != '[' {
		return in.Errorf("%s", wanted)
	}
	return decodeOpenAI(in, take)
}

func decodeEvents(in input, take func(event.Event) error) error {
	for more := true; more; more = in.next() {
		if len(in.Text) > MaxLineBytes {
			return in.Errorf("%d bytes; an event has at most %d", len(in.Text), MaxLineBytes)
		}
		var e event.Event
		// json.Unmarshal would hide the event's more helpful syntax errors.
		if err := e.UnmarshalJSON(in.Text); err != nil {
			return in.Errorf("%w", err)
		}
		if e.Tag().Class() == event.ClassEphemeral {
			continue
		}
		if err := take(e); err != nil {
			return in.Errorf("%w", err)
		}
	}
	return in.Err()
}

// input reads the lines that are not blank, without surrounding space.
type input struct{ *lines.Reader }

func (in input) next() bool {
	for in.Next() {
		if in.Text = bytes.TrimSpace(in.Text); len(in.Text) > 0 {
			return true
		}
	}
	return false
}
