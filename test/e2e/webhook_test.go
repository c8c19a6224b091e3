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

// eventEndpoint passes deliveries to an observer.
type eventEndpoint struct {
	*observer
	url string

	hold  func(hook.Events) bool // the first such delivery is accepted but not answered
	once  sync.Once
	holds chan struct{} // closed when a delivery is held
}

func newEventEndpoint(t *testing.T, hold func(hook.Events) bool) *eventEndpoint {
	e := &eventEndpoint{observer: newObserver(), hold: hold, holds: make(chan struct{})}
	verifier, err := standardwebhooks.NewWebhook(webhookSecret)
	require.NoError(t, err)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
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
		if err := e.take(r.Context(), events); err != nil {
			t.Error(err)
		}
		if e.hold(events) {
			e.once.Do(func() {
				close(e.holds)
				<-r.Context().Done()
			})
		}
	}))
	t.Cleanup(server.Close)
	e.url = server.URL
	return e
}

// The endpoint has accepted a delivery whose worker is killed before it stores the cursor.
func TestADeliveryOfAKilledWorkerIsRepeated_Alone(t *testing.T) {
	needsTimelyHeartbeats(t)
	w := newWorld(t, llmtest.Func(echo))
	endpoint := newEventEndpoint(t, func(e hook.Events) bool { return e.Events[len(e.Events)-1].Tag() == event.TagLLMRequestCompleted })
	settings := workerSettings{HooksFile: hooksFile(t, endpoint.url, "stages = [\"event\"]\ntimeout = \"1m\"\n")}
	first := w.processWith(settings)
	c := w.open("killed-delivery")
	w.say(c, "Hello")
	w.wait(endpoint.holds)
	first.kill()
	w.processWith(settings)
	w.say(c, "And you?")
	w.close(c, "done")
	require.Equal(t, w.log(c), endpoint.log(c))
	require.Positive(t, endpoint.repeats, "at least once")
	w.replay(c, "")
}
