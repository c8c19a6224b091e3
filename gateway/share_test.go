package gateway_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/auth"
	"github.com/seed-9ed7edd4/chronicle/gateway/page"
	"github.com/seed-9ed7edd4/chronicle/internal/clienttest"
)

// sharer shares contexts as ann. The holders of its links are others.
type sharer struct {
	*webServer
	file     auth.TokenFile
	token    string
	tokenID  string
	asAnn    []string // header
	settings auth.Options
}

func newSharer(t *testing.T, l *log, options gateway.Options) *sharer {
	t.Helper()
	file := auth.TokenFile(filepath.Join(t.TempDir(), "tokens.jsonl"))
	s := &sharer{file: file, settings: auth.Options{
		Tokens: auth.OpenTokens(file, slog.New(slog.DiscardHandler)), SessionKey: bytes.Repeat([]byte("k"), 32),
	}}
	s.token, s.tokenID = newToken(t, file, auth.Identity{Subject: "ann", Roles: []auth.Role{auth.RoleWrite}}, 0)
	s.asAnn = []string{"Authorization", "Bearer " + s.token}
	s.webServer = s.serve(t, l, options)
	return s
}

// serve serves a log with the same settings.
func (s *sharer) serve(t *testing.T, l *log, options gateway.Options) *webServer {
	t.Helper()
	service, err := auth.New(s.settings)
	require.NoError(t, err)
	options.Auth, options.SignIn, options.Page = service, service, page.Handler()
	return serve(t, fakeClient{log: l}, options)
}

func (s *sharer) share(query string) (link auth.Link) {
	s.t.Helper()
	got := s.do(http.MethodPost, "/contexts/demo/share"+query, "", s.asAnn...)
	require.Equal(s.t, http.StatusCreated, got.status, got.body)
	require.Equal(s.t, "no-store", got.header.Get("Cache-Control"))
	require.NoError(s.t, json.Unmarshal([]byte(got.body), &link))
	return link
}

// holder returns the header of the holder of a link.
func holder(link auth.Link) []string {
	_, credential, _ := strings.Cut(link.URL, "#share=")
	return []string{"Authorization", "Bearer " + credential}
}

// A new operation is covered, and rejected until it is listed here.
func TestAShareLinkOnlyReadsItsContext(t *testing.T) {
	var audited, logged bytes.Buffer
	s := newSharer(t, newLog(event.FileAttachment{Source: event.Source{Type: event.SourceBlob, Data: []byte("x")}, MediaType: "image/png"}), gateway.Options{
		Protocols: []gateway.Protocol{plain()},
		Audit:     slog.New(slog.NewJSONHandler(&audited, nil)), Log: slog.New(slog.NewJSONHandler(&logged, nil)),
	})
	link := s.share("")
	require.True(t, strings.HasPrefix(link.URL, s.server.URL+"/#share=chs_"), link.URL)
	as := holder(link)
	public := []string{"healthy", "ready", "describe", "readSession", "signIn", "signOut", "startSignIn", "finishSignIn"}
	reads := []string{"readEvents", "readAttachment", "readState", "readTranscript"}
	spec := readSpec(t)
	rejected := 0
	for path, item := range spec.Paths.Map() {
		for method, operation := range item.Operations() {
			if slices.Contains(public, operation.OperationID) {
				continue
			}
			for _, name := range []string{"demo", "other", "Demo", "demo%2F"} {
				got := s.do(method, strings.NewReplacer("{name}", name, "{id}", "demo:0001").Replace(path), "", as...)
				if name == "demo" && slices.Contains(reads, operation.OperationID) {
					require.Equal(t, http.StatusOK, got.status, "%s: %s", operation.OperationID, got.body)
					continue
				}
				rejected++
				require.Equal(t, http.StatusForbidden, got.status, "%s %s: %s", method, path, got.body)
			}
		}
	}
	require.Greater(t, rejected, 40)
	response, err := s.server.Client().Do(s.request(http.MethodPost, "/plain/demo", `"Hello"`, as...))
	require.NoError(t, err)
	require.Equal(t, http.StatusForbidden, response.StatusCode, "another protocol")
	require.NoError(t, response.Body.Close())
	require.JSONEq(t, `{"subject":"share link of ann","roles":["read"],"context":"demo","signIn":["token"],"required":true}`, s.do(http.MethodGet, "/auth/session", "", as...).body)
	got := s.do(http.MethodPost, "/auth/session", `{"token":"`+strings.TrimPrefix(as[1], "Bearer ")+`"}`)
	require.Equal(t, http.StatusUnauthorized, got.status, "a link begins no session")

	s.gateway.Close()
	require.Contains(t, audited.String(), `"subject":"share link of ann","tenant":"","operation":"readEvents","token":"`+s.tokenID+`","context":"demo","status":200`)
	_, credential, _ := strings.Cut(link.URL, auth.SharePrefix)
	require.NotContains(t, audited.String()+logged.String(), credential[:20])
}

func TestAShareLinkStreamsUntilItsTokenIsRevoked(t *testing.T) {
	l := newLog(event.UserMessage{Content: "Hello"})
	s := newSharer(t, l, gateway.Options{KeepAlive: 20 * time.Millisecond})
	v := s.view("/contexts/demo/events", holder(s.share("?days=365"))...)
	require.Equal(t, "demo:0001", v.next().id)
	l.record(event.AssistantMessage{Content: "Hi"})
	e := v.next()
	for e.kind == "comment" {
		e = v.next()
	}
	require.Equal(t, "demo:0002", e.id)
	require.NoError(t, s.file.Revoke(s.tokenID))
	require.Contains(t, v.problem(), "unknown or revoked token")
	v.end()
}

func TestAShareLinkEndsWithItsContext(t *testing.T) {
	hour := func(n int) time.Time { return time.Date(2026, 1, 2, n, 0, 0, 0, time.UTC) }
	begun := func(times ...int) *log {
		l := &log{Log: clienttest.NewLog("demo", func(i int) time.Time { return hour(times[i-1]) }), changed: make(chan struct{})}
		bodies := []event.Body{event.SessionStarted{}, event.SessionStarted{ForkedFrom: "origin:0001"}, event.UserMessage{Content: "Hello"}}
		l.record(bodies[:len(times)]...)
		return l
	}
	l := begun(1)
	s := newSharer(t, l, gateway.Options{})
	as := holder(s.share(""))
	status := func(w *webServer, as []string) int {
		return w.do(http.MethodGet, "/contexts/demo/events", "", as...).status
	}
	require.Equal(t, http.StatusOK, status(s.serve(t, begun(1), gateway.Options{}), as), "another gateway with the same key")
	require.Equal(t, http.StatusGone, status(s.serve(t, newLog(), gateway.Options{}), as), "no context")
	require.Equal(t, http.StatusGone, status(s.serve(t, begun(2), gateway.Options{}), as), "another context of this name")
	require.Equal(t, http.StatusGone, status(s.serve(t, begun(1, 3), gateway.Options{}), as), "a fork of this name")
	l.Fail(client.ErrDeleted)
	require.Equal(t, http.StatusGone, status(s.webServer, as))

	fork := newSharer(t, begun(1, 3, 4), gateway.Options{})
	as = holder(fork.share(""))
	require.Equal(t, http.StatusOK, status(fork.webServer, as))
	require.Equal(t, http.StatusGone, status(fork.serve(t, begun(1, 5, 6), gateway.Options{}), as), "a later fork of this name, at the same event")
	fork.settings.SessionKey = bytes.Repeat([]byte("K"), 32)
	require.Equal(t, http.StatusUnauthorized, status(fork.serve(t, begun(1, 3, 4), gateway.Options{}), as), "another key")
}

func TestSharingThatIsNotPossibleSaysWhy(t *testing.T) {
	l := newLog(event.UserMessage{Content: "Hello"})
	s := newSharer(t, l, gateway.Options{})
	for path, problem := range map[string]string{
		"/contexts/demo/share?days=0":   `days \"0\": invalid (1 to 365)`,
		"/contexts/demo/share?days=366": `days \"366\": invalid (1 to 365)`,
		"/contexts/other/share":         "urn:chronicle:problem:no-context",
	} {
		require.Contains(t, s.do(http.MethodPost, path, "", s.asAnn...).body, problem)
	}
	s.settings.SessionKey = nil
	got := s.serve(t, l, gateway.Options{}).do(http.MethodPost, "/contexts/demo/share", "", s.asAnn...)
	require.Equal(t, http.StatusNotImplemented, got.status)
	require.Contains(t, got.body, "set --session-key-file of the gateway")
	got = serve(t, fakeClient{log: l}, gateway.Options{}).do(http.MethodPost, "/contexts/demo/share", "")
	require.Equal(t, http.StatusNotImplemented, got.status)
	require.Contains(t, got.body, "send the address of the page, or set --auth of the gateway")
}
