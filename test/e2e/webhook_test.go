package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/hook"
	"github.com/seed-9ed7edd4/chronicle/hook/webhook"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

var webhookSecret = "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 32))

// hooksFile writes a file with one webhook.
func hooksFile(t *testing.T, url, settings string) string {
	t.Helper()
	dir := t.TempDir()
	secret, file := filepath.Join(dir, "secret"), filepath.Join(dir, "hooks.toml")
	require.NoError(t, os.WriteFile(secret, []byte(webhookSecret), 0o600))
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, "[[hooks]]\nname = \"remote\"\nurl = %q\nsecret = %q\n%s", url, "file:"+secret, settings), 0o600))
	return file
}

func readHooks(t *testing.T, file string) []hook.Hook {
	t.Helper()
	hooks, err := webhook.ReadFile(file, webhook.Options{AllowLoopback: true})
	require.NoError(t, err)
	return hooks
}

// eventEndpoint passes deliveries to an observer.
type eventEndpoint struct {
	*observer
	url string

	mu     sync.Mutex
	status int                    // of responses without a delivery; 0: events are accepted
	held   func(hook.Events) bool // the first delivery that is accepted but not answered; nil: none
	seen   []string               // webhook-id and body of each call
	holds  chan struct{}          // closed when a delivery is held
}

func newEventEndpoint(t *testing.T) *eventEndpoint {
	e := &eventEndpoint{observer: newObserver(), holds: make(chan struct{})}
	verifier, err := standardwebhooks.NewWebhook(webhookSecret)
	require.NoError(t, err)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = verifier.Verify(body, r.Header)
		}
		var m webhook.EventMessage
		if err == nil {
			err = json.Unmarshal(body, &m)
		}
		events := hook.Events{ContextName: m.Data.ContextName, RunID: m.Data.RunID, After: m.Data.After, Cursor: m.Data.Cursor, Epoch: m.Data.Epoch}
		for _, data := range m.Data.Events {
			var one event.Event
			if err == nil {
				err = json.Unmarshal(data, &one)
			}
			events.Events = append(events.Events, one)
		}
		if err != nil {
			t.Errorf("an invalid delivery: %v", err)
			return
		}
		e.mu.Lock()
		e.seen = append(e.seen, r.Header.Get("webhook-id")+" "+string(body))
		status, held := e.status, e.held
		if held != nil && held(events) {
			e.held = nil
		} else {
			held = nil
		}
		e.mu.Unlock()
		if status != 0 {
			rw.WriteHeader(status)
			return
		}
		if err := e.take(r.Context(), events); err != nil {
			t.Error(err)
		}
		if held != nil {
			close(e.holds)
			<-r.Context().Done()
		}
	}))
	t.Cleanup(server.Close)
	e.url = server.URL
	return e
}

func (e *eventEndpoint) respond(status int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.status = status
}

func (e *eventEndpoint) calls() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.seen
}

// The endpoint has accepted a delivery whose worker is killed before it stores the cursor.
func TestADeliveryOfAKilledWorkerIsRepeated_Alone(t *testing.T) {
	needsTimelyHeartbeats(t)
	w := newWorldOn(t, environment{timeout: faultTimeout}, llmtest.Func(echo))
	endpoint := newEventEndpoint(t)
	endpoint.held = func(e hook.Events) bool { return e.Events[len(e.Events)-1].Tag() == event.TagLLMRequestCompleted }
	settings := workerSettings{HooksFile: hooksFile(t, endpoint.url, "stages = [\"event\"]\ntimeout = \"1m\"\n")}
	first := w.processWith(settings)
	c := w.open("killed-delivery")
	w.say(c, "Hello")
	select {
	case <-endpoint.holds:
	case <-w.ctx.Done():
		t.Fatal("nothing was delivered")
	}
	first.kill()
	w.processWith(settings)
	w.say(c, "And you?")
	w.close(c, "done")
	require.Equal(t, w.log(c), endpoint.log(c))
	require.Positive(t, endpoint.repeats, "at least once")
	w.replay(c, "")
}

// rejectedDelivery has a turn in a context whose events an endpoint rejects with a status.
func rejectedDelivery(t *testing.T, status int, settings string) (*world, *eventEndpoint, *client.Context) {
	t.Helper()
	w := newWorld(t, llmtest.Func(echo))
	endpoint := newEventEndpoint(t)
	endpoint.respond(status)
	w.worker(withHooks(readHooks(t, hooksFile(t, endpoint.url, "stages = [\"event\"]\n"+settings))...))
	c := w.open("endpoint")
	w.say(c, "Hello")
	return w, endpoint, c
}

func TestAnEndpointThatIsBackReceivesTheSameDelivery(t *testing.T) {
	t.Parallel()
	w, endpoint, c := rejectedDelivery(t, http.StatusServiceUnavailable, "")
	for len(endpoint.calls()) < 2 {
		require.NoError(t, w.ctx.Err())
		w.say(c, "Hello?")
	}
	endpoint.respond(0)
	w.close(c, "done")
	require.Equal(t, w.log(c), endpoint.log(c))
	calls := endpoint.calls()
	require.Equal(t, calls[0], calls[1], "the id and the body of a repeated delivery")
	require.Zero(t, endpoint.repeats)
}

func TestADeadWebhookFailsClosed(t *testing.T) {
	t.Parallel()
	unavailable := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusServiceUnavailable) }))
	t.Cleanup(unavailable.Close)
	w := newWorld(t, llmtest.Func(echo))
	w.worker(withHooks(readHooks(t, hooksFile(t, unavailable.URL, "stages = [\"before\"]\nretries = 1\n"))...))
	c := w.open("closed-webhook")
	w.say(c, "Hello")
	// Only the call of the hook is retried.
	require.Equal(t, story(`
		SessionStarted after 0
		UserMessage "Hello"
		LLMRequestStarted 1 scripted attempt 1
		LLMRequestFailed 1 after 0 retries: hook remote: status 503 (want 200 or 204)
	`), withoutPositions(w.log(c)))
	require.Empty(t, w.model.Requests())
	w.replay(c, "")
}

func TestAHangingWebhookFailsOpen(t *testing.T) {
	t.Parallel()
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the server notices a disconnect only after that
		<-r.Context().Done()
	}))
	t.Cleanup(hangs.Close)
	w := newWorld(t, llmtest.Func(echo))
	w.worker(withHooks(readHooks(t, hooksFile(t, hangs.URL, "stages = [\"after\"]\ntimeout = \"100ms\"\non_failure = \"open\"\n"))...))
	c := w.open("open-webhook")
	w.say(c, "Hello")
	require.Equal(t, story(`
		SessionStarted after 0
		UserMessage "Hello"
		LLMRequestStarted 1 scripted attempt 1
		HookApplied remote failed and left the answer unchecked: the hook did not answer in time
		AssistantMessage "You said: Hello"
		LLMRequestCompleted 1 stop
	`), withoutPositions(w.log(c)))
	w.replay(c, "")
}
