package gateway_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/auth"
)

// plain is a small protocol: the body of POST /plain/{name} is a message, the response the text of the answer; with the
// query "stream", its deltas with their offsets.
func plain() gateway.Protocol {
	ends := func(item gateway.Item) error {
		if item.Event.Tag().EndsRequest() {
			return io.EOF
		}
		return nil
	}
	return gateway.Protocol{
		Path: "/plain/",
		Fail: func(w http.ResponseWriter, p *gateway.Problem) {
			w.Header().Set("Content-Type", "text/plain")
			w.WriteHeader(p.Status)
			_, _ = fmt.Fprintf(w, "%s (%s)", p.Detail, p.Field)
		},
		Routes: []gateway.ProtocolRoute{{
			Pattern: "POST /plain/{name}", Operation: "plainAsk", Roles: []auth.Role{auth.RoleWrite},
			Serve: func(x *gateway.Exchange) error {
				body, err := x.Body()
				if err != nil {
					return err
				}
				var message string
				if err := json.Unmarshal(body, &message); err != nil {
					return gateway.BadRequest("body", "want a string")
				}
				h, err := x.Open(x.Request.PathValue("name"))
				if err != nil {
					return err
				}
				before, err := h.Snapshot()
				if err != nil {
					return err
				}
				if _, err := h.Send(event.New(event.UserMessage{Content: message})); err != nil {
					return err
				}
				if x.Request.URL.Query().Has("stream") {
					return x.Stream(h, before.Last, gateway.Stream{
						Next: func(item gateway.Item) ([]byte, error) {
							d, ok := item.Event.Body.(event.TextDelta)
							if !ok {
								return nil, ends(item)
							}
							return gateway.Frame("", "", fmt.Appendf(nil, "%d %s %t", item.Offset, d.Delta, d.Reset)), nil
						},
						Fail: func(p *gateway.Problem) []byte { return gateway.Frame("", "bad", []byte(p.Title)) },
					})
				}
				text := ""
				for item, err := range h.Follow(before.Last) {
					if err != nil {
						return err
					}
					if body, ok := item.Event.Body.(event.AssistantMessage); ok {
						text = body.Content
					}
					if ends(item) != nil {
						break
					}
				}
				x.JSON(http.StatusOK, text)
				return nil
			},
		}},
	}
}

// thatAnswers makes the context answer each message.
func thatAnswers(log *log, bodies ...event.Body) {
	log.send = func(events []event.Event) (client.Receipt, error) {
		ids := log.Record(events...)
		log.record(bodies...)
		return client.Receipt{ClientEventIDs: clientIDs(events), EventIDs: ids}, nil
	}
}

func clientIDs(events []event.Event) (ids []string) {
	for _, e := range events {
		ids = append(ids, e.ClientEventID)
	}
	return ids
}

func TestAProtocolSendsAndWaits(t *testing.T) {
	log := newLog()
	thatAnswers(log, answering("")[1], event.AssistantMessage{RequestID: "demo:r0001", Content: "Hi"}, event.LLMRequestCompleted{RequestID: "demo:r0001"})
	var audit strings.Builder
	w := serve(t, eachTenant{"acme": {log: log}}, gateway.Options{
		Auth: claims{}, Protocols: []gateway.Protocol{plain()}, Audit: slog.New(slog.NewTextHandler(&audit, nil)),
	})
	ask := func(path, body string, header ...string) (status int, text string) {
		t.Helper()
		response, err := w.server.Client().Do(w.request(http.MethodPost, path, body, header...))
		require.NoError(t, err)
		defer response.Body.Close()
		data, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return response.StatusCode, strings.TrimSpace(string(data))
	}
	status, text := ask("/plain/demo", `"Hello"`, by("acme", auth.RoleWrite)...)
	require.Equal(t, http.StatusOK, status, text)
	require.Equal(t, `"Hi"`, text)
	require.Contains(t, audit.String(), "subject=ann@acme tenant=acme operation=plainAsk context=demo status=200")

	for _, test := range []struct {
		name, path, body string
		header           []string
		status           int
		text             string
	}{
		{"no credential", "/plain/demo", `"Hello"`, nil, 401, ""},
		{"the wrong role", "/plain/demo", `"Hello"`, by("acme", auth.RoleRead), 403, "lacks the role write"},
		{"an error of the protocol", "/plain/demo", `7`, by("acme", auth.RoleWrite), 400, "want a string (body)"},
		{"an invalid name", "/plain/de%20mo", `"Hello"`, by("acme", auth.RoleWrite), 400, "a name has 1-128"},
		{"no route", "/plain/a/b/c", `"Hello"`, by("acme", auth.RoleWrite), 404, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			status, text := ask(test.path, test.body, test.header...)
			require.Equal(t, test.status, status, text)
			require.Contains(t, text, test.text)
			require.True(t, strings.HasSuffix(text, ")"), "the shape of the protocol: %s", text)
		})
	}
}

// TestARouteServesSeveralOperations also checks that an error tells what it replies to.
func TestARouteServesSeveralOperations(t *testing.T) {
	protocol := gateway.Protocol{
		Path: "/calls/",
		Fail: func(w http.ResponseWriter, p *gateway.Problem) {
			w.WriteHeader(p.Status)
			_, _ = fmt.Fprintf(w, "%s %s", p.ReplyTo, p.Title)
		},
		Routes: []gateway.ProtocolRoute{{
			Pattern: "POST /calls/{operation}/{$}", Operation: "call", Roles: []auth.Role{auth.RoleRead, auth.RoleWrite},
			Serve: func(x *gateway.Exchange) error {
				x.ReplyTo(json.RawMessage(`"c1"`))
				role := auth.Role(x.Request.PathValue("operation"))
				if err := x.Perform("call-"+string(role), role); err != nil {
					return err
				}
				return gateway.BadRequest("", "it was admitted")
			},
		}},
	}
	var audit strings.Builder
	w := serve(t, eachTenant{"acme": {log: newLog()}}, gateway.Options{
		Auth: claims{}, Protocols: []gateway.Protocol{protocol}, Audit: slog.New(slog.NewTextHandler(&audit, nil)),
	})
	call := func(operation string) (status int, text string) {
		t.Helper()
		response, err := w.server.Client().Do(w.request(http.MethodPost, "/calls/"+operation+"/", "", by("acme", auth.RoleRead)...))
		require.NoError(t, err)
		defer response.Body.Close()
		data, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return response.StatusCode, string(data)
	}
	status, text := call("read")
	require.Equal(t, http.StatusBadRequest, status)
	require.Equal(t, `"c1" Invalid request`, text)
	status, text = call("write")
	require.Equal(t, http.StatusForbidden, status)
	require.Equal(t, `"c1" Forbidden`, text)
	require.Contains(t, audit.String(), "operation=call-read status=400")
	require.Contains(t, audit.String(), "operation=call-write status=403")
}

func TestAProtocolStreamsDeltasWithTheirOffsets(t *testing.T) {
	log := newLog()
	thatAnswers(log, append(answering("")[1:], delta(0, "one "), event.ReasoningDelta(delta(1, "hm")), delta(2, "two"))...)
	exported := sdkmetric.NewManualReader()
	w := serve(t, fakeClient{log: log}, gateway.Options{Protocols: []gateway.Protocol{plain()}, Meters: sdkmetric.NewMeterProvider(sdkmetric.WithReader(exported))})
	request := w.request(http.MethodPost, "/plain/demo?stream", `"Hello"`)
	response, err := w.server.Client().Do(request)
	require.NoError(t, err)
	v := &viewer{t: t, events: make(chan sse)}
	go func() {
		defer response.Body.Close()
		defer close(v.events)
		readEvents(request.Context(), response.Body, v.events)
	}()
	next := func() (kind, data string) {
		for {
			e, ok := <-v.events
			if !ok || e.kind != "comment" {
				return e.kind, e.data
			}
		}
	}
	seen, reset := "", false
	for len(seen) < len("one two") {
		_, data := next()
		var offset int
		var text string
		var isReset bool
		_, err := fmt.Sscanf(data, "%d %s %t", &offset, &text, &isReset)
		require.NoError(t, err, data)
		text = data[len(fmt.Sprint(offset))+1 : len(data)-len(fmt.Sprintf(" %t", isReset))]
		require.Equal(t, len(seen), offset)
		seen, reset = seen+text, reset || isReset
	}
	require.Equal(t, "one two", seen)
	require.True(t, reset)
	log.record(delta(3, " three"))
	_, data := next()
	require.Equal(t, "7  three false", data)
	require.Eventually(t, func() bool { return counter(t, exported, "chronicle_deltas_sent") > 0 }, testTimeout, time.Millisecond)
	log.record(event.LLMRequestCompleted{RequestID: "demo:r0001"})
	_, data = next()
	require.Empty(t, data, "the stream ends with the request")
}

func TestAProtocolReportsTheEndOfTheGatewayInItsOwnShape(t *testing.T) {
	log := newLog()
	thatAnswers(log, append(answering("")[1:], delta(0, "one"))...)
	w := serve(t, fakeClient{log: log}, gateway.Options{Protocols: []gateway.Protocol{plain()}})
	response, err := w.server.Client().Do(w.request(http.MethodPost, "/plain/demo?stream", `"Hello"`))
	require.NoError(t, err)
	defer response.Body.Close()
	start := make([]byte, 200)
	_, err = io.ReadAtLeast(response.Body, start, len(": the stream begins\n\ndata: 0 one true\n\n"))
	require.NoError(t, err)
	w.gateway.Close()
	rest, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Contains(t, string(rest), "event: bad\ndata: The gateway is shutting down\n\n")
}

func TestAnAnswerThatEndsAsTheGatewayClosesIsComplete(t *testing.T) {
	log := newLog()
	thatAnswers(log, event.LLMRequestCompleted{RequestID: "demo:r0001"})
	ending := plain()
	var g *gateway.Gateway
	ending.Routes[0].Serve = func(x *gateway.Exchange) error {
		h, err := x.Open("demo")
		require.NoError(t, err)
		_, err = h.Send(event.New(event.UserMessage{Content: "Hello"}))
		require.NoError(t, err)
		return x.Stream(h, "", gateway.Stream{
			Next: func(gateway.Item) ([]byte, error) {
				g.Close()
				return gateway.Frame("", "", []byte("last")), io.EOF
			},
			Fail: func(*gateway.Problem) []byte { return gateway.Frame("", "bad", nil) },
		})
	}
	w := serve(t, fakeClient{log: log}, gateway.Options{Protocols: []gateway.Protocol{ending}})
	g = w.gateway
	response, err := w.server.Client().Do(w.request(http.MethodPost, "/plain/demo", `"Hello"`))
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, ": the stream begins\n\ndata: last\n\n", string(text))
}

func TestAProtocolCountsItsStreams(t *testing.T) {
	log := newLog()
	thatAnswers(log, append(answering("")[1:], delta(0, "one"))...)
	w := serve(t, fakeClient{log: log}, gateway.Options{Protocols: []gateway.Protocol{plain()}, StreamsPerAddress: 1})
	first, err := w.server.Client().Do(w.request(http.MethodPost, "/plain/demo?stream", `"Hello"`))
	require.NoError(t, err)
	defer first.Body.Close()
	second, err := w.server.Client().Do(w.request(http.MethodPost, "/plain/demo", `"Hello"`))
	require.NoError(t, err)
	defer second.Body.Close()
	require.Equal(t, http.StatusTooManyRequests, second.StatusCode)
	require.NotEmpty(t, second.Header.Get("Retry-After"))
	sent := len(log.sent)
	require.Equal(t, 1, sent, "the second request sends nothing")
}

// chats is a protocol whose contexts continue in others: GET /chats/{name} reads the newest, POST continues in a branch.
func chats() gateway.Protocol {
	p := plain()
	p.Path = "/chats/"
	p.Routes = []gateway.ProtocolRoute{
		{
			Pattern: "GET /chats/{name}", Operation: "readChat", Roles: []auth.Role{auth.RoleRead},
			Serve: func(x *gateway.Exchange) error {
				h, err := x.Open(x.Request.PathValue("name"))
				if err != nil {
					return err
				}
				snapshot, err := h.Snapshot()
				if err == nil {
					x.JSON(http.StatusOK, snapshot.ContinuedIn)
				}
				return err
			},
		},
		{
			Pattern: "POST /chats/{name}", Operation: "branchChat", Roles: []auth.Role{auth.RoleWrite, auth.RoleApprove},
			Serve: func(x *gateway.Exchange) error {
				h, err := x.Open(x.Request.PathValue("name"))
				if err != nil {
					return err
				}
				created, err := h.Branch(client.BranchOptions{At: "demo:0001"})
				if err == nil {
					err = h.ContinueIn(created.ContextName)
				}
				if err == nil {
					x.NoContent()
				}
				return err
			},
		},
	}
	return p
}

func TestAContextContinuesInItsNewestBranch(t *testing.T) {
	inherited := event.New(event.Note{Kind: event.NoteSystem, Content: "Continued in other-2"})
	inherited.Extra = map[string]json.RawMessage{"continuation": toJSON(map[string]string{"from": "other", "in": "other-2"})}
	log := newLog(event.UserMessage{Content: "Hello"})
	log.Record(inherited)
	n := 1
	log.branch = func(client.BranchOptions) (client.Branched, error) {
		n++
		return client.Branched{ContextName: fmt.Sprintf("demo-%d", n)}, nil
	}
	log.send = func(events []event.Event) (client.Receipt, error) {
		return client.Receipt{EventIDs: log.Record(events...)}, nil
	}
	w := serve(t, eachTenant{"acme": {log: log}}, gateway.Options{Auth: claims{}, Protocols: []gateway.Protocol{chats()}})
	do := func(method string, role auth.Role) (status int, text string) {
		t.Helper()
		response, err := w.server.Client().Do(w.request(method, "/chats/demo", "", by("acme", role)...))
		require.NoError(t, err)
		defer response.Body.Close()
		data, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return response.StatusCode, strings.TrimSpace(string(data))
	}
	continuedIn := func(want string) {
		t.Helper()
		status, text := do(http.MethodGet, auth.RoleRead)
		require.Equal(t, http.StatusOK, status, text)
		require.Equal(t, want, text)
	}
	continuedIn(`""`)
	status, text := do(http.MethodPost, auth.RoleApprove)
	require.Equal(t, http.StatusForbidden, status, text)
	for _, want := range []string{`"demo-2"`, `"demo-3"`} {
		status, text := do(http.MethodPost, auth.RoleWrite)
		require.Equal(t, http.StatusNoContent, status, text)
		require.Eventually(t, func() bool {
			_, text := do(http.MethodGet, auth.RoleRead)
			return text == want
		}, testTimeout, 5*time.Millisecond)
	}
}

func TestAProtocolLearnsThatNothingContinuesAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newLog()
		thatAnswers(log, answering("")[1:]...)
		log.isTerminated.Store(true)
		g := gateway.New(fakeClient{log: log}, gateway.Options{Rate: -1, Protocols: []gateway.Protocol{plain()}})
		defer g.Close()
		got := ask(t.Context(), g, http.MethodPost, "/plain/demo", `"Hello"`)
		require.Equal(t, http.StatusServiceUnavailable, got.Code, got.Body)

		log.isTerminated.Store(false)
		thatAnswers(log, event.SessionStarted{PreviousRunID: "run"}, answering("")[1], event.AssistantMessage{RequestID: "demo:r0001", Content: "Hi"},
			event.LLMRequestCompleted{RequestID: "demo:r0001"})
		got = ask(t.Context(), g, http.MethodPost, "/plain/demo", `"Again"`)
		require.Equal(t, "\"Hi\"\n", got.Body.String(), "the next message is answered")
	})
}

func TestAClosedContextIsNotFollowedAnyMore(t *testing.T) {
	log := newLog()
	thatAnswers(log, answering("")[1], event.LLMRequestCompleted{RequestID: "demo:r0001"})
	closing := plain()
	ask := closing.Routes[0].Serve
	closing.Routes[0].Serve = func(x *gateway.Exchange) error {
		if err := ask(x); err != nil {
			return err
		}
		h, err := x.Open("demo")
		require.NoError(t, err)
		return h.Close("completed")
	}
	w := serve(t, fakeClient{log: log}, gateway.Options{Protocols: []gateway.Protocol{closing}, Linger: time.Hour})
	response, err := w.server.Client().Do(w.request(http.MethodPost, "/plain/demo", `"Hello"`))
	require.NoError(t, err)
	defer response.Body.Close()
	log.await(t, func() bool { return log.followers == 0 && len(log.calls) == 1 })
}

// The decoded body must not occupy many times its size.
func TestAProtocolRejectsABodyOfManyValues(t *testing.T) {
	log := newLog()
	w := serve(t, fakeClient{log: log}, gateway.Options{Protocols: []gateway.Protocol{plain()}})
	status, answer := postKeyed(t, w, "/plain/demo", "["+strings.Repeat("{},", 200_001)+"{}]")
	require.Equal(t, http.StatusBadRequest, status)
	require.Contains(t, answer, "the body has more than 200000 values")
	text := strings.Repeat(`,\\\",`, 200_000) // one value
	thatAnswers(log, event.LLMRequestStarted{RequestID: "demo:r0001", ThroughEventID: eventID(1)}, event.LLMRequestCompleted{RequestID: "demo:r0001"})
	status, answer = postKeyed(t, w, "/plain/demo", `"`+text+`"`)
	require.Equal(t, http.StatusOK, status, answer)
}

// A stream without a function for items ends after its first frames.
func TestAProtocolStreamsWhatItKnows(t *testing.T) {
	known := gateway.Protocol{Path: "/known/", Fail: plain().Fail, Routes: []gateway.ProtocolRoute{{
		Pattern: "GET /known/{name}", Operation: "known", Roles: []auth.Role{auth.RoleRead},
		Serve: func(x *gateway.Exchange) error {
			h, err := x.Open(x.Request.PathValue("name"))
			if err != nil {
				return err
			}
			return x.Stream(h, "", gateway.Stream{Begin: gateway.Frame("", "", []byte("all"))})
		},
	}}}
	w := serve(t, fakeClient{log: newLog(messages(1)...)}, gateway.Options{Protocols: []gateway.Protocol{known}})
	got := w.do(http.MethodGet, "/known/demo", "")
	require.Equal(t, ": the stream begins\n\ndata: all\n\n", got.body)
}

func TestAProtocolReadsWhatTheRoomBuffers(t *testing.T) {
	part := gateway.Protocol{Path: "/part/", Fail: plain().Fail, Routes: []gateway.ProtocolRoute{{
		Pattern: "GET /part/{name}", Operation: "part", Roles: []auth.Role{auth.RoleRead},
		Serve: func(x *gateway.Exchange) error {
			h, err := x.Open(x.Request.PathValue("name"))
			if err != nil {
				return err
			}
			now, err := h.Snapshot()
			if err != nil {
				return err
			}
			var ids []string
			for e, err := range h.EventsThrough(x.Request.URL.Query().Get("from"), cmp.Or(x.Request.URL.Query().Get("to"), now.Last)) {
				if err != nil {
					return err
				}
				ids = append(ids, e.ID)
			}
			x.JSON(http.StatusOK, ids)
			return nil
		},
	}}}
	const events = 10
	log := newLog(longMessages(events)...)
	w := serve(t, fakeClient{log: log}, gateway.Options{Protocols: []gateway.Protocol{part}})
	for _, test := range []struct {
		query              string
		first, last, reads int
	}{
		{"", 1, events, 2}, // the first one is that of the room
		{"?from=" + eventID(7), 8, events, 2},
		{"?from=" + eventID(7) + "&to=" + eventID(8), 8, 8, 2},
		{"?to=" + eventID(2), 1, 2, 3},
		{"?from=" + eventID(2) + "&to=" + eventID(2), 1, 0, 3},
	} {
		want := []string{}
		for n := test.first; n <= test.last; n++ {
			want = append(want, eventID(n))
		}
		var got []string
		require.NoError(t, json.Unmarshal([]byte(w.do(http.MethodGet, "/part/demo"+test.query, "").body), &got))
		require.Equal(t, want, append([]string{}, got...), test.query)
		log.await(t, func() bool { return log.reads == test.reads })
	}
}

// Otherwise, protocols that fold long logs could occupy any amount of memory at once.
func TestWhatAProtocolReadsIsBounded(t *testing.T) {
	whole := gateway.Protocol{Path: "/whole/", Fail: plain().Fail, Routes: []gateway.ProtocolRoute{{
		Pattern: "GET /whole/{name}", Operation: "whole", Roles: []auth.Role{auth.RoleRead},
		Serve: func(x *gateway.Exchange) error {
			h, err := x.Open(x.Request.PathValue("name"))
			if err != nil {
				return err
			}
			for _, err := range h.Scan("") { // not counted
				if err != nil {
					return err
				}
			}
			for _, err := range h.Events(x.Request.URL.Query().Get("from")) {
				if err != nil {
					return err
				}
			}
			x.NoContent()
			return nil
		},
	}}}
	g := gateway.New(fakeClient{log: newLog(longMessages(30)...)}, gateway.Options{Protocols: []gateway.Protocol{whole}, AnswerBytes: 1})
	defer g.Close()
	for range 2 { // what a request read is released
		got := ask(t.Context(), g, http.MethodGet, "/whole/demo", "")
		require.Equal(t, http.StatusServiceUnavailable, got.Code, got.Body)
		require.Contains(t, got.Body.String(), "for responses is reached")
		require.Equal(t, http.StatusNoContent, ask(t.Context(), g, http.MethodGet, "/whole/demo?from="+eventID(20), "").Code)
	}
}
