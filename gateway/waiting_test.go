package gateway_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
)

var stored = time.Date(2026, 1, 2, 15, 4, 6, 0, time.UTC)

// waitingInput is work that waits for a worker: a task, and messages.
func waitingInput(texts ...string) client.Waiting {
	w := client.Waiting{Since: stored}
	var events []event.Event
	for _, text := range texts {
		e := event.New(event.UserMessage{Content: text})
		e.ClientEventID, e.Timestamp = "id of "+text, stored
		events = append(events, e)
	}
	if len(events) > 0 {
		w.Input = func(context.Context) []event.Event { return events }
	}
	return w
}

// follower reads the statuses of a transcript in a synctest bubble.
type follower struct {
	t    *testing.T
	body *lockedRecorder
}

// lockedRecorder can be read while a response is written.
type lockedRecorder struct {
	mu sync.Mutex
	*httptest.ResponseRecorder
}

func (r *lockedRecorder) Write(data []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ResponseRecorder.Write(data)
}

func (r *lockedRecorder) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Body.String()
}

func follow(ctx context.Context, t *testing.T, g *gateway.Gateway) follower {
	body := &lockedRecorder{ResponseRecorder: httptest.NewRecorder()}
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, transcriptPath, nil)
	r.Host = "localhost"
	r.Header.Set("Accept", "text/event-stream")
	go g.ServeHTTP(body, r)
	return follower{t, body}
}

// newest is what waits according to the newest status, like "no worker: Hello".
func (f follower) newest() string {
	f.t.Helper()
	synctest.Wait()
	statuses := strings.Split(f.body.text(), "event: status\ndata: ")
	line, _, _ := strings.Cut(statuses[len(statuses)-1], "\n")
	require.NoError(f.t, validate("StatusChange", []byte(line)), line)
	var status struct {
		NoWorkerSince time.Time
		Stored        []struct {
			Content struct{ Content string }
		}
	}
	require.NoError(f.t, json.Unmarshal([]byte(line), &status))
	var parts []string
	if !status.NoWorkerSince.IsZero() {
		require.Equal(f.t, stored, status.NoWorkerSince)
		parts = append(parts, "no worker:")
	}
	for _, s := range status.Stored {
		parts = append(parts, s.Content.Content)
	}
	return strings.Join(parts, " ")
}

// inBubble runs a test with a gateway of a context in a synctest bubble. Time is virtual there: a sleep
// advances the clock to a limit of waiting.go, or to just before it, and takes no time.
func inBubble(t *testing.T, test func(ctx context.Context, l *log, g *gateway.Gateway)) {
	synctest.Test(t, func(t *testing.T) {
		l := newLog(event.UserMessage{Content: "Hi"})
		g := gateway.New(fakeClient{log: l}, gateway.Options{Rate: -1, KeepAlive: 1000 * time.Hour})
		ctx, leave := context.WithCancel(t.Context())
		test(ctx, l, g)
		leave()
		g.Close()
	})
}

func TestViewersSeeWhatWaitsForAWorker(t *testing.T) {
	inBubble(t, func(ctx context.Context, l *log, g *gateway.Gateway) {
		viewer := follow(ctx, t, g)
		require.Empty(t, viewer.newest())
		l.Wait(waitingInput("One"))
		time.Sleep(time.Second - 1)
		require.Empty(t, viewer.newest(), "a worker has a second")
		time.Sleep(time.Nanosecond)
		require.Equal(t, "One", viewer.newest())
		l.Wait(waitingInput("One", "Two"))
		require.Equal(t, "One Two", viewer.newest())
		time.Sleep(4 * time.Second)
		require.Equal(t, "no worker: One Two", viewer.newest())
		require.Equal(t, "no worker: One Two", follow(ctx, t, g).newest(), "a second viewer")

		// The log has the first message before the end of its page reports it.
		recorded := event.New(event.UserMessage{Content: "One"})
		recorded.ClientEventID = "id of One"
		l.Record(recorded)
		require.Equal(t, "no worker: Two", viewer.newest())
		l.Wait(client.Waiting{})
		require.Empty(t, viewer.newest())
		before := viewer.body.text()
		for range 10 { // a worker that answers
			l.Wait(waitingInput("Three"))
			synctest.Wait()
			l.Wait(client.Waiting{})
			synctest.Wait()
			time.Sleep(time.Second)
		}
		require.Equal(t, before, viewer.body.text(), "viewers must receive nothing while a worker answers")
	})
}

func TestViewersSeeThatAnAnswerHasNoWorker(t *testing.T) {
	inBubble(t, func(ctx context.Context, l *log, g *gateway.Gateway) {
		viewer := follow(ctx, t, g)
		l.Wait(waitingInput())
		time.Sleep(5*time.Second - 1)
		require.Empty(t, viewer.newest())
		time.Sleep(time.Nanosecond)
		require.Equal(t, "no worker:", viewer.newest())
	})
}

func TestViewersSeeThatTheWorkerOfAnAnswerDied(t *testing.T) {
	inBubble(t, func(ctx context.Context, l *log, g *gateway.Gateway) {
		var isUnattended atomic.Bool
		var probes atomic.Int32
		l.unattended = func() time.Time {
			probes.Add(1)
			if isUnattended.Load() {
				return stored
			}
			return time.Time{}
		}
		viewer := follow(ctx, t, g)
		synctest.Wait()
		time.Sleep(time.Hour)
		require.Zero(t, probes.Load(), "an idle context must cost nothing")
		l.record(event.LLMRequestStarted{RequestID: "demo:r0001", Attempt: 1, ThroughEventID: eventID(1)})
		for i := range 20 {
			l.record(event.TextDelta{RequestID: "demo:r0001", Attempt: 1, Index: i, Delta: "x", ThroughEventID: eventID(2)})
			time.Sleep(4 * time.Second)
		}
		require.Zero(t, probes.Load(), "an answer that streams must cost nothing")
		time.Sleep(10 * time.Minute)
		require.Less(t, probes.Load(), int32(20), "probes of a long tool call must become rare")

		isUnattended.Store(true)
		l.record(event.TextDelta{RequestID: "demo:r0001", Attempt: 1, Index: 20, Delta: "x", ThroughEventID: eventID(2)})
		time.Sleep(7 * time.Second)
		require.Empty(t, viewer.newest(), "one probe is not enough")
		time.Sleep(time.Second)
		require.Equal(t, "no worker:", viewer.newest())
		isUnattended.Store(false) // a worker takes it
		time.Sleep(time.Minute)
		require.Empty(t, viewer.newest())

		isUnattended.Store(true)
		time.Sleep(3 * time.Minute)
		require.Equal(t, "no worker:", viewer.newest())
		l.record(event.LLMRequestInterrupted{RequestID: "demo:r0001", Reason: event.ReasonCancelled})
		require.Empty(t, viewer.newest())
		time.Sleep(time.Minute)
		seen := probes.Load()
		time.Sleep(time.Hour)
		require.Equal(t, seen, probes.Load())
	})
}

func TestViewersSeeThatARunWasTerminated(t *testing.T) {
	inBubble(t, func(ctx context.Context, l *log, g *gateway.Gateway) {
		viewer := follow(ctx, t, g)
		l.record(event.LLMRequestStarted{RequestID: "demo:r0001", Attempt: 1, ThroughEventID: eventID(1)})
		time.Sleep(time.Second)
		require.Contains(t, lastStatus(viewer.body.text()), `"status":"answering"`)
		l.isTerminated.Store(true)
		time.Sleep(5 * time.Second)
		require.Contains(t, lastStatus(viewer.body.text()), `"status":"closed"`)
		l.record(event.SessionStarted{})
		time.Sleep(time.Second)
		require.Contains(t, lastStatus(viewer.body.text()), `"status":"idle"`)
	})
}

func TestViewersSeeTheInputOfATerminatedRun(t *testing.T) {
	inBubble(t, func(ctx context.Context, l *log, g *gateway.Gateway) {
		viewer := follow(ctx, t, g)
		work := waitingInput("Hello")
		work.Since = time.Time{} // no worker is waited for
		l.Wait(work)
		time.Sleep(time.Minute)
		require.Equal(t, "Hello", viewer.newest())
	})
}

func TestViewersSeeNewDetails(t *testing.T) {
	inBubble(t, func(ctx context.Context, l *log, g *gateway.Gateway) {
		viewer := follow(ctx, t, g)
		require.Empty(t, viewer.newest())
		require.NotContains(t, lastStatus(viewer.body.text()), "details")
		l.record(event.SetDetails{Title: new("Trip"), Archived: new(true)})
		require.Empty(t, viewer.newest())
		require.Contains(t, lastStatus(viewer.body.text()), `"details":{"title":"Trip","archived":true}`)
		l.record(event.UserMessage{Content: "Again", TriggersTurn: new(false)})
		require.Empty(t, viewer.newest())
		require.Contains(t, lastStatus(viewer.body.text()), `"details":{"title":"Trip"}`)
	})
}

// lastStatus returns the data of the newest status in a stream.
func lastStatus(stream string) string {
	_, data, _ := strings.Cut(stream[strings.LastIndex(stream, "event: status"):], "data: ")
	return data
}

func TestAMessageThatNoWorkerRecordsIsShownAtOnce(t *testing.T) {
	inBubble(t, func(ctx context.Context, l *log, g *gateway.Gateway) {
		l.send = func(events []event.Event) (client.Receipt, error) {
			l.Wait(waitingInput("Hello"))
			return client.Receipt{ClientEventIDs: []string{"one"}}, nil
		}
		viewer := follow(ctx, t, g)
		require.Empty(t, viewer.newest())
		require.Equal(t, http.StatusAccepted, ask(ctx, g, http.MethodPost, "/contexts/demo/events", hello).Code)
		require.Equal(t, "Hello", viewer.newest())
	})
}

func TestEachTaskOfABusyWorkerHasASecond(t *testing.T) {
	inBubble(t, func(ctx context.Context, l *log, g *gateway.Gateway) {
		viewer := follow(ctx, t, g)
		for i := range 10 { // one task follows another
			work := waitingInput("One")
			work.Since = stored.Add(time.Duration(i) * time.Second)
			l.Wait(work)
			time.Sleep(time.Second - 1)
			require.Empty(t, viewer.newest())
		}
	})
}

func TestALargeStoredEventIsANote(t *testing.T) {
	inBubble(t, func(ctx context.Context, l *log, g *gateway.Gateway) {
		viewer := follow(ctx, t, g)
		events := []event.Event{
			event.New(event.Note{Kind: event.NoteSystem, Content: strings.Repeat("x", 100_000)}),
			event.New(event.FileAttachment{Source: event.Source{Type: event.SourceURL, URL: "data:text/plain," + strings.Repeat("x", 100_000)}, MediaType: "text/plain", FileName: "a.txt"}),
			event.New(event.UserMessage{Content: "See"}),
		}
		l.Wait(client.Waiting{Since: stored, Input: func(context.Context) []event.Event { return events }})
		time.Sleep(time.Second)
		require.Equal(t, "Large NoteEvent. It is shown when a worker has recorded it. See", viewer.newest())
		require.Contains(t, viewer.body.text(), `"name":"a.txt"`)
	})
}

func TestALongStoredMessageIsCut(t *testing.T) {
	inBubble(t, func(ctx context.Context, l *log, g *gateway.Gateway) {
		viewer := follow(ctx, t, g)
		l.Wait(waitingInput(strings.Repeat("ä", 10_000)))
		time.Sleep(time.Second)
		require.Equal(t, strings.Repeat("ä", 5000)+"…", viewer.newest())
	})
}
