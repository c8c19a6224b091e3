package webhook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/hook"
	"github.com/seed-9ed7edd4/chronicle/hook/webhook"
)

type delivered struct {
	id   string
	body []byte
}

// receiver verifies the signatures of deliveries and gives one response after the other.
func receiver(t *testing.T, settings string, answers ...http.HandlerFunc) (h hook.Hook, deliveries func() []delivered) {
	return serve(t, "stages = [\"event\"]\n"+settings, func(id string, body []byte) (delivered, error) { return delivered{id, body}, nil }, answers)
}

func answer(code int, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
	}
}

func message(n int, text string) event.Event {
	e := event.New(event.UserMessage{Content: text})
	e.ID, e.ContextName = event.FormatID("demo", n), "demo"
	e.Timestamp = time.Date(2026, 1, 2, 3, 4, n, 0, time.UTC)
	return e
}

func two(texts ...string) hook.Events {
	return hook.Events{
		ContextName: "demo", RunID: "A", After: "demo:0006", Cursor: "demo:0008", Epoch: 3,
		Events: []event.Event{message(7, texts[0]), message(8, texts[1])},
	}
}

func TestEventsAreDelivered(t *testing.T) {
	h, deliveries := receiver(t, "", answer(202))
	require.Nil(t, h.Before)
	require.NoError(t, h.OnEvent(t.Context(), two("Hello", strings.Repeat("x", webhook.MaxEventBytes))))
	var got bytes.Buffer
	require.NoError(t, json.Indent(&got, deliveries()[0].body, "", " "))
	require.JSONEq(t, `{"type":"event","timestamp":"2026-01-02T03:04:08Z","data":{
		"contextName":"demo","runId":"A","after":"demo:0006","cursor":"demo:0008","epoch":3,"events":[
			{"_tag":"UserMessageEvent","id":"demo:0007","contextName":"demo","timestamp":"2026-01-02T03:04:07Z","content":"Hello"},
			{"_tag":"UserMessageEvent","id":"demo:0008","timestamp":"2026-01-02T03:04:08Z","omittedBytes":65649}]}}`, got.String())
}

func TestAWebhookReceivesTheSelectedEvents(t *testing.T) {
	h, deliveries := receiver(t, `events = ["AssistantMessageEvent", "LLMRequestCompletedEvent"]`+"\ncontexts = [\"jobs-*\", \"demo\"]", answer(503), answer(204))
	require.NoError(t, h.OnEvent(t.Context(), two("Hello", "you")), "no event is selected")
	events := two("Hello", "you")
	events.Events[0].Body = event.LLMRequestCompleted{RequestID: "demo:r0001", FinishReason: "stop"}
	require.Error(t, h.OnEvent(t.Context(), events))
	require.NoError(t, h.OnEvent(t.Context(), events))
	elsewhere := events
	elsewhere.ContextName = "acme/demo"
	require.NoError(t, h.OnEvent(t.Context(), elsewhere), "no context is selected")
	require.Len(t, deliveries(), 2)
	require.Equal(t, deliveries()[0], deliveries()[1])
	var m webhook.EventMessage
	require.NoError(t, json.Unmarshal(deliveries()[0].body, &m))
	require.Equal(t, "demo:0008", m.Data.Cursor)
	require.Len(t, m.Data.Events, 1)
	require.Contains(t, string(m.Data.Events[0]), `"_tag":"LLMRequestCompletedEvent","id":"demo:0007"`)
	require.Equal(t, events.Events[0].Timestamp, m.Timestamp)
	require.Len(t, events.Events, 2, "the batch is not modified")
}

func TestACompletionWebhookHasFourSettings(t *testing.T) {
	hooks, err := read(t, "[[hooks]]\nname = \"jobs\"\nurl = \"https://x\"\nsecret = \"env:SECRET\"\nevents = [\"LLMRequestCompletedEvent\"]")
	require.NoError(t, err)
	require.NotNil(t, hooks[0].OnEvent)
}

func TestARepeatedDeliveryHasTheSameIDAndBody(t *testing.T) {
	h, deliveries := receiver(t, "retries = 1", answer(500), answer(400), answer(204), answer(204), answer(204), answer(204))
	events := two("Hello", "you")
	require.ErrorContains(t, h.OnEvent(t.Context(), events), "status 400 (want 2xx)")
	require.NoError(t, h.OnEvent(t.Context(), events))
	require.Equal(t, deliveries()[0], deliveries()[1])
	require.Equal(t, deliveries()[0], deliveries()[2])
	branch := two("Hello", "there")
	branch.RunID = "B"
	require.NoError(t, h.OnEvent(t.Context(), branch))
	require.NotEqual(t, deliveries()[0].id, deliveries()[3].id)
	later := two("Hello", "you")
	later.Epoch++
	require.NoError(t, h.OnEvent(t.Context(), later))
	require.NotEqual(t, deliveries()[0].id, deliveries()[4].id, "another body")
	events.Events, events.Cursor = events.Events[:1], "demo:0007"
	require.NoError(t, h.OnEvent(t.Context(), events))
	require.NotEqual(t, deliveries()[0].id, deliveries()[5].id)
}

func TestRetryAfterOfAnEndpoint(t *testing.T) {
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		want   time.Duration
	}{
		"seconds":     {answer(429, "Retry-After", "7"), 7 * time.Second},
		"a date":      {answer(503, "Retry-After", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)), time.Hour},
		"a past date": {answer(410, "Retry-After", "Fri, 02 Jan 2026 15:04:05 GMT"), 0},
		"nonsense":    {answer(503, "Retry-After", "soon"), 0},
		"none":        {answer(307, "Location", "http://127.0.0.1:1/"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			h, _ := receiver(t, "", test.answer)
			err := h.OnEvent(t.Context(), two("Hello", "you"))
			require.ErrorContains(t, err, "(want 2xx)")
			var later *hook.RetryAfterError
			require.Equal(t, test.want > 0, errors.As(err, &later))
			if later != nil {
				require.InDelta(t, test.want.Seconds(), later.Delay.Seconds(), 60)
			}
		})
	}
}

func TestFailuresOfADeliveryContainNoSecret(t *testing.T) {
	hooks, err := read(t, "[[hooks]]\nname = \"crm\"\nurl = \"http://127.0.0.1:1/x?token=hunter2\"\nsecret = \"env:SECRET\"\nstages = [\"event\"]")
	require.NoError(t, err)
	err = hooks[0].OnEvent(t.Context(), two("Hello", "you"))
	require.ErrorContains(t, err, "connection failed")
	require.NotContains(t, err.Error(), "hunter2")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, hooks[0].OnEvent(ctx, two("Hello", "you")), context.Canceled)
}

func TestWorkflowWorkersNeedNoSecrets(t *testing.T) {
	text := "[[hooks]]\nname = \"crm\"\nurl = \"https://crm.example.com\"\nsecret = \"file:/nowhere\"\nstages = [\"event\"]\nfrom = \"start\"\n"
	hooks, err := readWith(t, text, webhook.Options{WithoutCalls: true})
	require.NoError(t, err)
	require.True(t, hooks[0].FromStart && hooks[0].OnEvent != nil)
	_, err = readWith(t, text, webhook.Options{})
	require.ErrorContains(t, err, "secret")
}

func TestEventsContainNoBytesAndNoProviderState(t *testing.T) {
	h, deliveries := receiver(t, "", answer(204))
	events := two("Hello", "you")
	for _, body := range []event.Body{
		event.FileAttachment{MediaType: "image/png", Source: event.Source{Type: event.SourceBlob, Data: []byte("pixels")}},
		event.FileAttachment{MediaType: "image/png", Source: event.Source{Type: event.SourceURL, URL: "data:image/png;base64,cGl4ZWxz"}},
		event.AssistantMessage{Content: "a cat", ProviderState: &event.ProviderState{Data: json.RawMessage(`{"signature":"opaque"}`)}},
	} {
		events.Events = append(events.Events, event.New(body))
	}
	require.NoError(t, h.OnEvent(t.Context(), events))
	body := string(deliveries()[0].body)
	require.Contains(t, body, `"content":"a cat"`)
	require.Contains(t, body, `"source":{"type":"blob"}`)
	require.Contains(t, body, `"source":{"type":"url","url":"data:image/png;base64,…"}`)
	require.NotContains(t, body, "cGl4ZWxz")
	require.NotContains(t, body, "opaque")
	require.NotNil(t, events.Events[4].Body.(event.AssistantMessage).ProviderState, "the events are not modified")
}

func TestDeliveriesShareAConnection(t *testing.T) {
	var connections sync.Map
	body := func(w http.ResponseWriter, r *http.Request) {
		connections.Store(r.RemoteAddr, true)
		_, _ = io.WriteString(w, strings.Repeat("ok", 500))
	}
	h, _ := receiver(t, "", body, body, body)
	for range 3 {
		require.NoError(t, h.OnEvent(t.Context(), two("Hello", "you")))
	}
	n := 0
	connections.Range(func(any, any) bool { n++; return true })
	require.Equal(t, 1, n)
}
