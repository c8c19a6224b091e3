package llm

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"
)

const (
	// maxAnswer bounds an answer with all that surrounds it, so that no
	// server can fill the worker's memory.
	maxAnswer = 64 << 20
	// drainTime is how long the end of a finished stream is waited for, and
	// drainBytes how much may still come. A connection is used again only when
	// its answer was read to the end.
	drainTime  = 100 * time.Millisecond
	drainBytes = 4 << 10
)

var errTooMuch = fmt.Errorf("more than %d MiB", maxAnswer>>20)

// eventBody is the body of an event stream of which only the data lines are
// left. go-openai counts the other ones (comments to keep the connection
// alive, event names) as empty messages and gives up at some number, and it
// cannot read an error object that stands behind one.
//
// An error object ends it with a [*refusal]. So does the end of a body without
// a single data line: that is no event stream, whatever the status says.
type eventBody struct {
	body   io.ReadCloser
	lines  *bufio.Reader
	status int
	header http.Header

	ready   []byte // what Read hands out next
	err     error  // and what it returns after that
	size    int
	isEvent bool   // there was a data line
	isDone  bool   // the last one was [DONE]
	other   []byte // the beginning of what else came, to describe it
}

func newEventBody(resp *http.Response) *eventBody {
	return &eventBody{
		body: resp.Body, lines: bufio.NewReader(resp.Body),
		status: resp.StatusCode, header: resp.Header,
	}
}

// Read reads from the data lines, each ended by a line feed.
func (b *eventBody) Read(p []byte) (int, error) {
	for len(b.ready) == 0 {
		if b.err != nil {
			return 0, b.err
		}
		b.ready, b.err = b.nextLine()
	}
	n := copy(p, b.ready)
	b.ready = b.ready[n:]
	return n, nil
}

// nextLine is the next line if it has data, and nothing if it has not.
func (b *eventBody) nextLine() ([]byte, error) {
	line, err := b.readLine()
	if err != nil && !errors.Is(err, io.EOF) {
		// The line is cut and of no use.
		return nil, err
	}
	line = bytes.TrimSpace(line)
	data, ok := bytes.CutPrefix(line, []byte("data:"))
	if !ok {
		if len(b.other) < maxRefusal {
			b.other = append(append(b.other, line...), '\n')
		}
		if err != nil && !b.isEvent {
			return nil, &refusal{status: b.status, header: b.header, body: b.other, foreign: true}
		}
		return nil, err
	}
	b.isEvent = true
	data = bytes.TrimSpace(data)
	if hasError(data) {
		return nil, &refusal{status: b.status, header: b.header, body: data}
	}
	b.isDone = string(data) == "[DONE]"
	if text, ok := withTextArguments(data); ok {
		return slices.Concat([]byte("data: "), text, []byte("\n")), err
	}
	// go-openai takes what begins with `data: {"error":` for an error, even if
	// that is null. It does not look behind a space.
	if object, ok := bytes.CutPrefix(data, []byte("{")); ok {
		return slices.Concat([]byte("data: { "), object, []byte("\n")), err
	}
	return append(line, '\n'), err
}

// readLine is bufio.Reader.ReadBytes('\n') that stops at maxAnswer, be it in
// the middle of a line.
func (b *eventBody) readLine() ([]byte, error) {
	var line []byte
	for {
		part, err := b.lines.ReadSlice('\n')
		line = append(line, part...)
		b.size += len(part)
		if b.size > maxAnswer {
			return nil, errTooMuch
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// Close reads a finished stream to its end, for a moment, and closes it.
func (b *eventBody) Close() error {
	if b.isDone {
		stop := time.AfterFunc(drainTime, func() { _ = b.body.Close() })
		_, _ = io.CopyN(io.Discard, b.body, drainBytes)
		stop.Stop()
	}
	return b.body.Close()
}

// hasError reports whether the data of an event is an error object, or has one
// beside an empty choice.
func hasError(data []byte) bool {
	if !bytes.Contains(data, []byte(`"error"`)) {
		return false
	}
	var event struct {
		Error json.RawMessage `json:"error"`
	}
	return json.Unmarshal(data, &event) == nil && len(event.Error) > 0 && string(event.Error) != "null"
}

// withTextArguments is the data of an event with arguments of calls as text, where
// a server has sent them as the object that the text stands for: go-openai would
// not read the event. ok is false when there is nothing to change.
func withTextArguments(data []byte) (changed []byte, ok bool) {
	if !bytes.Contains(data, []byte(`"arguments"`)) {
		return nil, false
	}
	var event any
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if decoder.Decode(&event) != nil || !textArguments(event) {
		return nil, false
	}
	changed, err := json.Marshal(event)
	return changed, err == nil
}

// textArguments changes the arguments in a value and reports whether there were
// any to change.
func textArguments(value any) (changed bool) {
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			changed = textArguments(element) || changed
		}
	case map[string]any:
		for name, field := range value {
			_, isText := field.(string)
			if name != "arguments" || isText || field == nil {
				changed = textArguments(field) || changed
				continue
			}
			text, err := json.Marshal(field)
			if err == nil {
				value[name], changed = string(text), true
			}
		}
	}
	return changed
}
