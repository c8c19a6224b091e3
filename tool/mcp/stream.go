package mcp

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// maxResumptions bounds how often the stream of a call is resumed without a new event.
const maxResumptions = 5

// stream is the body of a response, with messages as events: until the response to a call, or, without a call,
// what the server sends on its own until the request ends.
type stream struct {
	http     *httpWire
	request  *http.Request
	call     int64          // id; 0: none
	response *http.Response // that is being read; nil: none

	events      *eventReader // nil unless the response is an event stream
	lastEventID string
	failures    int    // of the stream, since the last event
	text        []byte // to be read
	isDone      bool   // no text follows
}

// Read implements [io.Reader].
func (s *stream) Read(p []byte) (int, error) {
	for len(s.text) == 0 {
		if s.isDone {
			return 0, io.EOF
		}
		if err := s.advance(); err != nil {
			return 0, err
		}
	}
	n := copy(p, s.text)
	s.text = s.text[n:]
	return n, nil
}

// Close implements [io.Closer].
func (s *stream) Close() error {
	s.isDone = true
	if s.response != nil {
		return s.response.Body.Close()
	}
	return nil
}

func (s *stream) add(messages []jsonrpc.Message) {
	for _, m := range messages {
		data, err := jsonrpc.EncodeMessage(m)
		if err != nil {
			continue
		}
		s.text = append(append(append(s.text, "data: "...), data...), "\n\n"...)
		if r, ok := m.(*jsonrpc.Response); ok && s.call != 0 && r.ID == messageID(s.call) {
			s.isDone = true
		}
	}
}

// advance reads an event, or opens the stream.
func (s *stream) advance() error {
	switch {
	case s.ended() != nil:
		return s.ended()
	case s.response == nil:
		return s.open()
	case s.call != 0 && s.response.StatusCode == http.StatusAccepted: // the response follows on the other stream
		return s.sleep(nil)
	}
	err := s.read()
	if err == nil {
		return nil
	}
	s.response.Body.Close()
	s.response = nil
	if s.ended() != nil {
		return s.ended()
	}
	if s.call != 0 && s.lastEventID == "" {
		if errors.Is(err, io.EOF) {
			err = errors.New("the response ended without a result")
		}
		s.fail(err)
	}
	return nil
}

// fail ends the call.
func (s *stream) fail(err error) {
	s.add(s.http.wire.fail(s.call, err.Error()))
	s.isDone = true
}

func (s *stream) read() error {
	if s.events == nil {
		text := bufio.NewReader(s.response.Body)
		if !isEventStream(s.response) || beginsWithJSON(text) {
			return s.readJSON(text)
		}
		s.events = newEventReader(text)
		s.events.id = s.lastEventID
	}
	data, err := s.events.next()
	if err != nil {
		return err
	}
	if s.events.id != s.lastEventID {
		s.lastEventID, s.failures = s.events.id, 0
	}
	messages, isMessage := s.http.wire.read(data, s.call)
	switch {
	case isMessage:
		s.failures = 0
	case len(bytes.TrimSpace(data)) > 0:
		s.http.wire.quirk(quirkNoise)
	}
	s.add(messages)
	return nil
}

func beginsWithJSON(r *bufio.Reader) bool {
	begin, _ := r.Peek(1)
	return len(begin) > 0 && (begin[0] == '{' || begin[0] == '[')
}

// readJSON reads a response that is no event stream. Other text, such as a warning of PHP, may surround the messages.
func (s *stream) readJSON(body io.Reader) error {
	objects := &scanner{
		message: func(object []byte) bool {
			messages, isMessage := s.http.wire.read(object, s.call)
			s.add(messages)
			return isMessage
		},
		noise: func(text []byte) {
			if !isSeparator(text) {
				s.http.wire.quirk(quirkNoise)
			}
		},
		deliver: func() {},
		tooLong: func() {},
	}
	_, err := io.Copy(objects, body)
	objects.end()
	return cmp.Or(err, io.EOF)
}

// open resumes the stream of a call, or opens that of the server's own messages. Those are optional, so nothing
// depends on them, and their end is no failure of the connection.
func (s *stream) open() error {
	if s.failures > 0 || s.lastEventID != "" {
		s.http.wire.quirk(quirkStream)
		if err := s.wait(); err != nil {
			return err
		}
	}
	s.failures++
	if s.call != 0 && s.failures > maxResumptions {
		s.fail(fmt.Errorf("the response ended without a result after %d resumptions", maxResumptions))
		return nil
	}
	r := s.request.Clone(s.request.Context())
	r.Method, r.Body, r.ContentLength, r.GetBody = http.MethodGet, nil, 0, nil
	r.Header.Del("Content-Type")
	r.Header.Set("Accept", "text/event-stream")
	if s.lastEventID != "" {
		r.Header.Set("Last-Event-ID", s.lastEventID)
	}
	response, err := s.http.send(r)
	switch {
	case s.ended() != nil:
		return s.ended()
	case err != nil:
		return nil // it is opened again
	case response.StatusCode == http.StatusOK && isEventStream(response):
		s.response, s.events = response, nil
		return nil
	}
	response.Body.Close()
	if location, err := response.Location(); err == nil && originOf(location) == s.http.origin {
		s.request = s.request.Clone(s.request.Context())
		s.request.URL = location
		return nil
	}
	isTemporary := response.StatusCode >= 500 || response.StatusCode == http.StatusTooManyRequests
	switch {
	case isTemporary:
	case s.call != 0:
		s.fail(fmt.Errorf("the response ended without a result, and cannot be resumed: %w", &statusError{code: response.StatusCode}))
	default: // the server has no such stream
		return s.sleep(nil)
	}
	return nil
}

// ended returns why no more can be read; nil if it can.
func (s *stream) ended() error { return cmp.Or(s.request.Context().Err(), s.http.life.Err()) }

func (s *stream) wait() error {
	delay := s.http.timing.backoff << min(s.failures, 10)
	if s.events != nil {
		delay = max(delay, s.events.retry)
	}
	timer := time.NewTimer(min(delay, maxBackoff))
	defer timer.Stop()
	return s.sleep(timer.C)
}

// sleep waits for an alarm, or the end of the stream.
func (s *stream) sleep(alarm <-chan time.Time) error {
	select {
	case <-alarm:
	case <-s.request.Context().Done():
	case <-s.http.life.Done():
	}
	return s.ended()
}
