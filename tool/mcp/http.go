package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-9ed7edd4/chronicle/internal/tracing"
)

const (
	maxResponseBytes = maxMessageBytes // of a response that is no stream
	maxRedirects     = 5
)

// httpTransport returns a transport that sends headers to the origin of the server only.
func httpTransport(life context.Context, s Server, headers http.Header, base http.RoundTripper, w *wire, t timing) (sdk.Transport, error) {
	endpoint, err := url.Parse(s.URL)
	if err != nil {
		return nil, errors.New("invalid url")
	}
	client := &http.Client{
		Transport:     &boundTransport{life: life, origin: originOf(endpoint), headers: headers, base: base},
		CheckRedirect: checkRedirect,
	}
	return boundConnection{&sdk.StreamableClientTransport{
		Endpoint: s.URL, HTTPClient: &http.Client{Transport: &httpWire{client: client, wire: w, backoff: t.backoff}}, MaxEventSize: -1,
	}, life}, nil
}

// boundConnection closes its connection when life ends. The SDK detaches connections from the context of Connect;
// see [boundTransport.RoundTrip].
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

var errRedirect = unsentError{errors.New("redirected to another scheme, host or port (set the url of the server itself)")}

// checkRedirect follows redirects within an origin that keep the method.
func checkRedirect(r *http.Request, via []*http.Request) error {
	switch first := via[0]; {
	case originOf(r.URL) != originOf(first.URL):
		return errRedirect
	case r.Method != first.Method || len(via) > maxRedirects:
		return unsentError{errors.New("redirected (set the url that the server redirects to)")}
	}
	return nil
}

// boundTransport adds headers to requests to one origin and fails all others.
type boundTransport struct {
	life    context.Context // ends all requests
	origin  string
	headers http.Header
	base    http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (t *boundTransport) RoundTrip(r *http.Request) (*http.Response, error) {
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
