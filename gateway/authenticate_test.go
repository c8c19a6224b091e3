package gateway_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/auth"
	"github.com/seed-9ed7edd4/chronicle/gateway/auth/authtest"
	"github.com/seed-9ed7edd4/chronicle/gateway/page"
)

var ann = auth.Identity{Subject: "ann", Roles: []auth.Role{auth.RoleAdmin}}

// guarded serves a log to the holders of tokens.
func guarded(t testing.TB, l *log, options gateway.Options) (*webServer, auth.TokenFile) {
	t.Helper()
	file := auth.TokenFile(filepath.Join(t.TempDir(), "tokens.jsonl"))
	service, err := auth.New(auth.Options{Tokens: auth.OpenTokens(file, slog.New(slog.DiscardHandler))})
	require.NoError(t, err)
	options.Auth, options.SignIn, options.Page = service, service, page.Handler()
	return serve(t, fakeClient{log: l}, options), file
}

func newToken(t testing.TB, file auth.TokenFile, identity auth.Identity, expires time.Duration) (token, id string) {
	t.Helper()
	token, record, err := file.Create(identity, expires)
	require.NoError(t, err)
	return token, record.ID
}

func TestEachOperationRequiresAValidCredential(t *testing.T) {
	w, file := guarded(t, newLog(event.UserMessage{Content: "Hello"}), gateway.Options{})
	valid, _ := newToken(t, file, ann, 0)
	expired, _ := newToken(t, file, ann, -time.Second)
	revoked, id := newToken(t, file, ann, 0)
	require.NoError(t, file.Revoke(id))
	foreign, _ := newToken(t, auth.TokenFile(filepath.Join(t.TempDir(), "tokens.jsonl")), ann, 0) // of another gateway
	public := []string{"/healthz", "/readyz", "/openapi.json"}
	// People without a credential sign in. An invalid one is none.
	signIn := map[string]int{
		"GET /auth/session": http.StatusOK, "POST /auth/session": http.StatusUnauthorized, "DELETE /auth/session": http.StatusNoContent,
		"GET /auth/login": http.StatusNotFound, "GET /auth/callback": http.StatusNotFound, // of a provider
	}
	rejected := 0
	spec := readSpec(t)
	for path, item := range spec.Paths.Map() {
		at := strings.NewReplacer("{name}", "demo", "{id}", "demo:0001").Replace(path)
		for method := range item.Operations() {
			for name, header := range map[string]string{
				"none": "", "expired": "Bearer " + expired, "revoked": "Bearer " + revoked, "malformed": "Bearer " + valid + "A", "foreign": "Bearer " + foreign, "of another scheme": "Basic " + valid,
			} {
				got := w.do(method, at, "", "Authorization", header)
				if status, ok := signIn[method+" "+path]; ok {
					require.Equal(t, status, got.status, "%s %s", method, path)
					require.NotContains(t, got.body, "ann")
					continue
				}
				if slices.Contains(public, path) {
					require.Equal(t, http.StatusOK, got.status, path)
					continue
				}
				rejected++
				require.Equal(t, http.StatusUnauthorized, got.status, "%s %s, credential: %s", method, path, name)
				require.Equal(t, "Bearer", got.header.Get("WWW-Authenticate"))
				require.Contains(t, got.body, "urn:chronicle:problem:unauthenticated")
				require.NotContains(t, got.body, "demo")
				stream := w.do(method, at, "", "Authorization", header, "Accept", "text/event-stream")
				require.Equal(t, http.StatusUnauthorized, stream.status)
			}
			if method+" "+path == "POST /auth/session" {
				continue // the credential is in the body
			}
			got := w.do(method, at, "", "Authorization", "Bearer "+valid)
			require.NotEqual(t, http.StatusUnauthorized, got.status, "%s %s", method, path)
		}
	}
	require.Greater(t, rejected, 40)
	require.Equal(t, http.StatusOK, w.do(http.MethodGet, "/", "").status, "the page, which signs people in")
	require.Equal(t, http.StatusOK, w.do(http.MethodGet, "/app.js", "").status)
}

// signedIn returns the header Cookie of a person who signed in.
func (w *webServer) signedIn(token string) string {
	w.t.Helper()
	got := w.do(http.MethodPost, "/auth/session", `{"token":"`+token+`"}`, "X-Request-Id", "sign-in")
	require.Equal(w.t, http.StatusNoContent, got.status, got.body)
	cookie, _, _ := strings.Cut(got.header.Get("Set-Cookie"), ";")
	return cookie
}

func TestStreamsAcceptTokensAndSessionsUntilTheyEnd(t *testing.T) {
	l := newLog(event.UserMessage{Content: "Hello"})
	w, file := guarded(t, l, gateway.Options{KeepAlive: 20 * time.Millisecond})
	for _, header := range []string{"Authorization", "Cookie"} {
		token, id := newToken(t, file, ann, 0)
		credential := "Bearer " + token
		if header == "Cookie" {
			credential = w.signedIn(token)
		}
		v := w.view("/contexts/demo/events", header, credential)
		require.Equal(t, "demo:0001", v.next().id)
		require.NoError(t, file.Revoke(id))
		require.Contains(t, v.problem(), "urn:chronicle:problem:unauthenticated")
		v.end()
	}
}

// problem skips keep-alive comments.
func (v *viewer) problem() string {
	v.t.Helper()
	e := v.next()
	for e.kind == "comment" {
		e = v.next()
	}
	require.Equal(v.t, "problem", e.kind)
	return e.data
}

func TestAStreamEndsWhenTheRolesOfItsTokenChange(t *testing.T) {
	identity := make(chan auth.Identity, 2)
	identity <- ann
	identity <- auth.Identity{Subject: "ann", Roles: []auth.Role{auth.RoleRead}}
	w := serve(t, fakeClient{log: newLog(event.UserMessage{Content: "Hello"})}, gateway.Options{
		KeepAlive: 20 * time.Millisecond, Auth: authenticate(func(*http.Request) (auth.Identity, error) { return <-identity, nil }),
	})
	v := w.view("/contexts/demo/events")
	require.Equal(t, "demo:0001", v.next().id)
	require.Contains(t, v.problem(), "the roles or the tenant changed")
}

type authenticate func(*http.Request) (auth.Identity, error)

func (f authenticate) Authenticate(r *http.Request) (auth.Identity, error) { return f(r) }

func TestOtherSitesCannotUseASession(t *testing.T) {
	l := newLog()
	w, file := guarded(t, l, gateway.Options{})
	token, _ := newToken(t, file, ann, 0)
	cookie := w.signedIn(token)
	const message = `{"_tag":"UserMessageEvent","content":"Hello"}`
	for _, ask := range [][3]string{
		{"POST", "/contexts/demo/events", message},
		{"POST", "/contexts/demo/interrupt", ""},
		{"DELETE", "/contexts/demo", ""},
		{"POST", "/auth/session", `{"token":"` + token + `"}`}, // would sign the person in as someone else
		{"DELETE", "/auth/session", ""},
	} {
		for _, from := range [][2]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example"}, {"Origin", "null"}} {
			got := w.do(ask[0], ask[1], ask[2], "Cookie", cookie, from[0], from[1])
			require.Equal(t, http.StatusForbidden, got.status, "%v %v", ask, from)
			require.Empty(t, got.header.Get("Set-Cookie"))
		}
	}
	require.Empty(t, l.sent)
	require.Equal(t, http.StatusAccepted, w.do("POST", "/contexts/demo/events", message, "Cookie", cookie, "Sec-Fetch-Site", "same-origin").status)
}

func TestAnUncheckedCredentialIsNotRejected(t *testing.T) {
	p := authtest.Start(t, map[string]any{"sub": "ann"})
	p.Down.Store(true)
	service, err := auth.New(auth.Options{OIDC: auth.NewOIDC(auth.OIDCOptions{Issuer: p.Issuer, ClientID: authtest.ClientID, Mapping: auth.OIDCMapping})})
	require.NoError(t, err)
	w := serve(t, fakeClient{log: newLog()}, gateway.Options{Auth: service})
	got := w.do(http.MethodGet, "/contexts", "", "Authorization", "Bearer "+p.Token(nil))
	require.Equal(t, http.StatusServiceUnavailable, got.status)
	require.Contains(t, got.body, "urn:chronicle:problem:unchecked")
	require.NotContains(t, got.body, p.Issuer)
	require.Equal(t, "1", got.header.Get("Retry-After"))
}

func TestTheAuditLogSaysWhoDidWhat(t *testing.T) {
	var written bytes.Buffer
	w, file := guarded(t, newLog(), gateway.Options{Audit: slog.New(slog.NewJSONHandler(&written, nil))})
	token, tokenID := newToken(t, file, auth.Identity{Subject: "ann", Tenant: "acme", Roles: ann.Roles}, 0)
	bearer := "Bearer " + token
	entries := func() (all []map[string]any) {
		w.gateway.Close()
		for line := range bytes.Lines(written.Bytes()) {
			var entry map[string]any
			require.NoError(t, json.Unmarshal(line, &entry))
			for _, field := range []string{"time", "level", "msg"} {
				delete(entry, field)
			}
			all = append(all, entry)
		}
		return all
	}
	w.do(http.MethodPost, "/contexts/demo/events", `{"_tag":"UserMessageEvent","content":"the content"}`, "Authorization", bearer, "X-Request-Id", "r1")
	w.do(http.MethodGet, "/contexts/demo/state?content=x", "", "X-Request-Id", "r2")
	w.do(http.MethodGet, "/contexts/demo/events?from=x", "", "Authorization", bearer, "X-Request-Id", "r3")
	w.do(http.MethodPost, "/auth/session", `{"token":"`+token+`"}`, "X-Request-Id", "r4")
	w.do(http.MethodPost, "/auth/session", `{"token":"wrong"}`, "X-Request-Id", "r5")
	for _, path := range []string{"/healthz", "/openapi.json", "/", "/nothing", "/auth/session"} {
		w.do(http.MethodGet, path, "")
	}
	w.do(http.MethodDelete, "/auth/session", "", "Cookie", w.signedIn(token), "X-Request-Id", "r6")
	w.do(http.MethodDelete, "/auth/session", "", "Authorization", bearer) // has no session
	at := func(subject, tenant, operation, context string, status float64, id string) map[string]any {
		entry := map[string]any{"subject": subject, "tenant": tenant, "operation": operation, "status": status, "client": "127.0.0.1", "request_id": id}
		if context != "" {
			entry["context"] = context
		}
		if subject != "" {
			entry["token"] = tokenID
		}
		return entry
	}
	require.Equal(t, []map[string]any{
		at("ann", "acme", "sendEvents", "demo", 202, "r1"),
		at("", "", "readState", "demo", 401, "r2"),
		at("ann", "acme", "readEvents", "demo", 400, "r3"),
		at("ann", "acme", "signIn", "", 204, "r4"),
		at("", "", "signIn", "", 401, "r5"),
		at("ann", "acme", "signIn", "", 204, "sign-in"),
		at("ann", "acme", "signOut", "", 204, "r6"),
	}, entries())
	require.NotContains(t, written.String(), "content")
	require.NotContains(t, written.String(), token)
}

func TestTheAuditLogOfAGatewayWithoutAuthenticationNamesNobody(t *testing.T) {
	var written bytes.Buffer
	w := serve(t, fakeClient{log: newLog()}, gateway.Options{Audit: slog.New(slog.NewJSONHandler(&written, nil))})
	w.do(http.MethodGet, "/contexts", "")
	require.Contains(t, written.String(), `"subject":"","tenant":"","operation":"listContexts","status":200,"client":"127.0.0.1"`)
}

// rejecting is a sign-in that the provider refused.
type rejecting struct{ gateway.SignIn }

func (rejecting) Serve(w http.ResponseWriter, r *http.Request) (auth.Identity, error) {
	w.Header().Set("Location", "../?sign-in=denied")
	w.WriteHeader(http.StatusSeeOther)
	return auth.Identity{}, nil
}

func TestAFailedSignInAtTheProviderIsInTheAuditLog(t *testing.T) {
	var written bytes.Buffer
	w := serve(t, fakeClient{log: newLog()}, gateway.Options{SignIn: rejecting{}, Audit: slog.New(slog.NewJSONHandler(&written, nil))})
	w.do(http.MethodGet, "/auth/login", "")
	require.Empty(t, written.String(), "it only leads to the provider")
	w.do(http.MethodGet, "/auth/callback", "")
	require.Contains(t, written.String(), `"subject":"","tenant":"","operation":"signIn","status":303,`)
}

func TestAStreamIsInTheAuditLogFromItsBeginning(t *testing.T) {
	lines := make(chan string, 1)
	w, file := guarded(t, newLog(event.UserMessage{Content: "Hello"}), gateway.Options{Audit: slog.New(slog.NewJSONHandler(writer(func(b []byte) { lines <- string(b) }), nil))})
	token, _ := newToken(t, file, ann, 0)
	v := w.view("/contexts/demo/transcript", "Authorization", "Bearer "+token)
	require.Contains(t, <-lines, `"operation":"readTranscript"`)
	v.leave()
}

type writer func([]byte)

func (f writer) Write(b []byte) (int, error) { f(b); return len(b), nil }

func TestOverTLSBrowsersAreToldToStayThere(t *testing.T) {
	g := gateway.New(fakeClient{log: newLog()}, gateway.Options{Hosts: []string{"chronicle.example"}})
	t.Cleanup(g.Close)
	hsts := func(target string) string {
		w := httptest.NewRecorder()
		g.ServeHTTP(w, httptest.NewRequest(http.MethodGet, target, nil))
		require.Equal(t, http.StatusOK, w.Code)
		return w.Header().Get("Strict-Transport-Security")
	}
	require.Equal(t, "max-age=31536000", hsts("https://chronicle.example/healthz"))
	require.Empty(t, hsts("https://localhost/healthz"), "it would hold for the other ports")
	require.Empty(t, hsts("http://chronicle.example/healthz"))
}
