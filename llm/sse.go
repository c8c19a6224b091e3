package llm

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"
)

const (
	maxAnswer = 64 << 20 // bytes of a response, to protect the memory of the worker
	// drainTime bounds the wait for the end of a finished stream, which leaves its connection reusable.
	drainTime = 100 * time.Millisecond
)

var errTooLarge = fmt.Errorf("more than %d MiB", maxAnswer>>20)

// streamEvent is a server-sent event. It is valid until the next one.
type streamEvent struct {
	data    []byte // never empty
	json    value  // of the data; nil: none
	isError bool   // its name is error
}

// eventReader reads server-sent events as https://html.spec.whatwg.org/multipage/server-sent-events.html specifies
// them, and in addition:
//
//   - A line with a whole JSON object is an event at once. Clients that read line by line let servers omit the empty line.
//   - The end of the body ends an event.
//   - A field named error is an event. Older versions of llama.cpp send one: https://github.com/ggml-org/llama.cpp/pull/16109
//   - In a body that begins with a brace or a bracket, all lines are data of one event: some servers ignore that a request
//     is for a stream, and others send an object per line: https://github.com/comet-ml/opik/pull/5149
type eventReader struct {
	body   io.ReadCloser
	lines  *bufio.Reader
	size   int
	err    error // at the end of the body
	isBare bool  // the body has no fields
	hasCR  bool  // the last line ended with CR, and LF can follow
	drain  *time.Timer

	isBegun, isDone bool

	line  []byte
	data  []byte // lines of the event so far, each with an LF
	name  string // of the event so far
	other []byte // beginning of the lines that are no fields
}

func newEventReader(body io.ReadCloser) *eventReader {
	return &eventReader{body: body, lines: bufio.NewReader(body)}
}

// next returns [io.EOF] at the end of the body, and any other error that reading the body returns.
func (r *eventReader) next() (event streamEvent, err error) {
	if !r.isBegun {
		r.begin()
	}
	for ok := false; !ok; {
		if r.err != nil {
			return event, r.err
		}
		if r.err = r.readLine(); r.err != nil && !errors.Is(r.err, io.EOF) {
			return event, r.err // the line is incomplete
		}
		if len(r.line) > 0 {
			event, ok = r.field(r.line)
		}
		if !ok && (r.err != nil || len(r.line) == 0 && !r.isBare) {
			event, ok = r.dispatch()
		}
	}
	return event, nil
}

func eventOf(data []byte) streamEvent { return streamEvent{data: data, json: valueOf(data)} }

var byteOrderMark = []byte("\uFEFF")

func (r *eventReader) begin() {
	r.isBegun = true
	if begin, _ := r.lines.Peek(len(byteOrderMark)); bytes.Equal(begin, byteOrderMark) {
		r.discard(len(byteOrderMark))
	}
	for {
		begin, _ := r.lines.Peek(1)
		if len(begin) == 0 || r.size > maxAnswer || len(trimSpace(begin)) > 0 {
			r.isBare = isJSONBegun(begin)
			return
		}
		r.discard(1)
	}
}

// field reads a line, and returns the event that it completes.
func (r *eventReader) field(line []byte) (event streamEvent, ok bool) {
	name, content, _ := bytes.Cut(line, []byte(":"))
	if r.isBare {
		name, content = []byte("data"), line
	}
	switch string(name) {
	case "data":
		whole := trimSpace(content)
		switch {
		case string(whole) == "[DONE]":
			r.finish()
			return event, false
		case value(whole).isObject() && !isJSONBegun(r.data):
			if event = eventOf(whole); event.json != nil {
				event.isError, r.name = r.name == "error", ""
				return event, true
			}
		}
		if len(r.data)+len(whole) > 0 {
			r.data = append(append(r.data, content...), '\n')
		}
	case "event":
		r.name = string(trimSpace(content))
	case "error":
		event = eventOf(trimSpace(content))
		event.isError = true
		return event, len(event.data) > 0
	case "", "id", "retry":
	default:
		if len(r.other) < maxErrorBody {
			r.other = append(append(r.other, line...), '\n')
		}
	}
	return event, false
}

func isJSONBegun(data []byte) bool {
	v := value(trimSpace(data))
	return v.isObject() || v.isArray()
}

// dispatch ends an event.
func (r *eventReader) dispatch() (event streamEvent, ok bool) {
	event = eventOf(trimSpace(r.data))
	event.isError = r.name == "error"
	r.data, r.name = r.data[:0], ""
	return event, len(event.data) > 0
}

// finish lets the server end the body in drainTime, and perhaps send what belongs before [DONE].
func (r *eventReader) finish() {
	if !r.isDone {
		r.isDone = true
		r.drain = time.AfterFunc(drainTime, func() { _ = r.body.Close() })
	}
}

// readLine reads a line without its end, which is CR, LF or CRLF.
func (r *eventReader) readLine() error {
	r.line = r.line[:0]
	for {
		if _, err := r.lines.Peek(1); err != nil {
			if r.isDone {
				return io.EOF
			}
			return err
		}
		part, _ := r.lines.Peek(r.lines.Buffered())
		if r.hasCR && part[0] == '\n' {
			part = part[1:]
			r.discard(1)
		}
		r.hasCR = false
		end := bytes.IndexAny(part, "\r\n")
		if end < 0 {
			r.line = append(r.line, part...)
			r.discard(len(part))
		} else {
			r.line = append(r.line, part[:end]...)
			r.hasCR = part[end] == '\r'
			r.discard(end + 1)
		}
		if r.size > maxAnswer {
			return errTooLarge
		}
		if end >= 0 {
			return nil
		}
	}
}

func (r *eventReader) discard(n int) {
	_, _ = r.lines.Discard(n) // cannot fail: the bytes were peeked
	r.size += n
}

func (r *eventReader) close() {
	if r.drain != nil {
		r.drain.Stop()
	}
	_ = r.body.Close()
}
