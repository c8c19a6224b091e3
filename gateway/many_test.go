package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/page"
	"github.com/seed-9ed7edd4/chronicle/internal/browsertest"
)

// manyClient has several contexts.
type manyClient struct {
	fakeClient
	logs map[string]*log
}

func (c manyClient) Tenant(string) (manyClient, error) { return c, nil }

func (c manyClient) Open(name string) (*log, error) {
	if l, ok := c.logs[name]; ok {
		return l, nil
	}
	return c.fakeClient.Open(name)
}

// manyOf returns a client with contexts of the names, each without events.
func manyOf(names ...string) manyClient {
	c := manyClient{fakeClient{log: newLog()}, map[string]*log{}}
	for _, name := range names {
		c.logs[name] = newLogOf(name)
	}
	return c
}

// recordedID returns the id of the recorded event in the data.
func recordedID(t *testing.T, e sse) string {
	t.Helper()
	var parsed event.Event
	require.NoError(t, json.Unmarshal([]byte(e.data), &parsed), "%+v", e)
	require.True(t, strings.HasPrefix(parsed.ID, parsed.ContextName+":"))
	return parsed.ID
}

func TestAStreamOfSeveralContexts(t *testing.T) {
	c := manyOf("a", "b.c")
	c.logs["a"].record(messages(2)...)
	w := serve(t, c, gateway.Options{})
	v := w.view("/events?context=a&context=b.c")
	first, second := v.next(), v.next()
	require.Equal(t, []string{"1.0", "2.0"}, []string{first.id, second.id})
	require.Equal(t, []string{"a:0001", "a:0002"}, []string{recordedID(t, first), recordedID(t, second)})

	c.logs["b.c"].record(event.UserMessage{Content: "Hello"}) // which creates it
	third := v.next()
	require.Equal(t, "2.1", third.id)
	require.Equal(t, "b.c:0001", recordedID(t, third))
	c.logs["b.c"].record(event.TextDelta{RequestID: "b.c:r0001", Attempt: 1, Delta: "Hi", ThroughEventID: "b.c:0001"})
	piece := v.next()
	require.Empty(t, piece.id)
	require.Contains(t, piece.data, `"contextName":"b.c"`)

	c.logs["b.c"].record(event.LLMRequestCompleted{RequestID: "b.c:r0001"})
	require.Equal(t, "2.2", v.next().id)
	late := w.view("/events?context=b.c&context=a&from=a:0001&from=b.c:0002").next()
	require.Equal(t, "2.2", late.id)
	require.Equal(t, "a:0002", recordedID(t, late))
}

// A viewer that reconnects after any event, with the id of this event, misses nothing and receives nothing twice.
func TestAStreamOfSeveralContextsResumesAnywhere(t *testing.T) {
	names := []string{"a", "b", "c"}
	c := manyOf(names...)
	const each = 4
	var want []string
	for n := range each {
		for _, name := range names {
			c.logs[name].record(event.UserMessage{Content: "x"})
			want = append(want, event.FormatID(name, n+1))
		}
	}
	w := serve(t, c, gateway.Options{})
	for cut := 1; cut < len(want); cut++ {
		var got []string
		v := w.view("/events?context=a&context=b&context=c")
		cursor := ""
		for range cut {
			e := v.next()
			got, cursor = append(got, recordedID(t, e)), e.id
		}
		v.leave()
		v = w.view("/events?context=a&context=b&context=c&from=a:0001", "Last-Event-ID", cursor)
		for range len(want) - cut {
			got = append(got, recordedID(t, v.next()))
		}
		require.ElementsMatch(t, want, got)
		for _, name := range names {
			of := slices.DeleteFunc(slices.Clone(got), func(id string) bool { return !strings.HasPrefix(id, name) })
			require.IsIncreasing(t, of)
		}
		v.leave()
	}
}

func TestEventSourceOfABrowserResumesSeveralContexts(t *testing.T) {
	browser := browsertest.Start(t)
	c := manyOf("a", "b")
	c.logs["a"].record(messages(1)...)
	w := serve(t, c, gateway.Options{Page: page.Handler()})
	tab := browser.Open(w.server.URL + "/")
	tab.Do(`window.seen = []; window.source = new EventSource("/events?context=a&context=b")
		source.onmessage = (e) => seen.push(JSON.parse(e.data).id)`)
	c.logs["b"].record(messages(2)...)
	tab.Await(`seen.length === 3`)
	w.server.CloseClientConnections()
	c.logs["a"].record(messages(1)...)
	c.logs["b"].record(messages(1)...)
	tab.Await(`seen.length >= 5`)
	var seen []string
	tab.Eval(`seen`, &seen)
	require.ElementsMatch(t, []string{"a:0001", "b:0001", "b:0002", "a:0002", "b:0003"}, seen)
}

func TestAnErrorEndsTheEventsOfOneContext(t *testing.T) {
	c := manyOf("a", "b")
	c.logs["a"].record(messages(1)...)
	c.logs["b"].record(messages(1)...)
	w := serve(t, c, gateway.Options{})
	problemOf := func(e sse) (p gateway.Problem) {
		require.Equal(t, "problem", e.kind)
		require.NoError(t, json.Unmarshal([]byte(e.data), &p))
		return p
	}

	v := w.view("/events?context=a&context=b&from=a:0009&from=b:0001")
	p := problemOf(v.next())
	require.Equal(t, "a", p.ContextName)
	require.Equal(t, http.StatusNotFound, p.Status)
	c.logs["b"].record(messages(1)...)
	require.Equal(t, "b:0002", recordedID(t, v.next()), "the others continue")
	c.logs["b"].Fail(fmt.Errorf("context b: %w", client.ErrDeleted))
	p = problemOf(v.next())
	require.Equal(t, "b", p.ContextName)
	require.Equal(t, http.StatusGone, p.Status)
	v.end() // no context is left

	c = manyOf("a", "b")
	c.logs["a"].record(messages(1)...)
	v = serve(t, c, gateway.Options{}).view("/events?context=a&context=b&from=a:0001")
	c.logs["a"].Fail(fmt.Errorf("context a: %w", client.ErrUnreachable))
	p = problemOf(v.next())
	require.Equal(t, "a", p.ContextName)
	require.Equal(t, http.StatusServiceUnavailable, p.Status)
	v.end() // so that the viewer reconnects
}

func TestInvalidStreamsOfSeveralContextsAreRejected(t *testing.T) {
	w := serve(t, manyOf("a"), gateway.Options{StreamsPerAddress: 3})
	for _, test := range []struct {
		query  string
		header []string
		status int
		detail string
	}{
		{"", nil, 400, "0 contexts"},
		{strings.Repeat("&context=a", 101), nil, 400, "1 to 100"},
		{"context=a&context=a", nil, 400, "named twice"},
		{"context=a&context=de%20mo", nil, 400, "a name has"},
		{"context=a&from=b:0001", nil, 400, "not an event of the contexts (want an id like a:0001)"},
		{"context=a&from=a", nil, 400, "not an event"},
		{"context=a", []string{"Last-Event-ID", "1.2"}, 400, "not of a stream of these 1 contexts"},
		{"context=a", []string{"Last-Event-ID", "a:0001"}, 400, "not of a stream"},
		{"context=a", []string{"Last-Event-ID", "-1"}, 400, "not of a stream"},
		{"context=a", []string{"Accept", "application/json"}, 406, "text/event-stream"},
		{"context=a&context=b&context=c&context=d", nil, 429, "3 open streams"},
	} {
		got := w.do(http.MethodGet, "/events?"+test.query, "", append([]string{"Accept", "text/event-stream"}, test.header...)...)
		require.Equal(t, test.status, got.status, got.body)
		require.Contains(t, got.body, test.detail)
	}
	v := w.view("/events?context=a&context=b&context=c") // nothing was counted before
	require.Equal(t, http.StatusTooManyRequests, w.do(http.MethodGet, "/events?context=a", "", "Accept", "text/event-stream").status)
	v.leave()
}
