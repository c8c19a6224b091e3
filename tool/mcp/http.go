package mcp

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"regexp"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-9ed7edd4/chronicle/internal/tracing"
)

const (
	maxResponseBytes = maxMessageBytes // of a response that is no stream
	maxRedirects     = 5
	sessionHeader    = "Mcp-Session-Id"
)

// httpTransport gives the SDK an HTTP client that hides what the SDK does not tolerate. Each call receives one
// event stream with its response, and the stream of the server's own messages never ends: the SDK closes the
// connection when it does, https://github.com/modelcontextprotocol/go-sdk/issues/1175.
func httpTransport(life context.Context, s Server, headers http.Header, base http.RoundTripper, w *wire, t timing) (sdk.Transport, error) {
	endpoint, err := url.Parse(s.URL)
	if err != nil {
		return nil, errors.New("invalid url")
	}
	client := &http.Client{
		Transport:     &httpWire{life: life, origin: originOf(endpoint), headers: headers, base: base, wire: w, timing: t},
		CheckRedirect: checkRedirect,
	}
	return boundConnection{&sdk.StreamableClientTransport{Endpoint: s.URL, HTTPClient: client}, life}, nil
}

// boundConnection closes its connection when life ends. The SDK detaches connections from the context of Connect;
// see [httpWire.send].
type boundConnection struct {
	sdk.Transport
	life context.Context
}

func (t boundConnection) Connect(ctx context.Context) (sdk.Connection, error) {
	conn, err := t.Transport.Connect(ctx)
	if err == nil {
		context.AfterFunc(t.life, func() { _ = conn.Close() })
	}
	return conn, err
}

func originOf(u *url.URL) string { return u.Scheme + "://" + strings.ToLower(u.Host) }

// redirectError is why a redirect is not followed.
type redirectError string

func (e redirectError) Error() string { return string(e) }

func (redirectError) isUnsent() bool { return true }

const errRedirect = redirectError("redirected to another scheme, host or port (set the url of the server itself)")

// checkRedirect follows redirects within an origin that keep the method.
func checkRedirect(r *http.Request, via []*http.Request) error {
	switch first := via[0]; {
	case originOf(r.URL) != originOf(first.URL):
		return errRedirect
	case r.Method != first.Method || len(via) > maxRedirects:
		return redirectError("redirected (set the url that the server redirects to)")
	}
	return nil
}

// httpWire carries the messages of the SDK to a server and back.
type httpWire struct {
	life    context.Context // ends all requests
	origin  string
	headers http.Header // of all requests
	base    http.RoundTripper
	wire    *wire
	timing  timing
}

// RoundTrip implements [http.RoundTripper].
func (t *httpWire) RoundTrip(r *http.Request) (*http.Response, error) {
	switch r.Method {
	case http.MethodGet:
		return eventStream(&stream{http: t, request: r}, ""), nil
	case http.MethodPost:
		return t.post(r)
	}
	return t.send(r)
}

func (t *httpWire) post(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	m, err := jsonrpc.DecodeMessage(body)
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(body))
	id := t.wire.write(m)
	response, err := t.send(r)
	if err != nil {
		t.wire.fail(cmp.Or(id, -1), "")
		return nil, err
	}
	s := &stream{http: t, request: r, call: id, response: response}
	switch code := response.StatusCode; {
	case code >= 400:
		return t.rejected(s)
	case code >= 300: // a redirect, which the client may follow
		return response, nil
	case id == 0:
		response.Body.Close()
		return accepted(), nil
	}
	session := ""
	if request, ok := m.(*jsonrpc.Request); ok && request.Method == "initialize" {
		session = response.Header.Get(sessionHeader) // later ones would break the connection
	}
	return eventStream(s, session), nil
}

func accepted() *http.Response {
	return &http.Response{StatusCode: http.StatusAccepted, Header: http.Header{}, Body: http.NoBody}
}

func eventStream(s *stream, session string) *http.Response {
	header := http.Header{"Content-Type": {"text/event-stream"}}
	if session != "" {
		header.Set(sessionHeader, session)
	}
	return &http.Response{StatusCode: http.StatusOK, Header: header, Body: s}
}

var namesSession = regexp.MustCompile(`(?i)\bsession`).Match

// rejected handles a response with an error status.
func (t *httpWire) rejected(s *stream) (*http.Response, error) {
	response := s.response
	defer response.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	code, hasSession := response.StatusCode, s.request.Header.Get(sessionHeader) != ""
	// Some servers report an expired session with the status 400, or with a JSON-RPC error, which the SDK would take
	// for the response to the call.
	if hasSession && (code == http.StatusNotFound || code == http.StatusBadRequest && namesSession(text)) {
		if code != http.StatusNotFound {
			t.wire.quirk(quirkSessionID)
		}
		return &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{}, Body: http.NoBody}, nil
	}
	if s.call == 0 {
		t.wire.quirk(quirkNotice)
		return accepted(), nil
	}
	if messages, _ := t.wire.read(text, s.call); len(messages) > 0 {
		s.response, s.isDone = nil, true
		s.add(messages)
		return eventStream(s, ""), nil
	}
	t.wire.fail(s.call, "")
	return nil, &statusError{code, strings.TrimSpace(string(text))}
}

// statusError is an error status of a response.
type statusError struct {
	code int
	text string
}

func (e *statusError) Error() string {
	status := strings.TrimSpace(fmt.Sprintf("%d %s", e.code, http.StatusText(e.code)))
	if e.text == "" {
		return status
	}
	return status + ": " + e.text
}

// isUnsent reports whether the server did not execute the request.
func (e *statusError) isUnsent() bool { return e.code < 500 && e.code != http.StatusRequestTimeout }

// send sends a request with headers to the origin and fails all others.
func (t *httpWire) send(r *http.Request) (*http.Response, error) {
	if originOf(r.URL) != t.origin {
		return nil, errRedirect
	}
	// The SDK sends some requests, such as those of a failed Connect, without the deadline of the
	// caller. Remove this when https://github.com/modelcontextprotocol/go-sdk/issues/1189 is fixed.
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(t.life, cancel)
	release := func() {
		stop()
		cancel()
	}
	r = r.Clone(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { markSent(ctx) }}))
	for name, values := range t.headers {
		r.Header[name] = values
	}
	tracing.Inject(ctx, r.Header)
	response, err := t.base.RoundTrip(r)
	if err != nil {
		release()
		return nil, err
	}
	body := &boundBody{ReadCloser: response.Body, left: maxResponseBytes, release: release}
	if isEventStream(response) {
		body.left = math.MaxInt
	}
	response.Body = body
	return response, nil
}

func isEventStream(r *http.Response) bool {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return kind == "text/event-stream"
}

type boundBody struct {
	io.ReadCloser
	left    int
	release func()
}

func (b *boundBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("the response is longer than %d bytes", maxResponseBytes)
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

func (b *boundBody) Close() error {
	b.release()
	return b.ReadCloser.Close()
}
