package gateway_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
)

func turnOf(t *testing.T, body string) (turn client.Turn) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(body), &turn), body)
	return turn
}

func TestTheLocationOfASentMessageIsItsTurn(t *testing.T) {
	log := newLog()
	w := serve(t, fakeClient{log: log}, gateway.Options{})
	sent := w.do(http.MethodPost, "/contexts/demo/events", `[`+hello+`,{"_tag":"SystemPrompt","content":"Briefly."}]`)
	require.Equal(t, "/contexts/demo/turns/demo:0001", sent.header.Get("Location"))
	got := w.do(http.MethodGet, sent.header.Get("Location"), "")
	require.Equal(t, http.StatusOK, got.status, got.body)
	require.JSONEq(t, `{"status":"queued","eventIds":["demo:0001","demo:0002"],"usage":{"attempts":0},"cursor":"demo:0002"}`, got.body)
	log.record(
		event.LLMRequestStarted{RequestID: "demo:r0001", ProviderID: "openai", Model: "m", Attempt: 1, ThroughEventID: eventID(2)},
		event.AssistantMessage{Content: "Hi", RequestID: "demo:r0001"},
		event.LLMRequestCompleted{RequestID: "demo:r0001", FinishReason: "stop", Usage: event.Usage{InputTokens: 3, OutputTokens: 1}},
	)
	turn := turnOf(t, w.do(http.MethodGet, sent.header.Get("Location"), "").body)
	require.Equal(t, client.TurnCompleted, turn.Status)
	require.Equal(t, "Hi", turn.Answer)
	require.Equal(t, eventID(5), turn.Cursor)
}

func TestTheTurnOfInputWithoutAWorkerIsFoundByItsClientEventID(t *testing.T) {
	const mine = "a/b c?%"
	log := newLog(event.UserMessage{Content: "Before"})
	log.send = func(events []event.Event) (client.Receipt, error) {
		return client.Receipt{ClientEventIDs: []string{mine}}, nil
	}
	w := serve(t, fakeClient{log: log}, gateway.Options{})
	sent := w.do(http.MethodPost, "/contexts/demo/events", hello)
	require.Equal(t, "/contexts/demo/turns/a%2Fb%20c%3F%25", sent.header.Get("Location"))
	stored := event.New(event.UserMessage{Content: "Hello"})
	stored.ClientEventID = mine
	log.Wait(client.Waiting{Input: func(context.Context) []event.Event { return []event.Event{stored} }})
	require.JSONEq(t, `{"status":"queued","usage":{"attempts":0},"cursor":"demo:0001"}`, w.do(http.MethodGet, sent.header.Get("Location"), "").body)
	log.Wait(client.Waiting{})
	log.Record(stored)
	require.Equal(t, []string{eventID(2)}, turnOf(t, w.do(http.MethodGet, sent.header.Get("Location"), "").body).EventIDs)
}

func TestErrorsOfTurnsAreProblems(t *testing.T) {
	w := serve(t, fakeClient{log: newLog(event.UserMessage{Content: "Hi"})}, gateway.Options{})
	for _, test := range []struct {
		path         string
		status       int
		kind, detail string
	}{
		{"/contexts/demo/turns/demo:0002", 404, "not-found", "event demo:0002 of context demo"},
		{"/contexts/demo/turns/other:0001", 404, "not-found", ""},
		{"/contexts/demo/turns/demo:0001?wait=2m", 400, "request", "at most 1m0s"},
		{"/contexts/demo/turns/demo:0001?wait=-1s", 400, "request", "a duration like 30s"},
		{"/contexts/demo/turns/demo:0001?wait=30", 400, "request", "a duration like 30s"},
		{"/contexts/nobody/turns/nobody:0001", 404, "no-context", ""},
		{"/contexts/de%20mo/turns/x", 400, "name", ""},
	} {
		got := w.do(http.MethodGet, test.path, "")
		require.Equal(t, test.status, got.status, got.body)
		require.Contains(t, got.body, "urn:chronicle:problem:"+test.kind)
		require.Contains(t, got.body, test.detail)
	}
}

func TestATurnIsAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newLog(answering("Hi")...)
		g := gateway.New(fakeClient{log: log}, gateway.Options{StreamsPerAddress: 1})
		defer g.Close()
		const path = "/contexts/demo/turns/demo:0001?wait=30s"
		answers := make(chan string)
		go func() { answers <- ask(t.Context(), g, http.MethodGet, path, "").Body.String() }()
		synctest.Wait()
		require.Equal(t, http.StatusTooManyRequests, ask(t.Context(), g, http.MethodGet, path, "").Code, "it counts as a stream")
		require.Equal(t, http.StatusOK, ask(t.Context(), g, http.MethodGet, "/contexts/demo/turns/demo:0001", "").Code)
		log.record(event.LLMRequestCompleted{RequestID: "demo:r0001", FinishReason: "stop"})
		require.Equal(t, client.TurnCompleted, turnOf(t, <-answers).Status)

		log.record(event.UserMessage{Content: "Again"})
		began := time.Now()
		require.Equal(t, client.TurnQueued, turnOf(t, ask(t.Context(), g, http.MethodGet, "/contexts/demo/turns/demo:0004?wait=30s", "").Body.String()).Status)
		require.Equal(t, 30*time.Second, time.Since(began))
		go func() {
			answers <- ask(t.Context(), g, http.MethodGet, "/contexts/demo/turns/demo:0004?wait=30s", "").Body.String()
		}()
		synctest.Wait()
		g.Close()
		require.Equal(t, client.TurnQueued, turnOf(t, <-answers).Status, "a shutdown ends the wait")
	})
}
