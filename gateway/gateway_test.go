package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/page"
)

const hello = `{"_tag":"UserMessageEvent","content":"Hello"}`

func readSpec(t testing.TB) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromFile("openapi.json")
	require.NoError(t, err)
	return doc
}

func TestTheDescriptionIsOpenAPI(t *testing.T) {
	w := serve(t, fakeClient{log: newLog()}, gateway.Options{})
	doc, err := openapi3.NewLoader().LoadFromData([]byte(w.do(http.MethodGet, "/openapi.json", "").body))
	require.NoError(t, err)
	require.True(t, doc.IsOpenAPI31OrLater())
	require.NoError(t, doc.Validate(t.Context()))
}

func TestEventsAreSent(t *testing.T) {
	log := newLog()
	w := serve(t, fakeClient{log: log}, gateway.Options{})
	got := w.do(http.MethodPost, "/contexts/demo/events", hello)
	require.Equal(t, http.StatusAccepted, got.status, got.body)
	require.Contains(t, got.body, `"eventIds":["demo:0001"]`)
	got = w.do(http.MethodPost, "/contexts/demo/events", `[{"_tag":"SystemPrompt","content":"Briefly."},`+hello+`]`)
	require.Equal(t, http.StatusAccepted, got.status, got.body)
	require.Contains(t, got.body, `"eventIds":["demo:0002","demo:0003"]`)
	require.Len(t, log.sent, 2)
	require.Equal(t, []event.Event{event.New(event.UserMessage{Content: "Hello"})}, log.sent[0])
}

func TestAnIdempotencyKeyGivesARepeatTheSameIDs(t *testing.T) {
	log := newLog()
	w := serve(t, fakeClient{log: log}, gateway.Options{})
	ids := func(key, body string) []string {
		t.Helper()
		got := w.do(http.MethodPost, "/contexts/demo/events", body, "Idempotency-Key", key)
		require.Equal(t, http.StatusAccepted, got.status, got.body)
		var sent client.Receipt
		require.NoError(t, json.Unmarshal([]byte(got.body), &sent))
		return sent.ClientEventIDs
	}
	two := "[" + hello + "," + hello + "]"
	first := ids("one", two)
	require.NotEqual(t, first[0], first[1])
	require.Equal(t, first, ids("one", two))
	require.Equal(t, first, ids(`"one"`, two), "quotes around the key are optional")
	require.Equal(t, first, ids("one", " [ "+hello+" ,\n"+hello+"]"), "formatting of the body does not matter")
	for i, id := range ids("one", "["+hello+","+hello+","+hello+"]")[:2] {
		require.True(t, event.ReusesKey(first[i], id), "ids of another body")
	}
	require.NotEqual(t, first, ids("other", two))
	named := strings.Replace(hello, "{", `{"clientEventId":"mine",`, 1)
	require.Equal(t, []string{"mine"}, ids("one", named), "an id of the client's own stays")
	require.LessOrEqual(t, len(ids(strings.Repeat("k", 255), hello)[0]), event.MaxClientEventID)
	require.Equal(t, http.StatusBadRequest,
		w.do(http.MethodPost, "/contexts/demo/events", hello, "Idempotency-Key", strings.Repeat("k", 256)).status)
	require.Equal(t, http.StatusBadRequest,
		w.do(http.MethodPost, "/contexts/demo/events", hello, "Idempotency-Key", `""`).status)
}

func TestAnIdempotencyKeyWithADifferentBodyIsRejected(t *testing.T) {
	log := newLog()
	log.send = func(events []event.Event) (client.Receipt, error) {
		return client.Receipt{ClientEventIDs: []string{events[0].ClientEventID}}, fmt.Errorf("send to context demo: %w", client.ErrKeyReused)
	}
	got := serve(t, fakeClient{log: log}, gateway.Options{}).do(http.MethodPost, "/contexts/demo/events", hello, "Idempotency-Key", "one")
	require.Equal(t, http.StatusUnprocessableEntity, got.status, got.body)
	require.Contains(t, got.body, "urn:chronicle:problem:key-reused")
	require.Contains(t, got.body, "The Idempotency-Key or a clientEventId was used for other events")
	require.Contains(t, got.body, log.sent[0][0].ClientEventID)
}

func TestErrorsAreProblems(t *testing.T) {
	log := newLog()
	var operators bytes.Buffer
	w := serve(t, fakeClient{log: log}, gateway.Options{MaxBody: 1000, Log: slog.New(slog.NewTextHandler(&operators, nil))})
	const events = "/contexts/demo/events"
	secret := "sk-" + strings.Repeat("0123456789abcdef", 2)
	for _, test := range []struct {
		name, method, path, body string
		err                      error // returned by the context
		status                   int
		kind, detail             string
	}{
		{"an invalid name", "GET", "/contexts/de%20mo/state", "", nil, 400, "name", "1-128 of A-Z"},
		{"a body other than JSON", "POST", events, "Hello", nil, 400, "request", "not valid JSON"},
		{"a body that ends early", "POST", events, `[{"_tag":"UserMessageEvent"`, nil, 400, "request", "not valid JSON"},
		{"two bodies", "POST", events, hello + hello, nil, 400, "request", "not valid JSON"},
		{"JSON other than an event", "POST", events, `7`, nil, 422, "event", ""},
		{"an event of the session", "POST", events, `{"_tag":"SessionEndedEvent","reason":"x"}`, nil, 422, "event", "clients cannot send it"},
		{"a missing field", "POST", events, `{"_tag":"UserMessageEvent"}`, nil, 422, "event", "content: missing"},
		{"a misspelt setting", "POST", events, `{"_tag":"SetTools","maxStep":3}`, nil, 422, "event", `SetToolsEvent: unknown field "maxStep" (did you mean "maxSteps"?)`},
		{"a raw key", "POST", events, `{"_tag":"UserMessageEvent","content":"","apiKey":"` + secret + `"}`, nil, 422, "event", "apiKey"},
		{"a long body", "POST", events, `"` + strings.Repeat("x", 1000) + `"`, nil, 413, "too-large", "1000 bytes"},
		{"a malformed query", "GET", events + "?from=%zz", "", nil, 400, "request", "%zz"},
		{"an unknown path", "GET", "/nowhere", "", nil, 404, "not-found", ""},
		{"an unsupported method", "PUT", events, hello, nil, 405, "method", "GET, HEAD, POST"},
		{"no worker", "GET", "/contexts/demo/state", "", client.ErrNoWorker, 503, "no-worker", ""},
		{"Temporal unreachable", "POST", "/contexts/demo/interrupt", "", client.ErrUnreachable, 503, "unreachable", ""},
		{"another blob store", "POST", "/contexts/demo/interrupt", "", client.ErrOtherStore, 503, "other-store", ""},
		{"a timeout", "DELETE", "/contexts/demo", "", context.DeadlineExceeded, 504, "timeout", ""},
		{"any other error", "GET", "/contexts/demo/state", "", errors.New("key " + secret), 500, "internal", ""},
		// Last, since the outcome is cached for one second.
		{"no context", "GET", "/contexts/demo/state", "", client.ErrNoContext, 404, "no-context", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			log.Fail(nil)
			if test.err != nil {
				log.Fail(fmt.Errorf("at 10.0.0.1: %w", test.err))
			}
			got := w.do(test.method, test.path, test.body)
			require.Equal(t, test.status, got.status, got.body)
			require.Equal(t, "application/problem+json", got.header.Get("Content-Type"))
			var problem gateway.Problem
			require.NoError(t, json.Unmarshal([]byte(got.body), &problem))
			require.Equal(t, test.status, problem.Status)
			require.Equal(t, "urn:chronicle:problem:"+test.kind, string(problem.Type))
			require.Contains(t, problem.Detail, test.detail)
			require.Equal(t, got.header.Get("X-Request-Id"), problem.RequestID)
			require.NotContains(t, got.body, "10.0.0.1")
			require.NotContains(t, got.body, secret)
		})
	}
	require.Empty(t, log.sent)
	require.Contains(t, operators.String(), "10.0.0.1", "the log must have the cause")
	require.NotContains(t, operators.String(), secret)
}

func TestTheAdviceAboutAMissingStoreIsForTheOperator(t *testing.T) {
	log := newLog()
	log.send = func([]event.Event) (client.Receipt, error) {
		problem := "the event has 3000000 bytes of JSON (at most 61440 without a blob store; " + client.StoreAdvice + ")"
		return client.Receipt{}, &event.FieldError{Tag: event.TagUserMessage, Problem: problem}
	}
	got := serve(t, fakeClient{log: log}, gateway.Options{}).do(http.MethodPost, "/contexts/demo/events", hello)
	require.Equal(t, http.StatusUnprocessableEntity, got.status)
	require.Contains(t, got.body, "(at most 61440 without a blob store; set --blob-url or BLOB_URL of the gateway to the blob store of the workers)")
	require.NotContains(t, got.body, "use the gateway")
}

func TestARejectionNamesItsClientEventIDs(t *testing.T) {
	log := newLog()
	log.send = func([]event.Event) (client.Receipt, error) {
		return client.Receipt{ClientEventIDs: []string{"one"}}, fmt.Errorf("send to context demo: %w: busy", client.ErrRefused)
	}
	got := serve(t, fakeClient{log: log}, gateway.Options{}).do(http.MethodPost, "/contexts/demo/events", hello)
	require.Equal(t, http.StatusConflict, got.status)
	require.Contains(t, got.body, "The context rejected the events", "the title")
	require.Contains(t, got.body, "busy")
	require.Contains(t, got.body, `"clientEventIds":["one"]`)
}

func TestInputWithAnUnknownOutcomeCanBeSentAgainWithItsIDs(t *testing.T) {
	var written bytes.Buffer
	for _, err := range []error{client.ErrUnreachable, client.ErrFull, context.DeadlineExceeded} {
		log := newLog()
		log.send = func([]event.Event) (client.Receipt, error) {
			return client.Receipt{ClientEventIDs: []string{"one"}}, fmt.Errorf("send to context demo: %w", err)
		}
		got := serve(t, fakeClient{log: log}, gateway.Options{Log: slog.New(slog.NewTextHandler(&written, nil))}).do(http.MethodPost, "/contexts/demo/events", hello)
		require.GreaterOrEqual(t, got.status, http.StatusInternalServerError, err)
		require.Contains(t, got.body, `"clientEventIds":["one"]`)
		require.Contains(t, written.String(), `error="send to context demo: `+err.Error(), "the operator sees the cause")
	}
}

func TestAFullContextAsksForARetry(t *testing.T) {
	log := newLog()
	log.send = func([]event.Event) (client.Receipt, error) {
		return client.Receipt{}, fmt.Errorf("send to context demo: %w: 9,200 of 10,000 signals (start a worker, or wait for the busy ones, then send again)", client.ErrFull)
	}
	got := serve(t, fakeClient{log: log}, gateway.Options{}).do(http.MethodPost, "/contexts/demo/events", hello)
	require.Equal(t, http.StatusServiceUnavailable, got.status)
	require.NotEmpty(t, got.header.Get("Retry-After"))
	require.Contains(t, got.body, "urn:chronicle:problem:full")
	require.Contains(t, got.body, "send to context demo: full until a worker runs: 9,200 of 10,000 signals (start a worker, or wait for the busy ones, then send again)")
}

func TestOnlyJSONIsAccepted(t *testing.T) {
	log := newLog()
	w := serve(t, fakeClient{log: log}, gateway.Options{})
	for kind, status := range map[string]int{
		"text/plain": 415, "application/x-www-form-urlencoded": 415, "": 415,
		"application/json; charset=utf-8": 202, `application/json;charset="UTF-8"`: 202,
		"application/json; charset=iso-8859-1": 415,
	} {
		require.Equal(t, status, w.do(http.MethodPost, "/contexts/demo/events", hello, "Content-Type", kind).status, kind)
	}
	require.Len(t, log.sent, 2)
	for encoding, status := range map[string]int{"gzip": 415, "identity, br": 415, "identity": 202} {
		got := w.do(http.MethodPost, "/contexts/demo/events", hello, "Content-Encoding", encoding)
		require.Equal(t, status, got.status, encoding)
		if status == http.StatusUnsupportedMediaType {
			require.Contains(t, got.body, "send the body without it")
			require.Equal(t, "identity", got.header.Get("Accept-Encoding"))
		}
	}
	require.Len(t, log.sent, 3)
}

func TestAcceptSelectsAStream(t *testing.T) {
	w := serve(t, fakeClient{log: newLog(messages(1)...)}, gateway.Options{})
	for accept, kind := range map[string]string{
		"":                  "application/json",
		"*/*":               "application/json",
		"text/event-stream": "text/event-stream",
		"application/json, text/event-stream;q=.5": "text/event-stream",
		"Text/Event-Stream; q=junk":                "text/event-stream",
		"text/event-stream;q=0, application/json":  "application/json",
		"text/event-stream; q=0.000":               "application/json",
	} {
		ctx, leave := context.WithCancel(t.Context())
		request := w.request(http.MethodGet, "/contexts/demo/events", "", "Accept", accept).WithContext(ctx)
		response, err := w.server.Client().Do(request)
		require.NoError(t, err)
		require.Equal(t, kind, response.Header.Get("Content-Type"), accept)
		leave()
		_ = response.Body.Close()
	}
}

func TestInterruptAndCloseReachTheContext(t *testing.T) {
	log := newLog()
	w := serve(t, fakeClient{log: log}, gateway.Options{})
	require.Equal(t, http.StatusAccepted, w.do(http.MethodPost, "/contexts/demo/interrupt", "").status)
	require.Equal(t, http.StatusAccepted, w.do(http.MethodDelete, "/contexts/demo?reason=enough", "").status)
	require.Equal(t, []string{"interrupt", "close enough"}, log.calls)
	require.Equal(t, http.StatusOK, w.do(http.MethodGet, "/contexts/demo/state", "").status)
}

func TestReadyRequiresTemporal(t *testing.T) {
	for _, noDeltas := range []bool{true, false} {
		w := serve(t, fakeClient{log: newLog(), noDeltas: noDeltas}, gateway.Options{})
		require.JSONEq(t, fmt.Sprintf(`{"status":"ok","deltas":%t}`, !noDeltas), w.do(http.MethodGet, "/readyz", "").body)
		require.JSONEq(t, `{"status":"ok"}`, w.do(http.MethodGet, "/healthz", "").body)
	}
	away := serve(t, fakeClient{log: newLog(), err: client.ErrUnreachable}, gateway.Options{})
	got := away.do(http.MethodGet, "/readyz", "")
	require.Equal(t, http.StatusServiceUnavailable, got.status)
	require.Equal(t, "1", got.header.Get("Retry-After"))
	require.Equal(t, http.StatusServiceUnavailable, away.do(http.MethodGet, "/contexts", "").status)
	require.Equal(t, http.StatusOK, away.do(http.MethodGet, "/healthz", "").status)
}

func TestTheLogContainsRequestIDs(t *testing.T) {
	var operators bytes.Buffer
	w := serve(t, fakeClient{log: newLog()}, gateway.Options{Log: slog.New(slog.NewJSONHandler(&operators, nil))})
	got := w.do(http.MethodGet, "/contexts?q=private", "", "X-Request-Id", "mine-1")
	require.Equal(t, "mine-1", got.header.Get("X-Request-Id"))
	require.Contains(t, operators.String(), `"request_id":"mine-1"`)
	require.NotContains(t, operators.String(), "private")
	w.do(http.MethodGet, "/contexts/de%20mo/state", "")
	require.Contains(t, operators.String(), `"status":400,`)
	require.Contains(t, operators.String(), `"context":"de mo","problem":"name"}`)
	other := w.do(http.MethodGet, "/contexts", "", "X-Request-Id", "two words").header.Get("X-Request-Id")
	require.NotEmpty(t, other)
	require.NotEqual(t, "two words", other)
}

func TestThePageAndTheAPIAreServedTogether(t *testing.T) {
	w := serve(t, fakeClient{log: newLog()}, gateway.Options{Page: page.Handler()})
	got := w.do(http.MethodGet, "/", "")
	require.Contains(t, got.body, "Chronicle")
	tag := got.header.Get("ETag")
	got = w.do(http.MethodGet, "/", "", "If-None-Match", tag)
	require.Equal(t, http.StatusNotModified, got.status)
	require.Equal(t, tag, got.header.Get("ETag"))
	got = w.do(http.MethodHead, "/app.js", "")
	require.Equal(t, http.StatusOK, got.status)
	require.NotEqual(t, "0", got.header.Get("Content-Length"))
	require.Empty(t, got.body)
	require.Equal(t, http.StatusOK, w.do(http.MethodGet, "/contexts", "").status)
}

func TestUnknownPathsAreNotFound(t *testing.T) {
	for _, options := range []gateway.Options{{}, {Page: page.Handler()}, {Page: http.FileServerFS(fstest.MapFS{})}} {
		w := serve(t, fakeClient{log: newLog(messages(1)...)}, options)
		w.server.Client().CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		for _, path := range []string{
			"/nope", "/nope/x", "/contexts/", "/contexts/demo/events/", "/lib/",
			"/contexts//events", "//contexts", "/contexts/./demo/state", "/contexts/x/../demo/state",
		} {
			got := w.do(http.MethodGet, path, "")
			require.Equal(t, http.StatusNotFound, got.status, "%s: %s", path, got.body)
			require.Contains(t, got.body, `"urn:chronicle:problem:not-found"`, path)
			got = w.do(http.MethodHead, path, "")
			require.Equal(t, http.StatusNotFound, got.status, path)
			require.Empty(t, got.body, path)
		}
		require.Equal(t, http.StatusNotFound, w.do(http.MethodPost, "/context/demo/events", hello).status)
		got := w.do(http.MethodGet, "/contexts/demo", "")
		require.Equal(t, http.StatusMethodNotAllowed, got.status, "a route with another method must not fall through to the page")
		require.Equal(t, "DELETE", got.header.Get("Allow"))
	}
}

func TestServeDrainsOnShutdown(t *testing.T) {
	log := newLog(messages(1)...)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	sending, sent := make(chan struct{}), make(chan struct{})
	log.send = func([]event.Event) (client.Receipt, error) {
		close(sending)
		<-sent
		return client.Receipt{ClientEventIDs: []string{"one"}}, nil
	}
	g := gateway.New(fakeClient{log: log}, gateway.Options{})
	go func() { served <- g.Serve(ctx, listener) }()
	at := "http://" + listener.Addr().String()
	stream, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at+"/contexts/demo/events", nil)
	require.NoError(t, err)
	stream.Header.Set("Accept", "text/event-stream")
	response, err := http.DefaultClient.Do(stream)
	require.NoError(t, err)
	defer response.Body.Close()
	answered := make(chan int, 1)
	go func() {
		response, err := http.Post(at+"/contexts/demo/events", "application/json", strings.NewReader(hello))
		if err != nil {
			answered <- 0
			return
		}
		_ = response.Body.Close()
		answered <- response.StatusCode
	}()
	<-sending
	stop()
	events := make(chan sse, 10)
	readEvents(t.Context(), response.Body, events)
	require.Equal(t, sse{kind: "comment"}, <-events)
	require.Equal(t, "demo:0001", (<-events).id)
	require.NotEmpty(t, (<-events).retry, "the stream must end before the requests")
	close(sent)
	require.NoError(t, <-served)
	require.Equal(t, http.StatusAccepted, <-answered, "a running request must complete")
	_, err = http.Get(at + "/healthz")
	require.Error(t, err, "the listener must be closed")
}

func TestAHalfClosedConnectionReceivesAnError(t *testing.T) {
	for _, test := range []struct {
		name, method, path, header string
		status                     int
		kind                       string
	}{
		{"in the middle of a body", http.MethodPost, "/contexts/demo/events",
			"Content-Type: application/json\r\nContent-Length: 100\r\n", 400, "request"},
		{"while a list is read", http.MethodGet, "/contexts", "", 408, "gone"},
		{"before a stream begins", http.MethodGet, "/contexts/demo/events", "Accept: text/event-stream\r\n", 408, "gone"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newSlowList(testTimeout)
			c.log.unread = make(chan struct{})
			defer close(c.log.unread)
			w := serve(t, c, gateway.Options{})
			conn, err := net.Dial("tcp", w.server.Listener.Addr().String())
			require.NoError(t, err)
			defer conn.Close()
			_, err = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n", test.method, test.path, test.header)
			require.NoError(t, err)
			require.NoError(t, conn.(*net.TCPConn).CloseWrite())
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			require.NoError(t, err)
			got := w.reply(w.request(test.method, test.path, ""), response)
			require.Equal(t, test.status, got.status, got.body)
			require.Contains(t, got.body, "urn:chronicle:problem:"+test.kind)
		})
	}
}
