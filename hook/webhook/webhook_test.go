package webhook_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/hook"
	"github.com/seed-9ed7edd4/chronicle/hook/webhook"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

var secret = "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32)))

func getenv(name string) string {
	return map[string]string{"SECRET": secret, "SHORT": "whsec_c2hvcnQ="}[name]
}

func read(t *testing.T, text string) ([]hook.Hook, error) {
	t.Helper()
	return readWith(t, text, webhook.Options{Getenv: getenv, AllowLoopback: true})
}

func readWith(t *testing.T, text string, options webhook.Options) ([]hook.Hook, error) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "hooks.toml")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return webhook.ReadFile(name, options)
}

type call struct {
	id      string
	message webhook.Message
}

// endpoint verifies the signatures of the calls and gives one answer after the other.
func endpoint(t *testing.T, settings string, answers ...func(http.ResponseWriter)) (h hook.Hook, calls func() []call) {
	var handlers []http.HandlerFunc
	for _, answer := range answers {
		handlers = append(handlers, func(w http.ResponseWriter, _ *http.Request) { answer(w) })
	}
	return serve(t, settings, func(id string, body []byte) (c call, err error) {
		c.id = id
		return c, json.Unmarshal(body, &c.message)
	}, handlers)
}

// serve returns the hook of an endpoint that verifies and reads calls, and gives one answer after the
// other.
func serve[C any](t *testing.T, settings string, read func(id string, body []byte) (C, error), answers []http.HandlerFunc) (h hook.Hook, calls func() []C) {
	t.Helper()
	verifier, err := standardwebhooks.NewWebhook(secret)
	require.NoError(t, err)
	var mu sync.Mutex
	var seen []C
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = verifier.Verify(body, r.Header)
		}
		var c C
		if err == nil {
			c, err = read(r.Header.Get("webhook-id"), body)
		}
		if err != nil || len(seen) == len(answers) {
			t.Errorf("an unexpected call: %v", err)
			return
		}
		seen = append(seen, c)
		answers[len(seen)-1](w, r)
	}))
	t.Cleanup(server.Close)
	hooks, err := readWith(t, "[[hooks]]\nname = \"guard\"\nurl = \""+server.URL+"\"\nsecret = \"env:SECRET\"\n"+settings,
		webhook.Options{Getenv: getenv, AllowLoopback: true})
	require.NoError(t, err)
	return hooks[0], func() []C {
		mu.Lock()
		defer mu.Unlock()
		return seen
	}
}

func status(code int) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { w.WriteHeader(code) }
}

func body(text string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { _, _ = io.WriteString(w, text) }
}

var request = hook.Request{
	ContextName: "demo", RequestID: "demo:r0001", Attempt: 1, ProviderID: "openai", Model: "m",
	Messages: []reducer.Message{{
		Role: reducer.RoleUser, Content: "I am Ann", EventID: "demo:0002", ProviderState: &event.ProviderState{ProviderID: "p", Data: []byte(`{"a":1}`)},
		Attachments: []reducer.Attachment{{Source: event.Source{Type: event.SourceBlob, Data: []byte("picture")}, MediaType: "image/png"}},
	}},
}

func TestAVerdictIsReturned(t *testing.T) {
	h, calls := endpoint(t, `stages = ["before", "after"]`, status(http.StatusNoContent), body(" \n"), body(`{"refuse":"off topic"}`),
		body(`{"reason":"a name","change":{"messages":[{"eventId":"demo:0002","content":"I am [name]"}]}}`), body(`{"change":{"text":"Hi"}}`))
	for _, want := range []hook.Verdict{{}, {}, hook.Refuse("off topic"), {Reason: "a name", Change: &hook.Change{HookChange: event.HookChange{
		Messages: []event.ReplacedMessage{{EventID: "demo:0002", Content: "I am [name]"}},
	}}}} {
		got, err := h.Before(t.Context(), request)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	got, err := h.After(t.Context(), request, hook.Response{Text: "Hi Ann", Partial: true})
	require.NoError(t, err)
	require.Equal(t, hook.ReplaceText("Hi", ""), got)

	first, last := calls()[0], calls()[4]
	require.Equal(t, event.HookBefore, first.message.Type)
	require.Equal(t, "I am Ann", first.message.Data.Messages[0].Content)
	require.Nil(t, first.message.Data.Messages[0].ProviderState)
	require.Empty(t, first.message.Data.Messages[0].Attachments[0].Source.Data)
	require.NotEmpty(t, request.Messages[0].Attachments[0].Source.Data, "the request is not modified")
	require.Equal(t, event.HookAfter, last.message.Type)
	require.Equal(t, &hook.Response{Text: "Hi Ann", Partial: true}, last.message.Data.Response)
	require.NotEqual(t, first.id, last.id)
}

func TestACallIsRetriedWithTheSameID(t *testing.T) {
	h, calls := endpoint(t, "stages = [\"before\"]\nretries = 2", status(503), status(429), body(`{"refuse":"no"}`))
	verdict, err := h.Before(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, hook.Refuse("no"), verdict)
	require.Len(t, calls(), 3)
	require.Equal(t, calls()[0].id, calls()[2].id)
}

// An endpoint that deduplicates by the id must not answer for content that it has not seen: hooks
// run again when input arrives while they run, and a reset run makes attempts again.
func TestOtherContentHasAnotherID(t *testing.T) {
	h, calls := endpoint(t, `stages = ["before"]`, status(204), status(204))
	_, err := h.Before(t.Context(), request)
	require.NoError(t, err)
	other := request
	other.Messages = append(slices.Clone(request.Messages), reducer.Message{Role: reducer.RoleUser, Content: "and you?", EventID: "demo:0003"})
	_, err = h.Before(t.Context(), other)
	require.NoError(t, err)
	require.NotEqual(t, calls()[0].id, calls()[1].id)
}

func TestFailuresOfAnEndpoint(t *testing.T) {
	redirect := func(w http.ResponseWriter) {
		w.Header().Set("Location", "http://127.0.0.1:1/other")
		w.WriteHeader(http.StatusTemporaryRedirect)
	}
	for name, test := range map[string]struct {
		answer   func(http.ResponseWriter)
		isBroken bool
		want     string
	}{
		"a rejection":         {status(401), true, "status 401 (want 200 or 204)"},
		"a redirect":          {redirect, true, "status 307 (want 200 or 204)"},
		"the last attempt":    {status(503), false, "status 503 (want 200 or 204)"},
		"an unknown field":    {body(`{"refused":"x"}`), true, "the response is not a verdict"},
		"no JSON":             {body(`sorry, secret=hunter2`), true, "the response is not a verdict"},
		"more than one value": {body(`{} {}`), true, "the response is not a verdict"},
		"a large response":    {body(strings.Repeat(" ", 1<<20+1)), true, "the response exceeds 1048576 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			h, _ := endpoint(t, `stages = ["before"]`, test.answer)
			_, err := h.Before(t.Context(), request)
			require.ErrorContains(t, err, test.want)
			require.Equal(t, test.isBroken, errors.Is(err, hook.ErrBroken))
			require.NotContains(t, err.Error(), "hunter2")
		})
	}
	hooks, err := read(t, "[[hooks]]\nname = \"dead\"\nurl = \"http://127.0.0.1:1/x?token=hunter2\"\nsecret = \"env:SECRET\"\nstages = [\"before\"]")
	require.NoError(t, err)
	_, err = hooks[0].Before(t.Context(), request)
	require.ErrorContains(t, err, "connection failed")
	require.NotContains(t, err.Error(), "hunter2")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = hooks[0].Before(ctx, request)
	require.ErrorIs(t, err, context.Canceled)
}

func TestTheExampleIsValid(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "examples/config/hooks.toml"))
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "topic")
	require.NoError(t, os.WriteFile(file, []byte(secret+"\n"), 0o600))
	hooks, err := read(t, strings.NewReplacer("/run/secrets/topic", file, "/run/secrets/crm", file, "/run/secrets/jobs", file, "PII_HOOK_SECRET", "SECRET").Replace(string(text)))
	require.NoError(t, err)
	require.True(t, hooks[0].Withhold && hooks[0].After != nil && hooks[0].OnFailure == hook.Closed)
	require.True(t, hooks[1].Beside && hooks[1].After == nil)
	require.True(t, hooks[2].OnEvent != nil && hooks[2].FromStart && hooks[2].SkipAfter == 24*time.Hour)
	require.True(t, hooks[3].OnEvent != nil && !hooks[3].FromStart && hooks[3].Before == nil)
}

func TestAnEndpointReceivesTheTraceContext(t *testing.T) {
	var received []string
	answer := func(w http.ResponseWriter, r *http.Request) {
		received = append(received, r.Header.Get("traceparent"))
		w.WriteHeader(http.StatusNoContent)
	}
	h, _ := serve(t, "stages = [\"before\"]\n", func(string, []byte) (struct{}, error) { return struct{}{}, nil }, []http.HandlerFunc{answer, answer})
	_, err := h.Before(t.Context(), request)
	require.NoError(t, err)
	tracers := sdktrace.NewTracerProvider()
	ctx, span := tracers.Tracer("test").Start(t.Context(), "hook guard")
	_, err = h.Before(ctx, request)
	require.NoError(t, err)
	of := span.SpanContext()
	require.Equal(t, []string{"", "00-" + of.TraceID().String() + "-" + of.SpanID().String() + "-01"}, received)
}

func TestInvalidFilesAreRejected(t *testing.T) {
	const valid = "name = \"guard\"\nurl = \"https://guard.example.com\"\nsecret = \"env:SECRET\"\nstages = [\"before\"]\n"
	for want, text := range map[string]string{
		`no hook (each is a table [[hooks]])`:                                                                   ``,
		`unknown key "hooks.uri" (did you mean "url"?)`:                                                         "[[hooks]]\nuri = \"x\"",
		`unknown key "hooks.timout" (did you mean "timeout"?)`:                                                  "[[hooks]]\n" + valid + "[[hooks]]\ntimout = \"5s\"\nname = \"second\"",
		`unknown key "hoks" (did you mean "hooks"?)`:                                                            "hoks = 1",
		`hook number 1: name: empty`:                                                                            "[[hooks]]\nurl = \"https://x\"",
		`hook guard: url: missing (want an https URL like`:                                                      "[[hooks]]\nname = \"guard\"",
		`hook guard: url: want an https URL`:                                                                    "[[hooks]]\nname = \"guard\"\nurl = \"guard\"",
		`hook guard: url: want https (http is allowed`:                                                          "[[hooks]]\nname = \"guard\"\nurl = \"http://guard.example.com\"",
		`hook guard: url: contains a user or fragment`:                                                          "[[hooks]]\nname = \"guard\"\nurl = \"https://a:b@guard.example.com\"",
		`hook guard: secret: want env:NAME or file:/absolute/path`:                                              "[[hooks]]\nname = \"guard\"\nurl = \"https://x\"\nsecret = \"whsec_x\"",
		`hook guard: secret: want env:NAME or file:/absolute/path (`:                                            "[[hooks]]\nname = \"guard\"\nurl = \"https://x\"\nsecret = \"file:guard.key\"",
		`hook guard: secret: env:MISSING is empty`:                                                              "[[hooks]]\nname = \"guard\"\nurl = \"https://x\"\nsecret = \"env:MISSING\"",
		`hook guard: secret: env:SHORT: want whsec_ and a key`:                                                  "[[hooks]]\nname = \"guard\"\nurl = \"https://x\"\nsecret = \"env:SHORT\"",
		`hook guard: retries: want 0 to 10, got 11`:                                                             "[[hooks]]\n" + valid + "retries = 11",
		`hook guard: timeout: want a duration like 5s, at most 1m0s`:                                            "[[hooks]]\n" + valid + "timeout = \"2m\"",
		`hook guard: deltas: want "show" or "withhold", got "hide"`:                                             "[[hooks]]\n" + valid + "deltas = \"hide\"",
		`hook guard: on_failure: want "closed" or "open", got "ajar"`:                                           "[[hooks]]\n" + valid + "on_failure = \"ajar\"",
		`hook guard: stages: want "before", "after" or "event", got "beside"`:                                   "[[hooks]]\n" + strings.Replace(valid, "before", "beside", 1),
		`hook guard: another hook has the same name`:                                                            "[[hooks]]\n" + valid + "[[hooks]]\n" + valid,
		`hook guard: deltas: "withhold" requires the stage "after"`:                                             "[[hooks]]\n" + valid + "deltas = \"withhold\"",
		`hook guard: beside: requires the stage "before"`:                                                       "[[hooks]]\nbeside = true\n" + strings.Replace(valid, "before", "after", 1),
		`hook guard: stages: "before" is listed twice`:                                                          "[[hooks]]\n" + strings.Replace(valid, `"before"`, `"before", "before"`, 1),
		`line 7 (last key "hooks.retries"): incompatible types`:                                                 "[[hooks]]\n" + valid + "[[hooks]]\nretries = \"two\"",
		`hook guard: from: want "new" or "start", got "old"`:                                                    "[[hooks]]\n" + valid + "from = \"old\"",
		`hook guard: from: requires the stage "event"`:                                                          "[[hooks]]\n" + valid + "from = \"new\"",
		`hook guard: events: unknown kind "LLMRequestCompleteEvent" (did you mean "LLMRequestCompletedEvent"?)`: "[[hooks]]\n" + valid + "events = [\"LLMRequestCompleteEvent\"]",
		`hook guard: events: unknown kind "TextDeltaEvent" (want one of SystemPromptEvent`:                      "[[hooks]]\n" + valid + "events = [\"TextDeltaEvent\"]",
		`hook guard: events: requires the stage "event"`:                                                        "[[hooks]]\n" + valid + "events = [\"NoteEvent\"]",
		`hook guard: contexts: requires the stage "event"`:                                                      "[[hooks]]\n" + valid + "contexts = [\"demo\"]",
		`hook guard: skip_after: want a duration like 1h, got "1"`:                                              "[[hooks]]\n" + valid + "skip_after = \"1\"",
		`hook guard: skip_after: requires the stage "event" and on_failure = "open"`:                            "[[hooks]]\n" + valid + "skip_after = \"1h\"",
	} {
		_, err := read(t, text)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "hooks.toml:")
	}
}
