package chat

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Input limits, far above what a context can hold.
const (
	// MaxLineBytes is the maximum length of a line with an event.
	MaxLineBytes = 4 << 20
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
		err := decode(&lines{reader: bufio.NewReaderSize(r, 64<<10)}, func(e event.Event) error {
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

// decode passes the events of either format to take, whose errors get the number of the current
// line.
func decode(in *lines, take func(event.Event) error) error {
	if !in.next() {
		return in.failed()
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(in.text, &fields) == nil && fields["_tag"] != nil {
		return decodeEvents(in, take)
	}
	if in.text[0] != '{' && in.text[0] != '[' {
		return in.errorf("%s", wanted)
	}
	return decodeOpenAI(in, take)
}

func decodeEvents(in *lines, take func(event.Event) error) error {
	for more := true; more; more = in.next() {
		if len(in.text) > MaxLineBytes {
			return in.errorf("%d bytes; an event has at most %d", len(in.text), MaxLineBytes)
		}
		var e event.Event
		// json.Unmarshal would hide the event's more helpful syntax errors.
		if err := e.UnmarshalJSON(in.text); err != nil {
			return in.errorf("%w", err)
		}
		if e.Tag().Class() == event.ClassEphemeral {
			continue
		}
		if err := take(e); err != nil {
			return in.errorf("%w", err)
		}
	}
	return in.failed()
}

type lines struct {
	reader *bufio.Reader
	// text is the current line without surrounding space; number counts from 1.
	text   []byte
	number int
	// err is the error that ended the input, [io.EOF] at the end.
	err error
}

// byteOrderMark precedes files from some Windows programs.
var byteOrderMark = []byte("\ufeff")

func (l *lines) next() bool {
	for l.err == nil {
		l.number++
		line := l.line()
		if l.number == 1 {
			line = bytes.TrimPrefix(line, byteOrderMark)
		}
		if l.text = bytes.TrimSpace(line); len(l.text) > 0 {
			return true
		}
	}
	return false
}

// line reads one line, blank or not. The last one may lack a newline.
func (l *lines) line() []byte {
	var line []byte
	for {
		piece, err := l.reader.ReadSlice('\n')
		line = append(line, piece...)
		switch {
		case len(line) > MaxDocumentBytes:
			l.err = l.errorf("line exceeds %d bytes", MaxDocumentBytes)
			return nil
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !errors.Is(err, io.EOF):
			l.err = l.errorf("read: %w", err)
			return nil
		}
		l.err = err
		return line
	}
}

// failed returns the error that ended the input, nil at its end.
func (l *lines) failed() error {
	if errors.Is(l.err, io.EOF) {
		return nil
	}
	return l.err
}

func (l *lines) errorf(format string, args ...any) error {
	return fmt.Errorf("line %d: %w", l.number, fmt.Errorf(format, args...))
}
