// Package authtest runs an OpenID Connect provider for tests.
package authtest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc/oidctest"
	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"
)

// The client that the provider knows.
const (
	ClientID     = "chronicle"
	ClientSecret = "secret-of-the-client"
)

// Provider is an OpenID Connect provider with the authorization code flow, PKCE and keys that rotate. Its sign-in page
// has one button. A request that the provider does not expect fails the test.
type Provider struct {
	Issuer string
	// Down makes the provider close connections without a response.
	Down atomic.Bool
	// Breaks makes the token endpoint fail with status 500 and repeat the request.
	Breaks atomic.Bool
	// KeyRequests counts the requests for the keys.
	KeyRequests atomic.Int64

	t      testing.TB
	mu     sync.Mutex
	key    *rsa.PrivateKey
	keyID  string
	person map[string]any        // claims of the person who signs in
	codes  map[string]url.Values // the requests for authorization, by code
}

// Start starts a provider, which signs in a person with the claims.
func Start(t testing.TB, person map[string]any) *Provider {
	t.Helper()
	p := &Provider{t: t, person: person, codes: map[string]url.Values{}}
	p.Rotate()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.configuration)
	mux.HandleFunc("GET /keys", p.keys)
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("POST /authorize", p.approve)
	mux.HandleFunc("POST /token", p.token)
	mux.HandleFunc("GET /favicon.ico", http.NotFound)
	mux.HandleFunc("/", func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("unexpected request to the provider: %s %s", r.Method, r.URL)
	})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.Down.Load() {
			panic(http.ErrAbortHandler)
		}
		mux.ServeHTTP(w, r)
	}))
	p.Issuer = "http://" + server.Listener.Addr().String()
	server.Start()
	t.Cleanup(server.Close)
	return p
}

// Rotate replaces the key.
func (p *Provider) Rotate() {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(p.t, err)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.key, p.keyID = key, rand.Text()
}

// SignsIn replaces the person who signs in.
func (p *Provider) SignsIn(person map[string]any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.person = person
}

// Key returns the current key and its id.
func (p *Provider) Key() (*rsa.PrivateKey, string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.key, p.keyID
}

// Claims returns the claims of a valid token, changed by others; nil removes a claim.
func (p *Provider) Claims(changes map[string]any) string {
	claims := map[string]any{"iss": p.Issuer, "aud": ClientID, "exp": time.Now().Add(time.Minute).Unix(), "iat": time.Now().Unix()}
	p.mu.Lock()
	maps.Copy(claims, p.person)
	p.mu.Unlock()
	maps.Copy(claims, changes)
	maps.DeleteFunc(claims, func(_ string, value any) bool { return value == nil })
	data, err := json.Marshal(claims)
	require.NoError(p.t, err)
	return string(data)
}

// Token returns a signed token with [Provider.Claims].
func (p *Provider) Token(changes map[string]any) string {
	key, id := p.Key()
	return oidctest.SignIDToken(key, id, "RS256", p.Claims(changes))
}

func (p *Provider) configuration(w http.ResponseWriter, _ *http.Request) {
	p.answer(w, map[string]any{
		"issuer": p.Issuer, "authorization_endpoint": p.Issuer + "/authorize", "token_endpoint": p.Issuer + "/token", "jwks_uri": p.Issuer + "/keys",
		"id_token_signing_alg_values_supported": []string{"RS256", "HS256", "none"},
		"response_types_supported":              []string{"code"}, "subject_types_supported": []string{"public"},
		"scopes_supported": []string{"openid", "profile", "email", "groups"},
	})
}

func (p *Provider) keys(w http.ResponseWriter, _ *http.Request) {
	p.KeyRequests.Add(1)
	key, id := p.Key()
	p.answer(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: crypto.PublicKey(&key.PublicKey), KeyID: id, Algorithm: "RS256", Use: "sig"}}})
}

func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("client_id") != ClientID || q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") == "" ||
		q.Get("state") == "" || q.Get("nonce") == "" || q.Get("scope") != "openid profile email groups" {
		p.t.Errorf("unexpected request for authorization: %v", q)
	}
	w.Header().Set("Content-Type", "text/html")
	_, _ = w.Write([]byte(`<!doctype html><title>Provider</title><form method="post"><button id="approve">Sign in</button></form>`))
}

func (p *Provider) approve(w http.ResponseWriter, r *http.Request) {
	code := rand.Text()
	p.mu.Lock()
	p.codes[code] = r.URL.Query()
	p.mu.Unlock()
	back := r.URL.Query().Get("redirect_uri") + "?" + url.Values{"code": {code}, "state": {r.URL.Query().Get("state")}}.Encode()
	http.Redirect(w, r, back, http.StatusSeeOther)
}

func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	if p.Breaks.Load() {
		http.Error(w, "cannot process "+r.FormValue("code")+" "+r.Header.Get("Authorization"), http.StatusInternalServerError)
		return
	}
	p.mu.Lock()
	asked, ok := p.codes[r.FormValue("code")]
	delete(p.codes, r.FormValue("code"))
	p.mu.Unlock()
	id, secret, _ := r.BasicAuth()
	challenge := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	if !ok || id != ClientID || secret != ClientSecret || r.FormValue("redirect_uri") != asked.Get("redirect_uri") ||
		base64.RawURLEncoding.EncodeToString(challenge[:]) != asked.Get("code_challenge") {
		w.WriteHeader(http.StatusBadRequest)
		p.answer(w, map[string]any{"error": "invalid_grant"})
		return
	}
	p.answer(w, map[string]any{
		"access_token": rand.Text(), "token_type": "Bearer", "expires_in": 60, "id_token": p.Token(map[string]any{"nonce": asked.Get("nonce")}),
	})
}

func (p *Provider) answer(w http.ResponseWriter, value any) {
	if w.Header().Set("Content-Type", "application/json"); json.NewEncoder(w).Encode(value) != nil {
		p.t.Errorf("the client of the provider disconnected")
	}
}
