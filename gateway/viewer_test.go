package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
)

type sse struct{ id, kind, data, retry string }

func (e sse) schema() string {
	switch {
	case e.kind == "" && e.id == "" && strings.Contains(e.data, string(event.TagToolProgress)):
		return "ToolProgress"
	case e.kind == "" && e.id == "" && strings.Contains(e.data, string(event.TagReasoningDelta)):
		return "ReasoningDelta"
	case e.kind == "" && e.id == "":
		return "TextDelta"
	case e.kind == "":
		return "Event"
	}
	return map[string]string{"document": "Transcript", "patch": "Patch", "status": "StatusChange", "problem": "Problem"}[e.kind]
}

type viewer struct {
	t      testing.TB
	leave  func()
	events chan sse // closed at the end of the stream
}

func (w *webServer) stream(ctx context.Context, path string, header ...string) *http.Request {
	w.t.Helper()
	return w.request(http.MethodGet, path, "", append(header, "Accept", "text/event-stream")...).WithContext(ctx)
}

func (w *webServer) view(path string, header ...string) *viewer {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w.t.Cleanup(cancel)
	late := time.AfterFunc(testTimeout, cancel)
	response, err := w.server.Client().Do(w.stream(ctx, path, header...))
	late.Stop()
	require.NoError(w.t, err)
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(response.Body)
		require.FailNow(w.t, "no stream", "%s %s", response.Status, body)
	}
	require.Equal(w.t, "text/event-stream", response.Header.Get("Content-Type"))
	v := &viewer{t: w.t, leave: cancel, events: make(chan sse)}
	go func() {
		defer response.Body.Close()
		defer close(v.events)
		readEvents(ctx, response.Body, v.events)
	}()
	require.Equal(w.t, sse{kind: "comment"}, v.read(), "the first byte must not wait for an event")
	return v
}

// readEvents parses server-sent events, including retries and comments.
func readEvents(ctx context.Context, from io.Reader, to chan<- sse) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 64<<20)
	var e sse
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "id":
			e.id = value
		case "event":
			e.kind = value
		case "data":
			e.data = value
		case "retry":
			e.retry = value
		case "":
			if value != "" {
				e.kind = "comment"
				continue
			}
			select {
			case to <- e:
				e = sse{}
			case <-ctx.Done():
				return
			}
		}
	}
}

// next skips statuses.
func (v *viewer) next() sse {
	v.t.Helper()
	e := v.read()
	for e.kind == "status" {
		e = v.read()
	}
	return e
}

// status is the status in the next status event of the stream.
func (v *viewer) status() string {
	v.t.Helper()
	e := v.read()
	for e.kind != "status" {
		e = v.read()
	}
	require.Empty(v.t, e.id, "a status event has no id")
	var status struct {
		Status string
		Since  time.Time
	}
	require.NoError(v.t, json.Unmarshal([]byte(e.data), &status))
	require.NotZero(v.t, status.Since)
	return status.Status
}

func (v *viewer) read() sse {
	v.t.Helper()
	select {
	case e, ok := <-v.events:
		require.True(v.t, ok, "the stream has ended")
		if e.data != "" {
			require.NoError(v.t, validate(e.schema(), []byte(e.data)), "%s: %s", e.kind, e.data)
		}
		return e
	case <-time.After(testTimeout):
		require.FailNow(v.t, "timeout waiting for an event")
		panic("unreachable")
	}
}

// end waits for the end of the stream and fails if anything comes before it.
func (v *viewer) end() {
	v.t.Helper()
	select {
	case e, ok := <-v.events:
		require.False(v.t, ok, "%+v", e)
	case <-time.After(testTimeout):
		require.FailNow(v.t, "the stream does not end")
	}
}
