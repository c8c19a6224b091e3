package exchange

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

// Limits of what is read. They are far beyond what a context can hold.
const (
	// MaxLineBytes is the longest line with an event.
	MaxLineBytes = 4 << 20
	// MaxDocumentBytes is the longest conversation of messages.
	MaxDocumentBytes = 32 << 20
	// MaxEvents is how many events are read of one log.
	MaxEvents = 1_000_000
)

// wanted is what an error says of input that is nothing of what may be read.
const wanted = `want events, one JSON object per line, or a conversation like {"messages":[{"role":"user","content":"Hello"}]}`

// Read reads a log, which becomes that of a context. Events without a time get
// that of the import.
//
// The events come one by one, and an error comes last and alone. Whoever stores
// them as they come has stored some by then: to take all or nothing, keep them
// until the end, or read twice.
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
			err = errors.New("there is nothing to read: " + wanted)
		}
		if err != nil && !errors.Is(err, errEnough) {
			yield(event.Event{}, err)
		}
	}
}

// errEnough says that nobody wants to hear more.
var errEnough = errors.New("enough")

// decode finds out what it reads and hands over its events. Errors of take are
// those of the line that it reads.
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

// decodeEvents reads events from the line that was read on.
func decodeEvents(in *lines, take func(event.Event) error) error {
	for more := true; more; more = in.next() {
		if len(in.text) > MaxLineBytes {
			return in.errorf("%d bytes; an event has at most %d", len(in.text), MaxLineBytes)
		}
		var e event.Event
		// Called directly: json.Unmarshal would report a syntax error before the
		// event could say what it wants.
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

// lines reads the lines that are not blank.
type lines struct {
	reader *bufio.Reader
	// text is the line that was read, without the space around it, and number its
	// number, from 1.
	text   []byte
	number int
	// err is what ended the reading: [io.EOF] at the end.
	err error
}

// byteOrderMark stands in front of files from Windows.
var byteOrderMark = []byte("\ufeff")

// next reads the next line and reports whether there was one.
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

// line reads a line of any kind. It is nothing when there is an error, but for
// the last line, which may do without an end.
func (l *lines) line() []byte {
	var line []byte
	for {
		piece, err := l.reader.ReadSlice('\n')
		line = append(line, piece...)
		switch {
		case len(line) > MaxDocumentBytes:
			l.err = l.errorf("more than %d bytes", MaxDocumentBytes)
			return nil
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !errors.Is(err, io.EOF):
			l.err = l.errorf("cannot be read: %w", err)
			return nil
		}
		l.err = err
		return line
	}
}

// failed is why there is no other line; nil at the end of the input.
func (l *lines) failed() error {
	if errors.Is(l.err, io.EOF) {
		return nil
	}
	return l.err
}

// errorf is an error about the line that was read.
func (l *lines) errorf(format string, args ...any) error {
	return fmt.Errorf("line %d: %w", l.number, fmt.Errorf(format, args...))
}
