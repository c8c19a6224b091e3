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
	maxAnswer = 64 << 20 // bytes of a response, to protect the memory of the worker
	// Bounds for reading a finished stream to its end, which leaves its connection reusable.
	drainTime  = 100 * time.Millisecond
	drainBytes = 4 << 10
)

var errTooLarge = fmt.Errorf("more than %d MiB", maxAnswer>>20)

// eventBody reduces an event stream to the data lines that go-openai reads. Read returns an [*errorResponse]
// at an error object, and at the end of a body without data lines, even if the status is a success.
//
// It works around limits of go-openai's stream reader, and is unnecessary without them. Only the first
// has an upstream issue:
//
//   - Too many other lines (keep-alive comments, event names) are an error, and an error object
//     after such a line is not readable: https://github.com/sashabaranov/go-openai/issues/71
//   - An event that begins with {"error":null is an error.
//   - Arguments of tool calls must be a string; some servers send an object.
//   - Content must be a string, and reasoning be named reasoning_content; Mistral sends parts.
type eventBody struct {
	body   io.ReadCloser
	lines  *bufio.Reader
	status int
	header http.Header

	ready   []byte // bytes for the next Read
	err     error  // error after ready
	size    int
	isEvent bool   // a data line was read
	isDone  bool   // the last data line was [DONE]
	other   []byte // start of the other lines, for errors

	state *stateReader // reads each event; may be nil
}

func newEventBody(resp *http.Response, state *stateReader) *eventBody {
	return &eventBody{
		body: resp.Body, lines: bufio.NewReader(resp.Body),
		status: resp.StatusCode, header: resp.Header, state: state,
	}
}

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

func (b *eventBody) nextLine() ([]byte, error) {
	line, err := b.readLine()
	if err != nil && !errors.Is(err, io.EOF) {
		// The line is incomplete.
		return nil, err
	}
	line = bytes.TrimSpace(line)
	data, ok := bytes.CutPrefix(line, []byte("data:"))
	if !ok {
		if len(b.other) < maxErrorBody {
			b.other = append(append(b.other, line...), '\n')
		}
		if err != nil && !b.isEvent {
			return nil, &errorResponse{status: b.status, header: b.header, body: b.other, isNotStream: true}
		}
		return nil, err
	}
	b.isEvent = true
	data = bytes.TrimSpace(data)
	if hasError(data) {
		return nil, &errorResponse{status: b.status, header: b.header, body: data}
	}
	b.isDone = string(data) == "[DONE]"
	text, parts, ok := withTextContent(data)
	b.state.read(data, parts)
	if !ok {
		text, ok = withReasoningContent(data)
	}
	if ok {
		data = text
	}
	if text, ok := withTextArguments(data); ok {
		return slices.Concat([]byte("data: "), text, []byte("\n")), err
	}
	// With a space after the brace, go-openai does not mistake the event for an error.
	if object, ok := bytes.CutPrefix(data, []byte("{")); ok {
		return slices.Concat([]byte("data: { "), object, []byte("\n")), err
	}
	return append(line, '\n'), err
}

// readLine is bufio.Reader.ReadBytes('\n') with a limit of maxAnswer for the whole body. Package
// internal/lines is not used here: it limits single lines, and removes the line endings, which go-openai
// requires.
func (b *eventBody) readLine() ([]byte, error) {
	var line []byte
	for {
		part, err := b.lines.ReadSlice('\n')
		line = append(line, part...)
		b.size += len(part)
		if b.size > maxAnswer {
			return nil, errTooLarge
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

func (b *eventBody) Close() error {
	if b.isDone {
		stop := time.AfterFunc(drainTime, func() { _ = b.body.Close() })
		_, _ = io.CopyN(io.Discard, b.body, drainBytes)
		stop.Stop()
	}
	return b.body.Close()
}

func hasError(data []byte) bool {
	if !bytes.Contains(data, []byte(`"error"`)) {
		return false
	}
	var event struct {
		Error json.RawMessage `json:"error"`
	}
	return json.Unmarshal(data, &event) == nil && len(event.Error) > 0 && string(event.Error) != "null"
}

func withTextArguments(data []byte) (changed []byte, ok bool) {
	if !hasOtherArguments(data) {
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

var argumentsField = []byte(`"arguments"`)

func hasOtherArguments(data []byte) bool {
	for {
		_, after, found := bytes.Cut(data, argumentsField)
		if !found {
			return false
		}
		if !isValue(after, '"') {
			return true
		}
		data = after
	}
}

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
