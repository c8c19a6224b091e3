package auth_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/gateway/auth"
	"github.com/seed-9ed7edd4/chronicle/gateway/auth/authtest"
)

// site is a gateway with nothing but authentication.
type site struct {
	t *testing.T
	*httptest.Server
	service *auth.Service
	signed  []auth.Identity // who signed in or out
}

func newSite(t *testing.T, service *auth.Service, start func(http.Handler) *httptest.Server) *site {
	s := &site{t: t, service: service}
	s.Server = start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/":
			_, _ = io.WriteString(w, "the page")
		case strings.HasPrefix(r.URL.Path, auth.Path):
			identity, err := service.Serve(w, r)
			switch {
			case errors.Is(err, auth.ErrNotFound):
				w.WriteHeader(http.StatusNotFound)
			case err != nil:
				w.WriteHeader(http.StatusUnauthorized)
			case identity.Subject != "":
				s.signed = append(s.signed, identity)
			}
		default:
			if _, err := service.Authenticate(r); err != nil {
				w.WriteHeader(http.StatusUnauthorized)
			}
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// browser has cookies and follows redirects.
func (s *site) browser() *http.Client {
	jar, err := cookiejar.New(nil)
	require.NoError(s.t, err)
	client := s.Client()
	return &http.Client{Transport: client.Transport, Jar: jar}
}

func (s *site) do(browser *http.Client, method, path, body string) *http.Response {
	s.t.Helper()
	target := path
	if strings.HasPrefix(path, "/") {
		target = s.URL + path
	}
	r, err := http.NewRequestWithContext(s.t.Context(), method, target, strings.NewReader(body))
	require.NoError(s.t, err)
	response, err := browser.Do(r)
	require.NoError(s.t, err)
	data, err := io.ReadAll(response.Body)
	require.NoError(s.t, err)
	require.NoError(s.t, response.Body.Close())
	response.Body = io.NopCloser(bytes.NewReader(data))
	return response
}

func (s *site) who(browser *http.Client) (who auth.Who) {
	s.t.Helper()
	response := s.do(browser, http.MethodGet, "/auth/session", "")
	require.Equal(s.t, http.StatusOK, response.StatusCode)
	require.Equal(s.t, "no-store", response.Header.Get("Cache-Control"))
	require.NoError(s.t, json.NewDecoder(response.Body).Decode(&who))
	return who
}

func (s *site) signInWithToken(browser *http.Client, token string) *http.Response {
	s.t.Helper()
	body, err := json.Marshal(map[string]string{"token": token})
	require.NoError(s.t, err)
	return s.do(browser, http.MethodPost, "/auth/session", string(body))
}

func TestAPersonSignsInWithATokenAndOut(t *testing.T) {
	file := tokenFile(t)
	s := newSite(t, withTokens(t, file), httptest.NewServer)
	token, record := create(t, file, ann, 0)
	browser := s.browser()
	require.Equal(t, auth.Who{SignIn: []string{"token"}, Required: true}, s.who(browser))
	require.Equal(t, http.StatusUnauthorized, s.do(browser, http.MethodGet, "/contexts", "").StatusCode)
	for _, wrong := range []string{"", "chr_x", token + "A"} {
		response := s.signInWithToken(browser, wrong)
		require.Equal(t, http.StatusUnauthorized, response.StatusCode)
		require.Empty(t, response.Cookies())
	}
	require.Equal(t, http.StatusUnauthorized, s.do(browser, http.MethodPost, "/auth/session", strings.Repeat(" ", 5<<10)+"{}").StatusCode)

	first := s.signInWithToken(browser, token)
	require.Equal(t, http.StatusNoContent, first.StatusCode)
	require.NotContains(t, first.Header.Get("Set-Cookie"), token)
	require.Equal(t, auth.Who{Subject: "ann", Tenant: "acme", Roles: ann.Roles, Session: true, SignIn: []string{"token"}, Required: true}, s.who(browser))
	require.Equal(t, http.StatusOK, s.do(browser, http.MethodGet, "/contexts", "").StatusCode)
	signed := ann
	signed.Token = record.ID
	require.Equal(t, []auth.Identity{signed}, s.signed)

	second := s.signInWithToken(browser, token)
	require.NotEqual(t, first.Cookies()[0].Value, second.Cookies()[0].Value, "the session is another one after signing in")

	require.Equal(t, http.StatusNoContent, s.do(browser, http.MethodDelete, "/auth/session", "").StatusCode)
	require.Equal(t, []auth.Identity{signed, signed, signed}, s.signed, "twice in, and out")
	require.Equal(t, http.StatusNoContent, s.do(browser, http.MethodDelete, "/auth/session", "").StatusCode)
	require.Len(t, s.signed, 3, "there was no session")
	require.Equal(t, http.StatusUnauthorized, s.do(browser, http.MethodGet, "/contexts", "").StatusCode)

	require.Equal(t, http.StatusNoContent, s.signInWithToken(browser, token).StatusCode)
	require.NoError(t, file.Revoke(record.ID))
	require.Equal(t, http.StatusUnauthorized, s.do(browser, http.MethodGet, "/contexts", "").StatusCode, "its token was revoked")
	require.Empty(t, s.who(browser).Subject)
}

func TestTheCookieOfASessionIsProtected(t *testing.T) {
	file := tokenFile(t)
	token, _ := create(t, file, ann, 0)
	for _, test := range []struct {
		start     func(http.Handler) *httptest.Server
		forwarded string
		name      string
		secure    bool
	}{
		{httptest.NewServer, "", "chronicle-session", false},
		{httptest.NewServer, "https", "__Host-chronicle-session", true},
		{httptest.NewTLSServer, "", "__Host-chronicle-session", true},
	} {
		s := newSite(t, withTokens(t, file), test.start)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/auth/session", strings.NewReader(`{"token":"`+token+`"}`))
		require.NoError(t, err)
		r.Header.Set("X-Forwarded-Proto", test.forwarded)
		response, err := s.Client().Do(r)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		cookie := response.Cookies()[0]
		require.Equal(t, []any{test.name, "/", "", true, test.secure, http.SameSiteLaxMode, int(auth.SessionLifetime.Seconds())},
			[]any{cookie.Name, cookie.Path, cookie.Domain, cookie.HttpOnly, cookie.Secure, cookie.SameSite, cookie.MaxAge})
	}
}

func TestACookieIsValidForItsKeyItsPurposeAndItsLifetime(t *testing.T) {
	p := authtest.Start(t, person)
	key := bytes.Repeat([]byte("k"), 32)
	options := auth.Options{OIDC: auth.NewOIDC(oidcOptions(p)), SessionKey: key}
	s := newSite(t, newService(t, options), httptest.NewServer)
	browser := s.browser()
	s.signInAtProvider(browser)
	root, err := url.Parse(s.URL)
	require.NoError(t, err)
	cookie := browser.Jar.Cookies(root)[0]
	with := func(name, value string) *http.Request { return request("Cookie", name+"="+value) }
	got, err := newService(t, options).Authenticate(with(cookie.Name, cookie.Value))
	require.NoError(t, err, "another gateway with the key")
	require.Equal(t, "248289761001", got.Subject)

	// A cookie that the gateway sealed for another purpose.
	response := s.do(&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, http.MethodGet, "/auth/login", "")
	attempt := response.Cookies()[0]
	require.Equal(t, "chronicle-login", attempt.Name)

	random := newService(t, auth.Options{OIDC: options.OIDC})
	tokensOnly := newService(t, auth.Options{Tokens: auth.OpenTokens(tokenFile(t), slog.New(slog.DiscardHandler)), SessionKey: key})
	secure := with(cookie.Name, cookie.Value)
	secure.Header.Set("X-Forwarded-Proto", "https")
	for name, test := range map[string]struct {
		service *auth.Service
		r       *http.Request
	}{
		"another key":                {random, with(cookie.Name, cookie.Value)},
		"another purpose":            {s.service, with(cookie.Name, attempt.Value)},
		"a changed cookie":           {s.service, with(cookie.Name, "A"+cookie.Value[1:]+"A")},
		"a truncated cookie":         {s.service, with(cookie.Name, cookie.Value[:20])},
		"no cookie":                  {s.service, with(cookie.Name, "")},
		"a cookie set without TLS":   {s.service, secure},
		"a way that is not accepted": {tokensOnly, with(cookie.Name, cookie.Value)},
		"an invalid token beside it": {s.service, request("Cookie", cookie.Name+"="+cookie.Value, "Authorization", "Bearer x.y.z")},
	} {
		_, err := test.service.Authenticate(test.r)
		require.ErrorIs(t, err, auth.ErrUnauthenticated, name)
	}
	_, err = auth.New(auth.Options{OIDC: options.OIDC, SessionKey: []byte("short")})
	require.EqualError(t, err, "session key: 5 bytes (want at least 32)")
}

// signInAtProvider clicks the button of the provider, and returns the response of the page that it leads to.
func (s *site) signInAtProvider(browser *http.Client) *http.Response {
	s.t.Helper()
	form := s.do(browser, http.MethodGet, "/auth/login", "")
	return s.do(browser, http.MethodPost, form.Request.URL.String(), "")
}

func TestAPersonSignsInAtTheProvider(t *testing.T) {
	p := authtest.Start(t, person)
	s := newSite(t, withProvider(t, oidcOptions(p)), httptest.NewTLSServer)
	browser := s.browser()
	require.Equal(t, auth.Who{SignIn: []string{"provider"}, Required: true}, s.who(browser))
	response := s.signInAtProvider(browser)
	require.Equal(t, s.URL+"/", response.Request.URL.String())
	require.Equal(t, auth.Who{Subject: "248289761001", Roles: []auth.Role{auth.RoleWrite}, Session: true, SignIn: []string{"provider"}, Required: true}, s.who(browser))
	require.Equal(t, http.StatusOK, s.do(browser, http.MethodGet, "/contexts", "").StatusCode)
	require.Len(t, s.signed, 1)

	require.Equal(t, http.StatusNoContent, s.do(browser, http.MethodDelete, "/auth/session", "").StatusCode)
	require.Equal(t, http.StatusUnauthorized, s.do(browser, http.MethodGet, "/contexts", "").StatusCode)
	require.Equal(t, http.StatusNotFound, s.signInWithToken(browser, "chr_x").StatusCode)
}

func TestAPersonSignsInBelowAPathOfAProxy(t *testing.T) {
	p := authtest.Start(t, person)
	proxy := httptest.NewUnstartedServer(nil)
	public := "http://" + proxy.Listener.Addr().String() + "/chat/"
	s := newSite(t, newService(t, auth.Options{OIDC: auth.NewOIDC(oidcOptions(p)), PublicURL: public}), func(h http.Handler) *httptest.Server {
		proxy.Config.Handler = http.StripPrefix("/chat", h)
		proxy.Start()
		return proxy
	})
	s.URL += "/chat"
	browser := s.browser()
	require.Equal(t, public, s.signInAtProvider(browser).Request.URL.String())
	require.Equal(t, "248289761001", s.who(browser).Subject)
}

func TestASignInAtTheProviderThatFails(t *testing.T) {
	p := authtest.Start(t, person)
	var log bytes.Buffer
	service := newService(t, auth.Options{OIDC: auth.NewOIDC(oidcOptions(p)), Log: slog.New(slog.NewTextHandler(&log, nil))})
	s := newSite(t, service, httptest.NewServer)
	// begin returns the address that the provider would lead to, for the browser.
	begin := func(browser *http.Client) *url.URL {
		form := s.do(browser, http.MethodGet, "/auth/login", "")
		stop := *browser
		stop.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		back, err := s.do(&stop, http.MethodPost, form.Request.URL.String(), "").Location()
		require.NoError(t, err)
		return back
	}
	set := func(back *url.URL, name, value string) string {
		q := back.Query()
		q.Set(name, value)
		return back.Path + "?" + q.Encode()
	}
	victim, attacker := s.browser(), s.browser()
	for _, test := range []struct {
		name, want string
		path       func() string
	}{
		{"the sign-in of another browser", "expired", func() string { return begin(attacker).RequestURI() }},
		{"no state", "expired", func() string { return set(begin(victim), "state", "") }},
		{"a code of another sign-in", "rejected", func() string { return set(begin(victim), "code", begin(attacker).Query().Get("code")) }},
		{"an unknown code", "rejected", func() string { return set(begin(victim), "code", "x") }},
		{"a refusal", "denied", func() string { return set(begin(victim), "code", "") + "&error=access_denied" }},
		{"without a sign-in", "expired", func() string { return "/auth/callback?code=x&state=" }},
	} {
		path := test.path()
		response := s.do(victim, http.MethodGet, path, "")
		require.Equal(t, s.URL+"/?sign-in="+test.want, response.Request.URL.String(), test.name)
		require.Empty(t, s.who(victim).Subject, test.name)
	}
	back := begin(victim)
	p.Down.Store(true)
	require.Equal(t, "sign-in=unavailable", s.do(victim, http.MethodGet, back.RequestURI(), "").Request.URL.RawQuery)
	p.Down.Store(false)
	back = begin(victim)
	p.Breaks.Store(true)
	require.Equal(t, "sign-in=unavailable", s.do(victim, http.MethodGet, back.RequestURI(), "").Request.URL.RawQuery)
	p.Breaks.Store(false)
	require.Empty(t, s.signed)
	require.Contains(t, log.String(), "the provider rejected the code with status 500")
	require.NotContains(t, log.String(), back.Query().Get("code"))
	require.NotContains(t, log.String(), "Basic ")

	back = begin(victim)
	require.Equal(t, s.URL+"/", s.do(victim, http.MethodGet, back.RequestURI(), "").Request.URL.String())
	require.Equal(t, "sign-in=expired", s.do(victim, http.MethodGet, back.RequestURI(), "").Request.URL.RawQuery, "a code is used once")
}

func TestAPersonWithoutAValidIdentityIsRejected(t *testing.T) {
	p := authtest.Start(t, map[string]any{"sub": "ann"})
	options := oidcOptions(p)
	options.Mapping.Tenant = "org"
	s := newSite(t, withProvider(t, options), httptest.NewServer)
	require.Equal(t, "sign-in=rejected", s.signInAtProvider(s.browser()).Request.URL.RawQuery)
}

func TestTheProviderIsDownWhenSigningInBegins(t *testing.T) {
	t.Parallel() // it waits
	p := authtest.Start(t, person)
	p.Down.Store(true)
	s := newSite(t, withProvider(t, oidcOptions(p)), httptest.NewServer)
	browser := s.browser()
	require.Equal(t, "sign-in=unavailable", s.do(browser, http.MethodGet, "/auth/login", "").Request.URL.RawQuery)
	p.Down.Store(false)
	require.Eventually(t, func() bool {
		return s.do(browser, http.MethodGet, "/auth/login", "").Request.URL.Path == "/authorize"
	}, time.Minute, 50*time.Millisecond)
}

func TestTheZeroServiceSignsNobodyIn(t *testing.T) {
	s := newSite(t, new(auth.Service), httptest.NewServer)
	browser := s.browser()
	require.Equal(t, auth.Who{SignIn: []string{}}, s.who(browser))
	for _, ask := range [][2]string{{"POST", "/auth/session"}, {"DELETE", "/auth/session"}, {"GET", "/auth/login"}, {"GET", "/auth/callback"}, {"PUT", "/auth/session"}, {"GET", "/auth/other"}} {
		require.Equal(t, http.StatusNotFound, s.do(browser, ask[0], ask[1], "").StatusCode, ask)
	}
}

func TestACallerWithABearerTokenHasNoSession(t *testing.T) {
	file := tokenFile(t)
	token, _ := create(t, file, ann, 0)
	w := httptest.NewRecorder()
	r := withBearer(token)
	r.URL.Path = "/auth/session"
	_, err := withTokens(t, file).Serve(w, r)
	require.NoError(t, err)
	require.JSONEq(t, `{"subject":"ann","tenant":"acme","roles":["write","approve"],"signIn":["token"],"required":true}`, w.Body.String())
}

func TestASessionExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := tokenFile(t)
		token, _ := create(t, file, ann, 0)
		service := withTokens(t, file)
		w := httptest.NewRecorder()
		_, err := service.Serve(w, httptest.NewRequest(http.MethodPost, "/auth/session", strings.NewReader(`{"token":"`+token+`"}`)))
		require.NoError(t, err)
		cookie := w.Result().Cookies()[0]
		r := request("Cookie", cookie.Name+"="+cookie.Value)
		time.Sleep(auth.SessionLifetime - time.Second) // bubble time
		_, err = service.Authenticate(r)
		require.NoError(t, err)
		time.Sleep(time.Second) // bubble time: the session expires
		_, err = service.Authenticate(r)
		require.ErrorContains(t, err, "expired session")
	})
}
