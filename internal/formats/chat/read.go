package chat

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/lines"
)

const (
	// MaxLineBytes is the maximum length of a line with an event, without the bytes of a file or a stored tool
	// result. It is more than a context can store.
	MaxLineBytes = 16 << 20
	// MaxDocumentBytes is the maximum length of a conversation with its files.
	MaxDocumentBytes = 256 << 20
	// MaxEvents is the maximum number of events in a log.
	MaxEvents = 1_000_000
)

var maxDocument = MaxDocumentBytes // changed by tests

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
		err := decode(input{lines.New(r, maxDocument)}, func(e event.Event) error {
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
		if len(in.Text) > MaxLineBytes+maxFileBytes {
			return in.Errorf("%d bytes; an event has at most %d", len(in.Text), MaxLineBytes)
		}
		var e event.Event
		// json.Unmarshal would hide the event's more helpful syntax errors.
		err := e.UnmarshalJSON(in.Text)
		if isRecorded := e.ID != "" || !e.Timestamp.IsZero(); err == nil && !isRecorded && e.Tag().IsInput() {
			_, err = event.DecodeInput(in.Text)
		}
		if err != nil {
			return in.Errorf("%w", err)
		}
		if len(in.Text) > MaxLineBytes && len(in.Text)-fileBytes(e) > MaxLineBytes {
			return in.Errorf("%d bytes; an event has at most %d", len(in.Text), MaxLineBytes)
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

// maxFileBytes is the maximum length of a file in base64.
var maxFileBytes = base64.StdEncoding.EncodedLen(event.MaxAttachmentBytes)

// fileBytes returns the length of the file or of the stored tool result in the JSON of an event.
func fileBytes(e event.Event) int {
	if file, ok := e.Body.(event.FileAttachment); ok {
		return base64.StdEncoding.EncodedLen(len(file.Source.Data))
	}
	_, data, err := e.TakeBlob()
	if err != nil {
		return 0
	}
	return base64.StdEncoding.EncodedLen(len(data))
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
