package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
)

func messages(n int) []event.Body {
	var bodies []event.Body
	for i := range n {
		bodies = append(bodies, event.UserMessage{Content: fmt.Sprint("message ", i+1)})
	}
	return bodies
}

// longMessages returns messages of 1 MB, of which a room buffers the newest three.
func longMessages(n int) []event.Body {
	return slices.Repeat([]event.Body{event.UserMessage{Content: strings.Repeat("x", 1_200_000)}}, n)
}

func TestEventsArePaged(t *testing.T) {
	w := serve(t, fakeClient{log: newLog(messages(5)...)}, gateway.Options{})
	var seen []string
	for next := "/contexts/demo/events?limit=2"; next != ""; {
		got := w.do(http.MethodGet, next, "")
		require.Equal(t, http.StatusOK, got.status, got.body)
		var page struct {
			Events []event.Event
			Next   string
		}
		require.NoError(t, json.Unmarshal([]byte(got.body), &page))
		require.LessOrEqual(t, len(page.Events), 2)
		for _, e := range page.Events {
			seen = append(seen, e.ID)
		}
		next = page.Next
	}
	require.Equal(t, []string{"demo:0001", "demo:0002", "demo:0003", "demo:0004", "demo:0005"}, seen)
	require.JSONEq(t, `{"events":[]}`, w.do(http.MethodGet, "/contexts/demo/events?from=demo:0005", "").body)
}

func TestAPageOfLongEventsHasFewerEvents(t *testing.T) {
	long := event.UserMessage{Content: strings.Repeat("x", 5<<20)}
	w := serve(t, fakeClient{log: newLog(long, long, long)}, gateway.Options{})
	got := w.do(http.MethodGet, "/contexts/demo/events", "")
	require.Contains(t, got.body, `"next":"/contexts/demo/events?from=demo%3A0002"`)
}

func TestAStreamHasEventsWithIDsAndDeltasWithout(t *testing.T) {
	log := newLog(event.UserMessage{Content: "<Hello>"})
	w := serve(t, fakeClient{log: log}, gateway.Options{})
	v := w.view("/contexts/demo/events")
	first := v.next()
	require.Equal(t, "demo:0001", first.id)
	require.Contains(t, first.data, `"content":"<Hello>"`, "unnecessary escapes")
	log.record(delta(0, "Good"))
	require.Equal(t, sse{data: `{"_tag":"TextDeltaEvent","contextName":"demo","requestId":"demo:r0001","attempt":1,"index":0,` +
		`"delta":"Good","reset":true,"throughEventId":"demo:0001"}`}, v.next())
	log.record(delta(1, " day"))
	require.Equal(t, " day", deltaOf(t, v.next()).Delta)
	log.record(
		event.LLMRequestStarted{RequestID: "demo:r0001", Attempt: 1, ThroughEventID: eventID(1)},
		event.AssistantMessage{RequestID: "demo:r0001", Content: "Good day"},
	)
	require.Equal(t, "demo:0002", v.next().id)
	require.Equal(t, "demo:0003", v.next().id)
	log.record(delta(2, " too late"), event.LLMRequestCompleted{RequestID: "demo:r0001"})
	require.Equal(t, "demo:0004", v.next().id)
}

func deltaOf(t *testing.T, e sse) event.TextDelta {
	t.Helper()
	require.Empty(t, e.id)
	var parsed event.Event
	require.NoError(t, json.Unmarshal([]byte(e.data), &parsed), "%+v", e)
	require.IsType(t, event.TextDelta{}, parsed.Body)
	return parsed.Body.(event.TextDelta)
}

func TestALateViewerReceivesTheTextSoFar(t *testing.T) {
	log := newLog(event.UserMessage{Content: "Hello"})
	w := serve(t, fakeClient{log: log}, gateway.Options{})
	early := w.view("/contexts/demo/events?from=demo:0001")
	log.record(delta(0, "Good"))
	require.Equal(t, "Good", deltaOf(t, early.next()).Delta)
	log.record(delta(1, " day"))
	require.Equal(t, " day", deltaOf(t, early.next()).Delta)
	late := deltaOf(t, w.view("/contexts/demo/events?from=demo:0001").next())
	require.Equal(t, "Good day", late.Delta)
	require.True(t, late.Reset)
}

func TestCoalescedDeltasKeepTheirKindAndOrder(t *testing.T) {
	log := newLog(event.UserMessage{Content: "Hello"})
	w := serve(t, fakeClient{log: log}, gateway.Options{})
	early := w.view("/contexts/demo/events?from=demo:0001")
	thought := func(index int, text string) event.ReasoningDelta { return event.ReasoningDelta(delta(index, text)) }
	for _, body := range []event.Body{thought(0, "They"), thought(1, " greet"), delta(2, "Good"), delta(3, " day"), thought(4, " me")} {
		log.record(body)
		early.next()
	}
	late := w.view("/contexts/demo/events?from=demo:0001")
	want := []event.Body{thought(2, "They greet"), delta(3, "Good day"), thought(4, " me")}
	for i, body := range want {
		var e event.Event
		require.NoError(t, json.Unmarshal([]byte(late.next().data), &e))
		d := event.TextDelta{}
		switch body := e.Body.(type) {
		case event.TextDelta:
			d = body
		case event.ReasoningDelta:
			d = event.TextDelta(body)
		}
		require.Equal(t, i == 0, d.Reset, "only the first replaces")
		d.Reset = false
		if e.Tag() == event.TagReasoningDelta {
			require.Equal(t, body, event.ReasoningDelta(d))
		} else {
			require.Equal(t, body, d)
		}
	}
}

func TestANewAttemptResetsTheAnswer(t *testing.T) {
	log := newLog(event.UserMessage{Content: "Hello"})
	w := serve(t, fakeClient{log: log}, gateway.Options{})
	v := w.view("/contexts/demo/events?from=demo:0001")
	log.record(delta(0, "Good"))
	v.next()
	log.record(event.LLMRequestStarted{RequestID: "demo:r0001", Attempt: 2, ThroughEventID: eventID(1)})
	require.Equal(t, eventID(2), v.next().id)
	again := event.TextDelta{RequestID: "demo:r0001", Attempt: 2, Reset: true, ThroughEventID: eventID(1)}
	log.record(again)
	require.Equal(t, again, deltaOf(t, v.next()),
		"the reset must arrive before any text")
}

func TestForgedDeltasReachNoViewer(t *testing.T) {
	log := newLog(event.UserMessage{Content: "Hello"})
	w := serve(t, fakeClient{log: log}, gateway.Options{})
	v := w.view("/contexts/demo/events?from=demo:0001")
	for _, forged := range []event.TextDelta{
		{RequestID: "demo:r0900", Attempt: 1, Delta: "forged", ThroughEventID: eventID(1)},
		{RequestID: "demo:r0001", Attempt: 900, Delta: "forged", ThroughEventID: eventID(1)},
	} {
		log.record(forged)
	}
	log.record(event.ToolProgress{RequestID: "demo:r0001", ToolCallID: "forged", Text: "forged"})
	log.record(delta(0, "Good"))
	require.Equal(t, "Good", deltaOf(t, v.next()).Delta)
	log.record(event.LLMRequestInterrupted{RequestID: "demo:r0001", Reason: event.ReasonCancelled, ThroughEventID: eventID(1)})
	require.Equal(t, eventID(2), v.next().id)
	log.record(event.TextDelta{RequestID: "demo:r0002", Attempt: 1, Delta: "nobody asked", ThroughEventID: eventID(2)})
	log.record(event.UserMessage{Content: "next"})
	require.Equal(t, eventID(3), v.next().id)
	require.NotContains(t, w.do(http.MethodGet, transcriptPath, "").body, "forged")
	require.NotContains(t, w.do(http.MethodGet, transcriptPath, "").body, "Good")
	require.NotContains(t, w.do(http.MethodGet, transcriptPath, "").body, "nobody asked")
}

func TestAStreamContinuesAfterLastEventID(t *testing.T) {
	log := newLog(messages(3)...)
	w := serve(t, fakeClient{log: log}, gateway.Options{})
	v := w.view("/contexts/demo/events?from=demo:0001", "Last-Event-ID", "demo:0002")
	require.Equal(t, "demo:0003", v.next().id)
	log.record(messages(1)...)
	require.Equal(t, "demo:0004", v.next().id)
}

func TestAViewerFarBehindReadsTheLog(t *testing.T) {
	const n = 10
	log := newLog(longMessages(n)...)
	w := serve(t, fakeClient{log: log}, gateway.Options{})
	ahead := w.view(fmt.Sprintf("/contexts/demo/events?from=%s", eventID(n-1)))
	require.Equal(t, eventID(n), ahead.next().id)
	v := w.view("/contexts/demo/events")
	for i := range n {
		require.Equal(t, eventID(i+1), v.next().id)
	}
	log.record(messages(1)...)
	require.Equal(t, eventID(n+1), v.next().id)
	require.Equal(t, 2, log.reads, "reads by the room and by one viewer")
}

func TestATruncatedLogIsStreamedFromItsFirstEvent(t *testing.T) {
	log := newLog()
	log.Skip(500)
	log.record(messages(400)...)
	w := serve(t, fakeClient{log: log}, gateway.Options{})
	v := w.view("/contexts/demo/events")
	for i := range 400 {
		require.Equal(t, eventID(501+i), v.next().id)
	}
}

func TestAStreamWaitsForAContext(t *testing.T) {
	log := newLog()
	w := serve(t, fakeClient{log: log}, gateway.Options{})
	require.Equal(t, http.StatusNotFound, w.do(http.MethodGet, "/contexts/demo/events", "").status)
	v := w.view("/contexts/demo/events")
	log.record(messages(1)...)
	require.Equal(t, "demo:0001", v.next().id)
}

func TestViewersShareAFollowerThatEndsAfterTheLast(t *testing.T) {
	log := newLog(messages(1)...)
	w := serve(t, fakeClient{log: log}, gateway.Options{Linger: time.Millisecond})
	var viewers []*viewer
	for range 5 {
		v := w.view("/contexts/demo/events")
		v.next()
		viewers = append(viewers, v)
	}
	log.await(t, func() bool { return log.followers == 1 })
	require.Equal(t, 1, log.reads)
	for _, v := range viewers {
		v.leave()
	}
	log.await(t, func() bool { return log.followers == 0 })
	require.Equal(t, "demo:0001", w.view("/contexts/demo/events").next().id, "a new room opens")
	log.await(t, func() bool { return log.followers == 1 })
	require.Empty(t, log.calls, "leaving must not call the context")
}

func TestAFailedStreamReportsTheProblem(t *testing.T) {
	log := newLog(messages(1)...)
	w := serve(t, fakeClient{log: log}, gateway.Options{})
	v := w.view("/contexts/demo/events")
	v.next()
	log.Fail(fmt.Errorf("at 10.0.0.1: %w", client.ErrUnreachable))
	problem := v.next()
	require.Equal(t, "problem", problem.kind)
	require.Contains(t, problem.data, `"type":"urn:chronicle:problem:unreachable"`)
	require.NotContains(t, problem.data, "10.0.0.1")
	v.end()
	got := w.do(http.MethodGet, "/contexts/demo/events", "", "Accept", "text/event-stream")
	require.Equal(t, http.StatusServiceUnavailable, got.status, "an error before the stream begins is a status")
}

func TestAStreamSendsKeepAliveComments(t *testing.T) {
	w := serve(t, fakeClient{log: newLog(messages(1)...)}, gateway.Options{KeepAlive: time.Millisecond})
	v := w.view("/contexts/demo/events?from=demo:0001")
	require.Equal(t, sse{kind: "comment"}, v.next())
}

func TestShutdownSendsViewersARetryDelay(t *testing.T) {
	log := newLog(messages(1)...)
	w := serve(t, fakeClient{log: log}, gateway.Options{})
	v := w.view("/contexts/demo/events")
	v.next()
	w.gateway.Close()
	last := v.next()
	require.NotEmpty(t, last.retry)
	v.end()
	require.Zero(t, log.followers)
	for _, path := range []string{"/readyz", "/contexts/demo/transcript"} {
		got := w.do(http.MethodGet, path, "")
		require.Equal(t, http.StatusServiceUnavailable, got.status)
		require.Contains(t, got.body, "urn:chronicle:problem:closing")
	}
	require.Equal(t, http.StatusOK, w.do(http.MethodGet, "/healthz", "").status)
}

func TestAnEventThatTheLogLacksIsNotFound(t *testing.T) {
	log := newLog(messages(2)...)
	w := serve(t, fakeClient{log: log}, gateway.Options{})
	want := `"detail":"from or Last-Event-ID demo:0003: not in the log (after a reset, read the log again from its beginning)"`
	page := w.do(http.MethodGet, "/contexts/demo/events?from=demo:0003", "")
	require.Equal(t, http.StatusNotFound, page.status)
	require.Contains(t, page.body, want)
	stream := w.do(http.MethodGet, "/contexts/demo/events", "", "Accept", "text/event-stream", "Last-Event-ID", "demo:0003")
	require.Equal(t, http.StatusNotFound, stream.status)
	require.Contains(t, stream.body, want)
	unknown := w.do(http.MethodGet, "/contexts/unknown/events?from=unknown:0001", "", "Accept", "text/event-stream")
	require.Equal(t, http.StatusNotFound, unknown.status)
	require.Contains(t, unknown.body, "urn:chronicle:problem:no-context")

	log.record(messages(1)...)
	v := w.view("/contexts/demo/events", "Last-Event-ID", "demo:0003")
	log.record(messages(1)...)
	require.Equal(t, "demo:0004", v.next().id)
}

// Another gateway, or the log itself, may have shown an event before the room reads it.
func TestAViewerMayBeAheadOfTheRoom(t *testing.T) {
	log := newLog(messages(1)...)
	isFollowed, read := make(chan struct{}), make(chan struct{})
	log.beforeFollow = func() { close(isFollowed); <-read }
	w := serve(t, fakeClient{log: log}, gateway.Options{})
	w.view("/contexts/demo/events").next()
	<-isFollowed
	log.record(messages(1)...)
	v := w.view("/contexts/demo/events?from=demo:0002")
	log.record(messages(1)...)
	close(read)
	require.Equal(t, "demo:0003", v.next().id)
}

func TestInvalidFromIsRejected(t *testing.T) {
	w := serve(t, fakeClient{log: newLog(messages(1)...)}, gateway.Options{})
	for _, path := range []string{
		"/contexts/demo/events?from=7", "/contexts/demo/events?from=other:0001", "/contexts/demo/events?from=demo:1", "/contexts/demo/events?limit=0",
		"/contexts/demo/events?limit=1001", "/contexts/demo/events?limit=many",
	} {
		t.Run(path, func(t *testing.T) {
			require.Equal(t, http.StatusBadRequest, w.do(http.MethodGet, path, "").status)
		})
	}
	got := w.do(http.MethodGet, "/contexts/demo/events", "", "Accept", "text/event-stream", "Last-Event-ID", "junk")
	require.Equal(t, http.StatusBadRequest, got.status)
}
