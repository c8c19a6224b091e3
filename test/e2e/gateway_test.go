package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

type browser struct {
	w       *world
	url     string // of the context
	server  *httptest.Server
	gateway *gateway.Gateway
}

func (w *world) browser(c *client.Context) *browser {
	w.t.Helper()
	b := &browser{w: w, gateway: gateway.New(w.client, gateway.Options{})}
	b.server = httptest.NewServer(b.gateway)
	b.url = b.server.URL + "/contexts/" + c.Name()
	w.t.Cleanup(b.close)
	return b
}

func (b *browser) close() {
	b.gateway.Close()
	b.server.CloseClientConnections()
	b.server.Close()
}

func (b *browser) do(method, url, body string, header ...string) (status int, answer string) {
	b.w.t.Helper()
	r, err := http.NewRequestWithContext(b.w.ctx, method, url, strings.NewReader(body))
	require.NoError(b.w.t, err)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	require.NoError(b.w.t, err)
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	require.NoError(b.w.t, err)
	return response.StatusCode, string(data)
}

// say sends a user message and returns its id in the log.
func (b *browser) say(text, key string) string {
	b.w.t.Helper()
	data, err := event.New(event.UserMessage{Content: text}).MarshalJSON()
	require.NoError(b.w.t, err)
	status, answer := b.post(string(data), key)
	require.Equal(b.w.t, http.StatusAccepted, status, answer)
	var sent client.Receipt
	require.NoError(b.w.t, json.Unmarshal([]byte(answer), &sent))
	require.Len(b.w.t, sent.EventIDs, 1)
	return sent.EventIDs[0]
}

// post repeats a request with an idempotency key until a worker responds in time.
func (b *browser) post(body, key string) (status int, answer string) {
	b.w.t.Helper()
	for {
		status, answer = b.do(http.MethodPost, b.url+"/events", body, "Idempotency-Key", key)
		if status != http.StatusAccepted || strings.Contains(answer, `"eventIds"`) {
			return status, answer
		}
	}
}

type view struct {
	b        *browser
	leave    context.CancelFunc
	lines    *bufio.Scanner
	version  string
	document []byte
	status   string // the newest status event
}

func (b *browser) view(version string, document []byte) *view {
	b.w.t.Helper()
	ctx, cancel := context.WithCancel(b.w.ctx)
	b.w.t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url+"/transcript?version="+version, nil)
	require.NoError(b.w.t, err)
	r.Header.Set("Accept", "text/event-stream")
	response, err := http.DefaultClient.Do(r)
	require.NoError(b.w.t, err)
	b.w.t.Cleanup(func() { _ = response.Body.Close() })
	require.Equal(b.w.t, http.StatusOK, response.StatusCode)
	v := &view{b: b, leave: cancel, lines: bufio.NewScanner(response.Body), version: version, document: document}
	v.lines.Buffer(nil, 1<<20)
	return v
}

func (v *view) until(text string) {
	v.b.w.t.Helper()
	v.read(text, func() bool { return strings.Contains(string(v.document), text) })
}

func (v *view) untilStatus(part string) {
	v.b.w.t.Helper()
	v.read(part, func() bool { return strings.Contains(v.status, part) })
}

func (v *view) read(what string, isDone func() bool) {
	v.b.w.t.Helper()
	kind := ""
	for !isDone() {
		require.True(v.b.w.t, v.lines.Scan(), "the stream ended before %q: %s %s", what, v.document, v.status)
		name, value, _ := strings.Cut(v.lines.Text(), ": ")
		switch name {
		case "id":
			v.version = value
		case "event":
			kind = value
		case "data":
			v.apply(kind, []byte(value))
		}
	}
}

func (v *view) apply(kind string, data []byte) {
	v.b.w.t.Helper()
	switch kind {
	case "status":
		v.status = string(data)
		return
	case "document":
		var whole struct{ Document json.RawMessage }
		require.NoError(v.b.w.t, json.Unmarshal(data, &whole))
		v.document = whole.Document
		return
	}
	require.Equal(v.b.w.t, "patch", kind, "%s", data)
	patch, err := jsonpatch.DecodePatch(data)
	require.NoError(v.b.w.t, err)
	v.document, err = patch.Apply(v.document)
	require.NoError(v.b.w.t, err)
}

func TestTheGatewayShowsWhatWaitsForAWorker_Alone(t *testing.T) {
	needsTimelyHeartbeats(t)
	w := newWorld(t, llmtest.Answer("Once upon", " a time").HoldAfter(1, llmtest.NewGate()), llmtest.Answer("Here I am."))
	c := w.open("unattended")
	b := w.browser(c)
	v := b.view("", nil)
	status, answer := b.do(http.MethodPost, b.url+"/events", `{"_tag":"UserMessageEvent","content":"Anyone?"}`)
	require.Equal(t, http.StatusAccepted, status, answer)
	v.untilStatus(`"content":"Anyone?"`)
	v.untilStatus("noWorkerSince")
	require.Contains(t, b.view("", nil).firstStatus(), `"content":"Anyone?"`, "another viewer")

	worker := w.process(contexts.Both)
	v.until("Once upon")
	v.untilStatus(`"status":"answering"`)
	require.NotContains(t, v.status, "Anyone?", "it is recorded")
	worker.kill()
	v.untilStatus("noWorkerSince")
	require.Contains(t, v.status, `"status":"answering"`)
	w.process(contexts.Both)
	v.until("Here I am.")
	v.untilStatus(`"status":"idle"`)
	require.NotContains(t, v.status, "noWorkerSince")
	require.Equal(t, 1, strings.Count(string(v.document), "Anyone?"))
}

func (v *view) firstStatus() string {
	v.untilStatus("{")
	return v.status
}

func TestTheGatewayStreamsAnAnswerAndStopsIt(t *testing.T) {
	t.Parallel()
	gate := llmtest.NewGate()
	w := newWorld(t, llmtest.Answer("Once upon", " a time").HoldAfter(1, gate), llmtest.Answer("Fine."))
	w.worker()
	c := w.open("page")
	b := w.browser(c)
	v := b.view("", nil)
	v.until(`"entries":[]`) // the context does not exist yet
	b.say("Tell me a story", "one")
	v.until("Once upon")
	require.Equal(t, b.say("Tell me a story", "one"), event.FormatID(c.Name(), 2), "a repeat is the same message")

	status, answer := b.do(http.MethodPost, b.url+"/interrupt", "")
	require.Equal(t, http.StatusAccepted, status, answer)
	v.until(`"partial":true`)
	b.say("Shorter", "two")
	v.until("Fine.")

	status, answer = b.do(http.MethodDelete, b.url+"?reason=enough", "")
	require.Equal(t, http.StatusAccepted, status, answer)
	v.until("enough")
	log := w.log(c)
	require.Contains(t, log, `LLMRequestInterrupted 1 cancelled "Once upon"`)
	require.Contains(t, log, "SessionEnded enough")
	require.Equal(t, 1, strings.Count(log, `UserMessage "Tell me a story"`))
}

func TestAUsedClientEventIDIsRejectedAtEveryDoor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.worker()
	c := w.open("used")
	named := func(text string) event.Event {
		e := event.New(event.UserMessage{Content: text, TriggersTurn: new(false)})
		e.ClientEventID = "mine"
		return e
	}
	w.sendForIDs(c, named("Hello"))
	var err error
	for err == nil { // the worker has not responded in time
		_, err = c.Send(w.ctx, named("From Go"))
	}
	require.ErrorIs(t, err, client.ErrKeyReused)

	b := w.browser(c)
	status, answer := http.StatusAccepted, ""
	for status == http.StatusAccepted { // as above
		status, answer = b.do(http.MethodPost, b.url+"/events",
			`{"_tag":"UserMessageEvent","clientEventId":"mine","content":"By HTTP","triggersTurn":false}`)
	}
	require.Equal(t, http.StatusUnprocessableEntity, status, answer)
	require.Contains(t, answer, "The Idempotency-Key or a clientEventId was used for other events")

	// An Idempotency-Key survives a restart of the gateway.
	const keyed = `{"_tag":"SetTimeoutEvent","timeoutMs":1000}`
	status, first := b.post(keyed, "key")
	require.Equal(t, http.StatusAccepted, status, first)
	b.close()
	b = w.browser(c)
	status, answer = b.post(keyed, "key")
	require.Equal(t, http.StatusAccepted, status, answer)
	require.Equal(t, first, answer, "a repeat is the same event")

	w.signal(c, map[string]any{"_tag": "UserMessageEvent", "clientEventId": "mine", "content": "By signal", "triggersTurn": false})
	rejections := 0
	for e, err := range c.Follow(w.ctx, client.FollowOptions{}) {
		require.NoError(t, err)
		if rejected, ok := e.Body.(event.InputRejected); ok {
			require.Equal(t, event.KeyReused, rejected.Reason)
			if rejections++; rejections == 3 {
				break
			}
		}
	}
	for _, e := range w.from(c, "") {
		if message, ok := e.Body.(event.UserMessage); ok {
			require.Equal(t, "Hello", message.Content)
		}
	}
}

// The gates hold the answer after each token, so that the tokens are separate deltas and precede the answer.
func TestAViewerOfAnUnknownContextReceivesItsFirstDelta(t *testing.T) {
	t.Parallel()
	gate, end := llmtest.NewGate(), llmtest.NewGate()
	w := newWorld(t, llmtest.Answer("Good", " day").HoldAfter(1, gate).HoldAfter(2, end))
	w.worker()
	c := w.open("early")
	b := w.browser(c)
	r, err := http.NewRequestWithContext(w.ctx, http.MethodGet, b.url+"/events", nil)
	require.NoError(t, err)
	r.Header.Set("Accept", "text/event-stream")
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusOK, response.StatusCode)

	follow, cancel := context.WithCancel(w.ctx)
	defer cancel()
	deltas := make(chan event.TextDelta, 10)
	go func() {
		for e, err := range c.Follow(follow, client.FollowOptions{Deltas: true}) {
			if delta, ok := e.Body.(event.TextDelta); ok && err == nil {
				deltas <- delta
			}
		}
	}()
	b.say("Hello", "one")
	lines := bufio.NewScanner(response.Body)
	next := func() event.TextDelta {
		t.Helper()
		for lines.Scan() {
			var e event.Event
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && strings.Contains(data, "TextDeltaEvent") {
				require.NoError(t, json.Unmarshal([]byte(data), &e))
				return e.Body.(event.TextDelta)
			}
		}
		require.FailNow(t, "the stream has ended")
		panic("unreachable")
	}
	for _, first := range []event.TextDelta{next(), <-deltas} {
		require.Equal(t, 0, first.Index)
		require.Equal(t, "Good", first.Delta)
	}
	gate.Open()
	require.Equal(t, " day", next().Delta)
	end.Open()
}
