package mcp

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/seed-9ed7edd4/chronicle/internal/lines"
	"github.com/seed-9ed7edd4/chronicle/internal/pause"
	"github.com/seed-9ed7edd4/chronicle/internal/retryafter"
)

const sessionHeader = "Mcp-Session-Id"

// httpWire is the client of the SDK's transport, and hides from it what would end the connection.
type httpWire struct {
	client  *http.Client
	wire    *wire
	backoff time.Duration // minimum between two streams of the server
}

// RoundTrip implements [http.RoundTripper].
func (t *httpWire) RoundTrip(r *http.Request) (*http.Response, error) {
	switch {
	case r.Method == http.MethodPost:
		return t.post(r)
	case r.Method == http.MethodGet && r.Header.Get("Last-Event-ID") == "":
		reader, writer := io.Pipe()
		go t.listen(r, writer)
		return eventStream(reader), nil
	}
	response, err := t.client.Do(r)
	switch {
	case err != nil || r.Method != http.MethodGet:
		return response, err
	case isEventStream(response): // the rest of the response to a call
		return eventStream(t.relay(response, 0)), nil
	}
	response.Body.Close()
	return eventStream(http.NoBody), nil // fails the call; the status would end the connection
}

func (t *httpWire) post(r *http.Request) (*http.Response, error) {
	copied, err := r.GetBody()
	if err != nil {
		return nil, err
	}
	body, _ := io.ReadAll(copied) // of bytes in memory
	m, err := jsonrpc.DecodeMessage(body)
	if err != nil {
		return nil, err
	}
	id := t.wire.write(m)
	response, err := t.send(r)
	switch {
	case err != nil:
		t.wire.take(id)
		return nil, err
	case response.StatusCode >= 400:
		return t.rejected(r, response, id)
	case id == 0:
		response.Body.Close()
		return answer(http.StatusAccepted), nil
	}
	events := eventStream(t.relay(response, id))
	if r.Header.Get(sessionHeader) == "" { // a later one would break the connection
		events.Header.Set(sessionHeader, response.Header.Get(sessionHeader))
	}
	return events, nil
}

// maxLimitWait bounds the wait that a server with a rate limit asks for.
const maxLimitWait = 30 * time.Second

// send repeats a request that exceeds a rate limit after the time that the server asks for. The server has not
// executed it.
func (t *httpWire) send(r *http.Request) (*http.Response, error) {
	for {
		response, err := t.client.Do(r)
		if err != nil || response.StatusCode != http.StatusTooManyRequests {
			return response, err
		}
		wait := retryafter.Of(response.Header, time.Now())
		deadline, isBounded := r.Context().Deadline()
		if wait == 0 || wait > maxLimitWait || isBounded && time.Until(deadline) < wait {
			return response, nil
		}
		response.Body.Close()
		if !pause.For(r.Context(), wait) {
			return nil, r.Context().Err()
		}
		if r.Body, err = r.GetBody(); err != nil {
			return nil, err
		}
	}
}

func answer(status int) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: http.NoBody}
}

func eventStream(body io.ReadCloser) *http.Response {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: body}
}

var namesSession = regexp.MustCompile(`(?i)\bsession`).Match

// rejected handles a response with an error status.
func (t *httpWire) rejected(r *http.Request, response *http.Response, id int64) (*http.Response, error) {
	defer response.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	code, hasSession := response.StatusCode, r.Header.Get(sessionHeader) != ""
	// Some servers report an expired session with the status 400. The SDK takes a JSON-RPC error for the response to
	// the call.
	switch {
	case hasSession && code == http.StatusBadRequest && namesSession(text):
		t.wire.quirk(quirkSessionID)
		return answer(http.StatusNotFound), nil
	case hasSession && code == http.StatusNotFound:
		return answer(code), nil
	case id == 0:
		t.wire.quirk(quirkNotice)
		return answer(http.StatusAccepted), nil
	}
	if m, _ := t.wire.read(text, id); m != nil {
		var event bytes.Buffer
		_, err := writeEvent(&event, m)
		return eventStream(io.NopCloser(&event)), err
	}
	t.wire.take(id)
	err := errors.New(strings.Trim(fmt.Sprintf("%d %s: %s", code, http.StatusText(code), text), ": \r\n"))
	if code < 500 && code != http.StatusRequestTimeout {
		err = unsentError{err}
	}
	return nil, err
}

// listen relays the stream of the server's own messages until the request ends. The stream is optional: the SDK would
// end the connection with it, https://github.com/modelcontextprotocol/go-sdk/issues/1175.
func (t *httpWire) listen(r *http.Request, to *io.PipeWriter) {
	ctx := r.Context()
	defer to.Close()
	for delay := t.backoff; ctx.Err() == nil; delay = min(2*delay, maxBackoff) {
		opened := time.Now()
		response, err := t.client.Do(r.Clone(ctx))
		if err == nil {
			if response.StatusCode < 500 && !isEventStream(response) { // there is none
				response.Body.Close()
				<-ctx.Done()
				return
			}
			_, _ = t.copy(to, response, 0)
			response.Body.Close()
		}
		if time.Since(opened) > maxBackoff {
			delay = t.backoff
		}
		if !waitFor(ctx.Done(), delay) {
			t.wire.quirk(quirkStream)
		}
	}
}

// relay returns the messages of a response as events; call is the id of the request, 0: unknown.
func (t *httpWire) relay(response *http.Response, call int64) io.ReadCloser {
	reader, writer := io.Pipe()
	go func() {
		defer writer.Close()
		defer response.Body.Close()
		canResume, err := t.copy(writer, response, call)
		if canResume {
			return // the SDK sends the request for the rest
		}
		if m := t.wire.fail(call, cmp.Or(err, errNoResult).Error()); m != nil {
			_, _ = writeEvent(writer, m)
		}
	}()
	return reader
}

var errNoResult = errors.New("the response ended without a result")

// copy writes the messages of a response as events, until one answers a request.
func (t *httpWire) copy(to io.Writer, response *http.Response, call int64) (canResume bool, err error) {
	if !isEventStream(response) {
		text, err := io.ReadAll(response.Body)
		if err == nil {
			m, _ := t.wire.read(text, call)
			_, err = writeEvent(to, m)
		}
		return false, err
	}
	var data []byte
	reader := lines.New(io.MultiReader(response.Body, strings.NewReader("\n\n")), maxMessageBytes)
	for reader.Next() {
		name, value, _ := bytes.Cut(reader.Text, []byte(":"))
		switch {
		case len(reader.Text) == 0:
			m, _ := t.wire.read(data, call)
			data = data[:0]
			if isAnswer, err := writeEvent(to, m); isAnswer || err != nil {
				return false, err
			}
		case string(name) == "data":
			if data = append(append(data, value...), '\n'); len(data) > maxMessageBytes {
				return false, fmt.Errorf("an event is longer than %d bytes", maxMessageBytes)
			}
		case string(name) == "id", string(name) == "retry":
			canResume = canResume || string(name) == "id"
			if _, err := fmt.Fprintf(to, "%s\n", reader.Text); err != nil {
				return false, err
			}
		}
	}
	return canResume, reader.Err()
}

// writeEvent ends an event with a message, which may be nil.
func writeEvent(to io.Writer, m jsonrpc.Message) (isAnswer bool, err error) {
	if m == nil {
		_, err = io.WriteString(to, "\n")
		return false, err
	}
	data, err := jsonrpc.EncodeMessage(m)
	if err == nil {
		_, err = fmt.Fprintf(to, "data: %s\n\n", data)
	}
	_, isAnswer = m.(*jsonrpc.Response)
	return isAnswer, err
}
