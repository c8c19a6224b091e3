package gateway_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
)

func TestAForkIsCreatedWithEvents(t *testing.T) {
	l := newLog(event.UserMessage{Content: "Hello"})
	var got client.BranchOptions
	l.branch = func(o client.BranchOptions) (client.Branched, error) {
		got = o
		return client.Branched{ContextName: "demo-2", ForkedFrom: "demo:0006", Receipt: &client.Receipt{ClientEventIDs: []string{"a"}}}, nil
	}
	w := serve(t, fakeClient{log: l}, gateway.Options{})
	for body, want := range map[string]client.BranchOptions{
		`{"at":"demo:0006"}`:                   {At: "demo:0006"},
		`{"name":"mine","before":"demo:0007"}`: {Name: "mine", Before: "demo:0007"},
		`{"before":"demo:0007","events":{"_tag":"UserMessage","content":"Hi"}}`: {
			Before: "demo:0007", Events: []event.Event{event.New(event.UserMessage{Content: "Hi"})},
		},
		`{"regenerate":"demo:0009","events":[{"_tag":"SetProviderConfig","providerId":"openai","model":"gpt-4o"}]}`: {
			Regenerate: "demo:0009", Events: []event.Event{event.New(event.SetProviderConfig{ProviderID: "openai", Model: "gpt-4o"})},
		},
	} {
		created := w.do(http.MethodPost, "/contexts/demo/fork", body)
		require.Equal(t, http.StatusCreated, created.status, created.body)
		require.JSONEq(t, `{"contextName":"demo-2","forkedFrom":"demo:0006","receipt":{"clientEventIds":["a"]}}`, created.body)
		require.Equal(t, want, got)
	}
}

func TestTheKeyOfAForkIsPassedOn(t *testing.T) {
	l := newLog(event.UserMessage{Content: "Hello"})
	var got client.BranchOptions
	var err error
	l.branch = func(o client.BranchOptions) (client.Branched, error) {
		got = o
		return client.Branched{ContextName: "demo-2", ForkedFrom: "demo:0001"}, err
	}
	w := serve(t, fakeClient{log: l}, gateway.Options{})
	require.Equal(t, http.StatusCreated, w.do(http.MethodPost, "/contexts/demo/fork", `{"at":"demo:0001"}`, "Idempotency-Key", `"a"`).status)
	require.Equal(t, client.BranchOptions{At: "demo:0001", Key: "a"}, got)
	err = client.ErrKeyReused
	reused := w.do(http.MethodPost, "/contexts/demo/fork", `{"at":"demo:0001"}`, "Idempotency-Key", "a")
	require.Equal(t, http.StatusUnprocessableEntity, reused.status)
	require.Contains(t, reused.body, "urn:chronicle:problem:key-reused")
	require.Equal(t, http.StatusBadRequest, w.do(http.MethodPost, "/contexts/demo/fork", `{"at":"demo:0001"}`, "Idempotency-Key", "").status)
}

func TestForkProblems(t *testing.T) {
	l := newLog(event.UserMessage{Content: "Hello"})
	w := serve(t, fakeClient{log: l}, gateway.Options{})
	for _, body := range []string{"{", `[]`, `{"at":1}`, `{"at":"demo:0001"}{}`, `{"ta":"demo:0001"}`} {
		require.Equal(t, http.StatusBadRequest, w.do(http.MethodPost, "/contexts/demo/fork", body).status, body)
	}
	for body, want := range map[string]string{
		`[]`:                 `"the body is invalid: want a JSON object, got an array"`,
		`7`:                  `"the body is invalid: want a JSON object, got a number"`,
		`"x"`:                `"the body is invalid: want a JSON object, got a string"`,
		`true`:               `"the body is invalid: want a JSON object, got a boolean"`,
		`{"at":1}`:           `"the body is invalid: at: want a string, got a number"`,
		`{"name":{}}`:        `"the body is invalid: name: want a string, got an object"`,
		`{"ta":"demo:0001"}`: `"the body is invalid: unknown field \"ta\""`,
	} {
		require.Contains(t, w.do(http.MethodPost, "/contexts/demo/fork", body).body, `"detail":`+want)
	}
	require.Equal(t, http.StatusUnprocessableEntity, w.do(http.MethodPost, "/contexts/demo/fork", `{"at":"demo:0001","events":[{"_tag":"SessionEnded"}]}`).status)
	for name, test := range map[string]struct {
		created client.Branched
		err     error
		status  int
		body    string
	}{
		"an existing name": {client.Branched{}, client.ErrExists, http.StatusConflict, `"type":"urn:chronicle:problem:exists"`},
		"an unknown event": {client.Branched{}, client.ErrNoEvent, http.StatusNotFound, `"type":"urn:chronicle:problem:not-found"`},
		"no store":         {client.Branched{}, client.ErrNoArchive, http.StatusNotImplemented, `"type":"urn:chronicle:problem:no-store"`},
		"rejected events":  {client.Branched{ContextName: "demo-2"}, client.ErrRefused, http.StatusConflict, `"contextName":"demo-2"`},
		"another error":    {client.Branched{ContextName: "demo-2"}, errors.New("secret"), http.StatusInternalServerError, `"contextName":"demo-2"`},
	} {
		t.Run(name, func(t *testing.T) {
			l.branch = func(client.BranchOptions) (client.Branched, error) { return test.created, test.err }
			got := w.do(http.MethodPost, "/contexts/demo/fork", `{"at":"demo:0001"}`)
			require.Equal(t, test.status, got.status)
			require.Contains(t, got.body, test.body)
			require.NotContains(t, got.body, "secret")
		})
	}
}

func TestBranchesAreRead(t *testing.T) {
	l := newLog(event.UserMessage{Content: "Hello"})
	branches := client.Branches{
		Contexts: []client.Branch{{ContextName: "demo"}, {ContextName: "demo-2", ForkedFrom: "demo:0006", CreatedAt: time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)}},
		Choices:  []client.Choice{{After: "demo:0006", Contexts: []string{"demo", "demo-2"}}},
	}
	l.branches = func() client.Branches { return branches }
	got := serve(t, fakeClient{log: l}, gateway.Options{}).do(http.MethodGet, "/contexts/demo/branches", "")
	require.Equal(t, http.StatusOK, got.status)
	require.JSONEq(t, `{
		"contexts": [{"contextName":"demo"}, {"contextName":"demo-2","forkedFrom":"demo:0006","createdAt":"2026-01-02T15:04:05Z"}],
		"choices": [{"after":"demo:0006","contexts":["demo","demo-2"]}]
	}`, got.body)
}
