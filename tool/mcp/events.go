package mcp

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
	"time"
)

// eventReader reads the data of server-sent events as
// https://html.spec.whatwg.org/multipage/server-sent-events.html specifies, and also of an event that the end cuts.
type eventReader struct {
	text  *bufio.Reader
	id    string        // of the last event
	retry time.Duration // that the server asks for; 0: none

	began, afterCR bool
}

func newEventReader(r io.Reader) *eventReader { return &eventReader{text: bufio.NewReader(r)} }

// next returns the data of the next event that has some.
func (r *eventReader) next() ([]byte, error) {
	var data []byte
	hasData := false
	for left := maxMessageBytes; ; {
		line, err := r.line(left)
		left -= len(line)
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch {
		case len(line) == 0 && hasData:
			return data, nil
		case bytes.HasPrefix(line, []byte("{")): // a message that is no field of an event
			data, hasData = append(data, line...), true
		case string(name) == "data":
			if hasData {
				data = append(data, '\n')
			}
			data, hasData = append(data, value...), true
		case string(name) == "id":
			r.id = string(value)
		case string(name) == "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
				r.retry = time.Duration(ms) * time.Millisecond
			}
		}
		switch {
		case err != nil && hasData:
			return data, nil // the next call returns the error
		case err != nil:
			return nil, err
		}
	}
}

// line returns a line without its end, which is CR, LF or CRLF. With an error, it is incomplete.
func (r *eventReader) line(max int) (line []byte, err error) {
	for {
		b, err := r.text.ReadByte()
		switch {
		case err != nil:
			return line, err
		case b == '\n' && r.afterCR:
			r.afterCR = false
			continue
		}
		r.afterCR = b == '\r'
		if b == '\r' || b == '\n' {
			if !r.began {
				line = bytes.TrimPrefix(line, []byte("\ufeff"))
			}
			r.began = true
			return line, nil
		}
		if line = append(line, b); len(line) > max {
			return nil, fmt.Errorf("an event is longer than %d bytes", maxMessageBytes)
		}
	}
}
