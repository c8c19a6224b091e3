package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
)

const transcriptPath = "/contexts/demo/transcript"

type transcript struct {
	Version  string
	Document json.RawMessage
}

func (w *webServer) transcript() transcript {
	w.t.Helper()
	got := w.do(http.MethodGet, transcriptPath, "")
	require.Equal(w.t, http.StatusOK, got.status, got.body)
	var parsed transcript
	require.NoError(w.t, json.Unmarshal([]byte(got.body), &parsed))
	return parsed
}

func (t *transcript) apply(e sse) error {
	switch e.kind {
	case "document":
		if err := json.Unmarshal([]byte(e.data), t); err != nil {
			return err
		}
		if t.Version != e.id {
			return fmt.Errorf("version %s with id %s", t.Version, e.id)
		}
		return nil
	case "patch":
		patch, err := jsonpatch.DecodePatch([]byte(e.data))
		if err != nil {
			return fmt.Errorf("%s: %w", e.data, err)
		}
		t.Version = e.id
		t.Document, err = patch.Apply(t.Document)
		return err
	case "comment", "status":
		return nil
	}
	return fmt.Errorf("unexpected: %+v", e)
}

// requireSame compares documents, except for the boundaries of chunks.
func requireSame(t testing.TB, want, got transcript) {
	t.Helper()
	require.Equal(t, want.Version, got.Version)
	require.JSONEq(t, joined(t, want), joined(t, got))
}

func joined(t testing.TB, of transcript) string {
	t.Helper()
	var document struct {
		Entries []struct {
			Type    string
			Content map[string]any
		}
	}
	require.NoError(t, json.Unmarshal(of.Document, &document), string(of.Document))
	for _, entry := range document.Entries {
		chunks, _ := entry.Content["chunks"].([]any)
		text := entry.Content["content"].(string)
		for _, chunk := range chunks {
			text += chunk.(string)
		}
		entry.Content["content"] = text
		delete(entry.Content, "chunks")
	}
	data, err := json.Marshal(document)
	require.NoError(t, err)
	return string(data)
}

func (v *viewer) follow(t *transcript, text string) {
	v.t.Helper()
	for !strings.Contains(string(t.Document), text) {
		require.NoError(v.t, t.apply(v.next()))
	}
}

func answerEvents(n int) (deltas []event.Body, end []event.Body) {
	text := ""
	for i := range n {
		piece := fmt.Sprint("word ", i, " ")
		text += piece
		deltas = append(deltas, delta(i, piece))
	}
	return deltas, []event.Body{
		event.AssistantMessage{RequestID: "demo:r0001", Content: text, ThroughEventID: eventID(1)},
		event.LLMRequestCompleted{RequestID: "demo:r0001", FinishReason: "stop"},
	}
}

func TestPatchesProduceTheDocumentOfTheGateway(t *testing.T) {
	log := newLog(answering("Hello")...)
	w := serve(t, fakeClient{log: log}, gateway.Options{})
	v := w.view(transcriptPath)
	var mine transcript
	require.NoError(t, mine.apply(v.next()))
	require.Contains(t, string(mine.Document), "Hello")
	deltas, end := answerEvents(5)
	for _, body := range append(deltas, end...) {
		log.record(body)
		require.NoError(t, mine.apply(v.next()))
		requireSame(t, w.transcript(), mine)
	}
}

func TestAViewerResumesAtItsVersion(t *testing.T) {
	log := newLog(answering("Hello")...)
	w := serve(t, fakeClient{log: log}, gateway.Options{})
	mine := w.transcript()
	old := mine
	deltas, end := answerEvents(5)
	log.record(deltas...)
	log.record(append(end, event.UserMessage{Content: "that is all"})...)
	for _, open := range []func() *viewer{
		func() *viewer { return w.view(transcriptPath + "?version=" + old.Version) },
		func() *viewer { return w.view(transcriptPath, "Last-Event-ID", old.Version) },
		func() *viewer { return w.view(transcriptPath+"?version=junk", "Last-Event-ID", old.Version) },
	} {
		mine := old
		v := open()
		first := v.next()
		require.Equal(t, "patch", first.kind)
		require.NoError(t, mine.apply(first))
		v.follow(&mine, "that is all")
		requireSame(t, w.transcript(), mine)
		v.leave()
	}
}

func TestAnUnknownVersionGetsTheDocument(t *testing.T) {
	log := newLog(event.UserMessage{Content: "Hello"})
	before := serve(t, fakeClient{log: log}, gateway.Options{}).transcript()
	after := serve(t, fakeClient{log: log}, gateway.Options{})
	for _, version := range []string{before.Version, "1", "junk", after.transcript().Version + "0", ".", ""} {
		require.Equal(t, "document", after.view(transcriptPath, "Last-Event-ID", version).next().kind, version)
	}
}

func TestATranscriptWaitsForAContext(t *testing.T) {
	log := newLog()
	w := serve(t, fakeClient{log: log}, gateway.Options{})
	require.Equal(t, http.StatusNotFound, w.do(http.MethodGet, transcriptPath, "").status)
	v := w.view(transcriptPath)
	var mine transcript
	require.NoError(t, mine.apply(v.next()))
	require.JSONEq(t, `{"entries":[]}`, string(mine.Document))
	log.record(event.UserMessage{Content: "Hello"})
	require.NoError(t, mine.apply(v.next()))
	require.Contains(t, string(mine.Document), "Hello")
	requireSame(t, w.transcript(), mine)
}

func TestALogThatIsResetBeforeItIsFollowedIsReadAgain(t *testing.T) {
	l := newLog(event.UserMessage{Content: "first"}, event.UserMessage{Content: "abandoned"})
	l.beforeFollow = sync.OnceFunc(func() {
		branch, _, _ := l.Snapshot()
		branch = slices.Clone(branch)
		branch[1].Body, branch[1].Timestamp = event.UserMessage{Content: "branch"}, branch[1].Timestamp.Add(time.Second)
		l.Replace(branch)
		l.record(event.UserMessage{Content: "later"})
	})
	w := serve(t, fakeClient{log: l}, gateway.Options{})
	require.Eventually(t, func() bool {
		text := w.do(http.MethodGet, transcriptPath, "").body // or that it was reset
		return strings.Contains(text, "branch") && strings.Contains(text, "later") && !strings.Contains(text, "abandoned")
	}, testTimeout, time.Millisecond)
}

func TestViewersLearnThatTheLogWasReplaced(t *testing.T) {
	l := newLog(event.UserMessage{Content: "first"}, event.UserMessage{Content: "second"})
	w := serve(t, fakeClient{log: l}, gateway.Options{})
	v := w.view("/contexts/demo/events")
	require.Equal(t, eventID(1), v.next().id)
	require.Equal(t, eventID(2), v.next().id)
	events, _, _ := l.Snapshot()
	another := event.New(event.UserMessage{Content: "of another context with this name"})
	another.ID, another.Timestamp = eventID(1), events[1].Timestamp.Add(time.Hour)
	l.Replace(append(events, another))
	require.Contains(t, v.problem(), `"urn:chronicle:problem:reset","title":"The log was replaced","status":503,"detail":"the context was reset, or deleted and created again: read it again"`)
}

func TestATranscriptStreamHasTheStatus(t *testing.T) {
	started := func(number int) event.LLMRequestStarted {
		return event.LLMRequestStarted{RequestID: event.FormatRequestID("demo", number), ProviderID: "openai", Model: "gpt-4o-mini", Attempt: 1}
	}
	log := newLog()
	w := serve(t, fakeClient{log: log}, gateway.Options{})
	v := w.view(transcriptPath)
	for _, step := range []struct {
		name   string
		bodies []event.Body
		status string
	}{
		{"the start of the log", []event.Body{event.SessionStarted{}}, "idle"},
		{"a request", []event.Body{event.UserMessage{Content: "Hello"}, started(1)}, "answering"},
		{"its answer, after deltas", []event.Body{delta(0, "Good"), delta(1, " day"), event.AssistantMessage{Content: "Good day", RequestID: "demo:r0001"}, event.LLMRequestCompleted{RequestID: "demo:r0001"}}, "idle"},
		{"another request", []event.Body{started(2)}, "answering"},
		{"its interruption", []event.Body{
			event.LLMRequestCompleted{RequestID: "demo:r0001"}, // of an earlier request
			event.LLMRequestInterrupted{RequestID: "demo:r0002", Reason: event.ReasonCancelled},
		}, "idle"},
		{"a fallback", []event.Body{started(3), event.LLMRequestFellBack{RequestID: "demo:r0003", FromProvider: "a", ToProvider: "b"}}, "answering"},
		{"a failure", []event.Body{event.LLMRequestFailed{RequestID: "demo:r0003", Error: "no"}}, "idle"},
		{"the end of the session", []event.Body{event.SessionEnded{Reason: "closed"}, event.UserMessage{Content: "late"}}, "closed"},
		{"a new session", []event.Body{event.SessionStarted{}}, "idle"},
		{"a request of a terminated session", []event.Body{started(4)}, "answering"},
		{"the session after it", []event.Body{event.SessionStarted{}}, "idle"},
	} {
		for _, body := range step.bodies {
			log.record(body)
		}
		require.Equal(t, step.status, v.status(), step.name)
		require.Equal(t, step.status, w.view(transcriptPath).status(), "a late viewer, at %s", step.name)
	}
}

func TestAFailedTranscriptReportsTheProblem(t *testing.T) {
	log := newLog(event.UserMessage{Content: "Hello"})
	w := serve(t, fakeClient{log: log}, gateway.Options{})
	v := w.view(transcriptPath)
	v.next()
	log.Fail(client.ErrUnreachable)
	require.Equal(t, "problem", v.next().kind)
	v.end()
	require.Equal(t, http.StatusServiceUnavailable, w.do(http.MethodGet, transcriptPath, "").status)
	require.Equal(t, http.StatusServiceUnavailable, w.do(http.MethodGet, transcriptPath, "", "Accept", "text/event-stream").status)
	log.Fail(nil)
	require.Contains(t, string(w.transcript().Document), "Hello", "the next request opens a new room")
}

func TestAThousandViewersReceiveTheSameDocument(t *testing.T) {
	const viewers = 1000
	log := newLog(answering("Hello")...)
	w := serve(t, fakeClient{log: log}, gateway.Options{})
	var watching, done sync.WaitGroup
	var documents [viewers]transcript
	for i := range viewers {
		watching.Add(1)
		done.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 2*testTimeout)
			defer cancel()
			events := make(chan sse)
			first := sync.OnceFunc(watching.Done)
			defer first()
			response, err := w.server.Client().Do(w.stream(ctx, transcriptPath))
			if err != nil {
				t.Error(err)
				return
			}
			defer response.Body.Close()
			go func() {
				defer close(events)
				readEvents(ctx, response.Body, events)
			}()
			for e := range events {
				if err := documents[i].apply(e); err != nil {
					t.Error(err)
					return
				}
				first()
				if strings.Contains(e.data, "that is all") {
					return
				}
			}
		})
	}
	watching.Wait()
	deltas, end := answerEvents(50)
	for _, body := range append(deltas, append(end, event.UserMessage{Content: "that is all"})...) {
		log.record(body)
	}
	done.Wait()
	newest := w.transcript()
	for _, document := range documents {
		requireSame(t, newest, document)
	}
	require.Equal(t, 1, log.reads)
}

func TestASlowViewerDelaysNoOther(t *testing.T) {
	for _, path := range []string{transcriptPath, "/contexts/demo/events?from=demo:0002"} {
		t.Run(path, func(t *testing.T) {
			log := newLog(answering("Hello")...)
			exported := sdkmetric.NewManualReader()
			w := serve(t, fakeClient{log: log}, gateway.Options{Meters: sdkmetric.NewMeterProvider(sdkmetric.WithReader(exported))})
			conn, err := net.Dial("tcp", w.server.Listener.Addr().String())
			require.NoError(t, err)
			defer conn.Close()
			_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n", path)
			require.NoError(t, err)
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			require.NoError(t, err)

			reader := w.view(path)
			if path == transcriptPath {
				reader.next()
			}
			log.record(delta(0, "begin"))
			reader.next()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			late := make(chan sse)
			go readEvents(ctx, response.Body, late)
			for e := range late { // from now on, the viewer is slow
				if strings.Contains(e.data, "begin") {
					break
				}
			}
			const pieces = 200
			for i := range pieces {
				log.record(delta(i+1, strings.Repeat("x", 64<<10)))
				reader.next()
			}
			log.record(event.AssistantMessage{RequestID: "demo:r0001", Content: "the end", ThroughEventID: eventID(1)})
			require.Contains(t, reader.next().data, "the end")

			seen := 0
			for e := range late {
				if seen++; strings.Contains(e.data, "the end") {
					break
				}
			}
			require.Less(t, seen, pieces, "unread deltas must be coalesced")
			// The gateway counts an update after it has sent it.
			require.Eventually(t, func() bool { return counter(t, exported, "chronicle_deltas_coalesced") > 0 }, testTimeout, time.Millisecond)
			sent, coalesced := counter(t, exported, "chronicle_deltas_sent"), counter(t, exported, "chronicle_deltas_coalesced")
			require.GreaterOrEqual(t, sent, float64(pieces), "the other viewer reads each delta")
			require.LessOrEqual(t, sent+coalesced, 2.*(pieces+1), "each viewer receives each delta once")
		})
	}
}

func counter(t *testing.T, reader *sdkmetric.ManualReader, name string) float64 {
	t.Helper()
	var data metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &data))
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			if sum, ok := m.Data.(metricdata.Sum[float64]); ok && m.Name == name {
				return sum.DataPoints[0].Value
			}
		}
	}
	return 0
}
