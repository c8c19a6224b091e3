package gateway_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/internal/clienttest"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// testTimeout bounds waits in tests. It only catches hangs.
const testTimeout = time.Minute

// log is a fake context. Tests write its log.
type log struct {
	*clienttest.Log

	mu      sync.Mutex
	changed chan struct{} // closed and replaced by each change of the fields below
	// followers is the number of running calls of Follow, reads the number of calls of
	// Events.
	followers, reads int
	calls            []string
	sent             [][]event.Event
	// unread blocks calls of Events until it is closed, unless it is nil.
	unread chan struct{}
	// send replaces Send, which records events by default.
	send         func([]event.Event) (client.Receipt, error)
	beforeFollow func()                                              // called by each Follow; nil: not called
	branch       func(client.BranchOptions) (client.Branched, error) // replaces Branch; nil: unexpected
	branches     func() client.Branches                              // replaces Branches; nil: there are none
	// unattended is the result of UnattendedSince; nil: a worker has the answer.
	unattended func() time.Time
	waits      []reducer.Call // calls of a running request, which wait; nil: State is that of a new context
	// isTerminated means that the run was terminated from outside.
	isTerminated atomic.Bool
}

func newLog(bodies ...event.Body) *log { return newLogOf("demo", bodies...) }

func newLogOf(name string, bodies ...event.Body) *log {
	at := func(int) time.Time { return time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC) }
	l := &log{Log: clienttest.NewLog(name, at), changed: make(chan struct{})}
	l.record(bodies...)
	return l
}

// record appends events to the log, and streams deltas.
func (l *log) record(bodies ...event.Body) {
	events := make([]event.Event, len(bodies))
	for i, body := range bodies {
		events[i] = event.New(body)
	}
	l.Record(events...)
}

// change requires the lock.
func (l *log) change() {
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *log) await(t testing.TB, isSo func() bool) {
	t.Helper()
	late := time.After(testTimeout)
	for {
		l.mu.Lock()
		so, changed := isSo(), l.changed
		l.mu.Unlock()
		if so {
			return
		}
		select {
		case <-changed:
		case <-late:
			t.Fatal("timeout waiting for a condition")
		}
	}
}

func (l *log) Events(ctx context.Context, from string) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		l.mu.Lock()
		l.reads++
		l.mu.Unlock()
		if l.unread != nil {
			<-l.unread
		}
		l.Log.Events(ctx, from)(yield)
	}
}

func (l *log) Follow(ctx context.Context, options client.FollowOptions) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		count := func(n int) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.followers += n
			l.change()
		}
		count(1)
		defer count(-1)
		if l.beforeFollow != nil {
			l.beforeFollow()
		}
		l.Log.Follow(ctx, options)(yield)
	}
}

func (l *log) Send(_ context.Context, events ...event.Event) (client.Receipt, error) {
	l.mu.Lock()
	l.sent = append(l.sent, events)
	l.change()
	l.mu.Unlock()
	if l.send != nil {
		return l.send(events)
	}
	var sent client.Receipt
	for _, e := range events {
		sent.ClientEventIDs = append(sent.ClientEventIDs, e.ClientEventID)
		sent.EventIDs = append(sent.EventIDs, l.Record(event.New(e.Body))...)
	}
	return sent, nil
}

func (l *log) Attachment(_ context.Context, id string) (event.FileAttachment, error) {
	events, _, err := l.Snapshot()
	for _, e := range events {
		if file, ok := e.Body.(event.FileAttachment); ok && e.ID == id && file.Source.Data != nil {
			return file, err
		}
	}
	return event.FileAttachment{}, fmt.Errorf("event %s: %w", id, client.ErrNoAttachment)
}

func (l *log) State(context.Context) (wire.State, error) {
	_, _, err := l.Snapshot()
	if l.waits != nil {
		return wire.State{Request: &reducer.Request{Calls: l.waits}}, err
	}
	return wire.StateOf(reducer.Load(l.Name(), reducer.Reduce), time.Time{}), err
}

func (l *log) UnattendedSince(context.Context) (time.Time, error) {
	if l.isTerminated.Load() {
		return time.Time{}, client.ErrUnanswered
	}
	if l.unattended == nil {
		return time.Time{}, nil
	}
	return l.unattended(), nil
}

func (l *log) Branch(ctx context.Context, options client.BranchOptions) (client.Branched, error) {
	return l.branch(options)
}

func (l *log) Branches(context.Context) (client.Branches, error) {
	_, _, err := l.Snapshot()
	if l.branches == nil {
		return client.Branches{Contexts: []client.Branch{{ContextName: l.Name()}}, Choices: []client.Choice{}}, err
	}
	return l.branches(), err
}

func (l *log) Interrupt(context.Context) error { return l.ask("interrupt") }

func (l *log) Close(_ context.Context, reason string) error { return l.ask("close " + reason) }

func (l *log) StartDeletion(_ context.Context, o client.DeleteOptions) error {
	return l.ask("delete " + string(o.Forks))
}

func (l *log) Deletion(context.Context) (client.Deletion, error) {
	at := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	return client.Deletion{
		ContextName: l.Name(), StartedAt: at, EndedAt: at, Removed: []wire.Removed{{Place: wire.PlaceRuns, Count: 2, At: at}},
		KeptForks: []string{"kept"}, DeletedForks: []string{"copy"},
		Remains: wire.Remains,
	}, l.ask("deletion")
}

func (l *log) ask(what string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, what)
	l.change()
	_, _, err := l.Snapshot()
	return err
}

type fakeClient struct {
	log      *log
	list     []client.Summary
	limits   client.Limits
	err      error                                           // returned by List and Ping
	noDeltas bool                                            // without deltas
	usage    func(names []string) (client.StoreUsage, error) // nil: unexpected
}

func (c fakeClient) Tenant(string) (fakeClient, error) { return c, nil }

func (c fakeClient) Open(name string) (*log, error) {
	if _, err := client.New(client.Options{}).Open(name); err != nil {
		return nil, err
	}
	if name != c.log.Name() {
		return newLogOf(name), nil
	}
	return c.log, nil
}

func (c fakeClient) List(context.Context, string) iter.Seq2[client.Summary, error] {
	return func(yield func(client.Summary, error) bool) {
		for _, s := range c.list {
			if !yield(s, nil) {
				return
			}
		}
		if c.err != nil {
			yield(client.Summary{}, c.err)
		}
	}
}

func (c fakeClient) StoreUsage(_ context.Context, names ...string) (client.StoreUsage, error) {
	return c.usage(names)
}

func (c fakeClient) Summary(_ context.Context, name string) (client.Summary, error) {
	for _, s := range c.list {
		if s.ContextName == name {
			return s, nil
		}
	}
	return client.Summary{}, client.ErrNoContext
}

func (c fakeClient) Events(ctx context.Context, name, from string) iter.Seq2[event.Event, error] {
	if name == c.log.Name() {
		return c.log.Log.Events(ctx, from) // not counted
	}
	return newLogOf(name).Events(ctx, from)
}

func (fakeClient) Stored(context.Context) iter.Seq2[string, error] {
	return func(func(string, error) bool) {}
}

func (fakeClient) Watch(context.Context, func(string)) error { return nil }

func (c fakeClient) Live() bool { return !c.noDeltas }

func (c fakeClient) Ping(context.Context) error { return c.err }

func (c fakeClient) Limits() client.Limits { return c.limits }

type webServer struct {
	t       testing.TB
	gateway *gateway.Gateway
	server  *httptest.Server
	spec    routers.Router
}

func serve[T gateway.TenantClient[C], C gateway.Context](t testing.TB, c gateway.Client[T], options gateway.Options) *webServer {
	t.Helper()
	if options.Rate == 0 {
		options.Rate = -1
	}
	spec, err := specification()
	require.NoError(t, err)
	w := &webServer{t: t, gateway: gateway.New(c, options), spec: spec}
	w.server = httptest.NewServer(w.gateway)
	t.Cleanup(func() {
		w.gateway.Close()
		w.server.CloseClientConnections()
		w.server.Close()
	})
	return w
}

var specification = sync.OnceValues(func() (routers.Router, error) {
	spec, err := openapi3.NewLoader().LoadFromFile("openapi.json")
	if err != nil {
		return nil, err
	}
	return gorillamux.NewRouter(spec)
})

func (w *webServer) request(method, path, body string, header ...string) *http.Request {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.server.URL+path, strings.NewReader(body))
	require.NoError(w.t, err)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		if r.Header.Set(header[i], header[i+1]); header[i] == "Host" {
			r.Host = header[i+1]
		}
	}
	return r
}

type reply struct {
	status int
	header http.Header
	body   string
}

func (w *webServer) do(method, path, body string, header ...string) reply {
	w.t.Helper()
	response, err := w.server.Client().Do(w.request(method, path, body, header...))
	require.NoError(w.t, err)
	return w.reply(w.request(method, path, body, header...), response)
}

// reply reads a response and validates it against openapi.json.
func (w *webServer) reply(request *http.Request, response *http.Response) reply {
	w.t.Helper()
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	require.NoError(w.t, err)
	if response.StatusCode >= http.StatusBadRequest {
		require.Equal(w.t, "application/problem+json", response.Header.Get("Content-Type"), "%s %s", request.Method, request.URL)
	}
	request.URL.Host, request.URL.Scheme, request.Host = "", "", ""
	if route, parameters, err := w.spec.FindRoute(request); err == nil {
		require.NoError(w.t, openapi3filter.ValidateResponse(w.t.Context(), &openapi3filter.ResponseValidationInput{
			RequestValidationInput: &openapi3filter.RequestValidationInput{Request: request, PathParams: parameters, Route: route},
			Status:                 response.StatusCode, Header: response.Header,
			Body:    io.NopCloser(bytes.NewReader(data)),
			Options: &openapi3filter.Options{IncludeResponseStatus: true},
		}), "%s %s: %d %s", request.Method, request.URL, response.StatusCode, data)
	}
	return reply{response.StatusCode, response.Header, string(data)}
}

// ask makes a request without a server, for use in a synctest bubble.
func ask(ctx context.Context, g *gateway.Gateway, method, path, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
	r.Host = "localhost"
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	return w
}

func eventID(counter int) string { return event.FormatID("demo", counter) }

// throughOf returns the newest event that the provider of a delta was shown.
// answering is a log whose request demo:r0001 runs.
func answering(question string) []event.Body {
	return []event.Body{
		event.UserMessage{Content: question},
		event.LLMRequestStarted{RequestID: "demo:r0001", ProviderID: "openai", Model: "gpt-4o-mini", Attempt: 1, ThroughEventID: eventID(1)},
	}
}

func delta(index int, text string) event.TextDelta {
	return event.TextDelta{RequestID: "demo:r0001", Attempt: 1, Index: index, Delta: text, ThroughEventID: eventID(1)}
}
