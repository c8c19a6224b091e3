package gateway_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/auth"
)

// annOwns has an id that depends on the owner only, so that concurrent first inputs record it once.
var annOwns = func() event.Event {
	e := event.New(event.SetDetails{Owner: "ann@acme"})
	e.ClientEventID = event.KeyedIDs("owner ann@acme", []byte(`{"_tag":"SetDetailsEvent","owner":"ann@acme"}`))(0)
	return e
}()

func TestANewContextBelongsToItsSender(t *testing.T) {
	l := newLog()
	w := serve(t, eachTenant{"acme": {log: l}}, gateway.Options{Auth: claims{}})
	for i, sent := range [][]event.Event{{event.New(event.UserMessage{Content: "Hello"}), annOwns}, {event.New(event.UserMessage{Content: "Hello"})}} {
		got := w.do(http.MethodPost, "/contexts/demo/events", hello, by("acme", auth.RoleWrite)...)
		require.Equal(t, http.StatusAccepted, got.status, got.body)
		require.Equal(t, sent, l.sent[i])
		var receipt client.Receipt
		require.NoError(t, json.Unmarshal([]byte(got.body), &receipt))
		require.Len(t, receipt.EventIDs, 1, "those of the sender")
		require.Len(t, receipt.ClientEventIDs, 1)
	}

	l = newLog(event.UserMessage{Content: "sent without a gateway"})
	w = serve(t, eachTenant{"acme": {log: l}}, gateway.Options{Auth: claims{}})
	require.Equal(t, http.StatusAccepted, w.do(http.MethodPost, "/contexts/demo/events", hello, by("acme", auth.RoleWrite)...).status)
	require.Len(t, l.sent[0], 1, "a context that exists gets no owner")

	l = newLog()
	w = serve(t, fakeClient{log: l}, gateway.Options{})
	require.Equal(t, http.StatusAccepted, w.do(http.MethodPost, "/contexts/demo/events", hello).status)
	require.Equal(t, http.StatusAccepted, w.do(http.MethodPost, "/contexts/demo/events", `{"_tag":"SetDetails","owner":"ann"}`).status)
	require.Equal(t, [][]event.Event{{event.New(event.UserMessage{Content: "Hello"})}, {event.New(event.SetDetails{Owner: "ann"})}}, l.sent,
		"without authentication, the events say it")
}

func TestADeletedContextIsNewAgain(t *testing.T) {
	l := newLog(event.UserMessage{Content: "Hello"})
	w := serve(t, eachTenant{"acme": {log: l}}, gateway.Options{Auth: claims{}})
	send := func() []event.Event {
		require.Equal(t, http.StatusAccepted, w.do(http.MethodPost, "/contexts/demo/events", hello, by("acme", auth.RoleAdmin)...).status)
		return l.sent[len(l.sent)-1]
	}
	require.Len(t, send(), 1)
	require.Len(t, send(), 1)
	require.Equal(t, 1, l.reads, "a context that was found is not looked for again")
	require.Equal(t, http.StatusAccepted, w.do(http.MethodDelete, "/contexts/demo?purge=true", "", by("acme", auth.RoleAdmin)...).status)
	l.Replace(nil)
	require.Equal(t, annOwns, send()[1])
}

// Another gateway, or a rule of retention, deletes without the gateway.
func TestAContextThatIsDeletedElsewhereIsNewAMinuteLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLog(event.UserMessage{Content: "Hello"})
		g := gateway.New(eachTenant{"acme": {log: l}}, gateway.Options{Auth: claims{}})
		defer g.Close()
		send := func() []event.Event {
			require.Equal(t, http.StatusAccepted, ask(t.Context(), g, http.MethodPost, "/contexts/demo/events", hello, by("acme", auth.RoleWrite)...).Code)
			return l.sent[len(l.sent)-1]
		}
		require.Len(t, send(), 1)
		l.Replace(nil)
		time.Sleep(time.Minute) // bubble time
		require.Equal(t, annOwns, send()[1])
	})
}

// An input has at most 1,000 events.
func TestAContextBelongsToTheSenderOfAFullInput(t *testing.T) {
	l := newLog()
	w := serve(t, eachTenant{"acme": {log: l}}, gateway.Options{Auth: claims{}})
	body := "[" + strings.Repeat(hello+",", event.MaxInputEvents-1) + hello + "]"
	got := w.do(http.MethodPost, "/contexts/demo/events", body, by("acme", auth.RoleWrite)...)
	require.Equal(t, http.StatusAccepted, got.status, got.body)
	require.Equal(t, []event.Event{annOwns}, l.sent[0])
	require.Len(t, l.sent[1], event.MaxInputEvents)
}

func TestAForkBelongsToItsMaker(t *testing.T) {
	l := newLog(event.UserMessage{Content: "Hello"})
	var forked []client.BranchOptions
	l.branch = func(o client.BranchOptions) (client.Branched, error) {
		forked = append(forked, o)
		return client.Branched{ContextName: "demo-2", ForkedFrom: "demo:0001"}, nil
	}
	w := serve(t, eachTenant{"acme": {log: l}}, gateway.Options{Auth: claims{}})
	for _, body := range []string{`{"at":"demo:0001"}`, `{"at":"demo:0001","events":` + hello + `}`} {
		require.Equal(t, http.StatusCreated, w.do(http.MethodPost, "/contexts/demo/fork", body, by("acme", auth.RoleWrite)...).status)
	}
	require.Equal(t, []client.BranchOptions{
		{At: "demo:0001", Owner: "ann@acme"},
		{At: "demo:0001", Events: []event.Event{event.New(event.UserMessage{Content: "Hello"})}, Owner: "ann@acme"},
	}, forked)
}
