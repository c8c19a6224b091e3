package auth

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Path begins the paths that [Service.Serve] serves.
const Path = "/auth/"

// ErrNotFound means that [Service.Serve] does not serve a path, or not with this method.
var ErrNotFound = errors.New("not found")

// Who is who sends a request, and how people sign in.
type Who struct {
	Subject string `json:"subject,omitempty"` // "": nobody
	Tenant  string `json:"tenant,omitempty"`
	Roles   []Role `json:"roles,omitempty"`
	// The only context that a share link reads; absent: another credential, or none.
	Context string `json:"context,omitempty" schema:"is=ContextName"`
	// Whether a cookie identifies the person, who can sign out.
	Session bool `json:"session,omitempty"`
	// The ways to sign in here: provider, token.
	SignIn []string `json:"signIn"`
	// Whether nothing can be read without signing in.
	Required bool `json:"required,omitempty"`
}

// Serve serves the paths below [Path], and returns the person who signed in or out, if any. The caller has checked that no other
// site sent the request. It answers a request for which Serve returns an error; one without a valid token fails with
// [ErrUnauthenticated].
//
//	GET    /auth/session   who sends the request, see [Who]
//	POST   /auth/session   begins a session with the token in {"token": "chr_…"}
//	DELETE /auth/session   ends the session in this browser
//	GET    /auth/login     leads to the provider
//	GET    /auth/callback  is where the provider leads back to; begins a session, and leads to the page
func (s *Service) Serve(w http.ResponseWriter, r *http.Request) (Identity, error) {
	w.Header().Set("Cache-Control", "no-store")
	switch r.Method + " " + r.URL.Path {
	case "GET /auth/session":
		return Identity{}, s.who(w, r)
	case "POST /auth/session":
		return s.signInWithToken(w, r)
	case "DELETE /auth/session":
		if s.seal == nil {
			break
		}
		identity, _ := s.authenticateSession(r) // without one, nobody signs out
		s.seal.clear(w, r, sessionCookie)
		w.WriteHeader(http.StatusNoContent)
		return identity, nil
	case "GET /auth/login":
		return Identity{}, s.login(w, r)
	case "GET /auth/callback":
		return s.callback(w, r)
	}
	return Identity{}, ErrNotFound
}

func (s *Service) who(w http.ResponseWriter, r *http.Request) error {
	who := Who{SignIn: []string{}, Required: s.seal != nil}
	if s.options.OIDC != nil {
		who.SignIn = append(who.SignIn, "provider")
	}
	if s.options.Tokens != nil {
		who.SignIn = append(who.SignIn, "token")
	}
	if s.seal != nil {
		// Without an identity the person signs in, whatever the reason.
		if identity, err := s.Authenticate(r); err == nil {
			_, isBearer := bearer(r)
			isProxy := s.options.Proxy != nil && len(r.Header.Values(SecretHeader)) > 0
			who.Subject, who.Tenant, who.Roles, who.Session = identity.Subject, identity.Tenant, identity.Roles, !isBearer && !isProxy
			if identity.Shared != nil {
				who.Context = identity.Shared.Context
			}
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(who) // an error means that the client disconnected
	return nil
}

// Credential is what a person signs in with.
type Credential struct {
	Token string `json:"token"` // a static token
}

const maxSignIn = 4 << 10 // bytes of a request

func (s *Service) signInWithToken(w http.ResponseWriter, r *http.Request) (Identity, error) {
	if s.options.Tokens == nil {
		return Identity{}, ErrNotFound
	}
	var body Credential
	if json.NewDecoder(http.MaxBytesReader(w, r.Body, maxSignIn)).Decode(&body) != nil {
		return Identity{}, fmt.Errorf(`%w: want {"token": "…"}`, ErrUnauthenticated)
	}
	record, err := s.options.Tokens.verify(body.Token)
	if err != nil {
		return Identity{}, err
	}
	s.begin(w, r, session{Token: record.ID})
	w.WriteHeader(http.StatusNoContent)
	return identityOf(record, nil)
}

// begin replaces the session of the browser.
func (s *Service) begin(w http.ResponseWriter, r *http.Request, next session) {
	next.Expires = time.Now().Add(SessionLifetime)
	s.seal.set(w, r, sessionCookie, next, SessionLifetime)
}

// attempt is the content of the cookie of a person who signs in at the provider.
type attempt struct {
	State    string    `json:"s"`
	Nonce    string    `json:"n"`
	Verifier string    `json:"v"`
	Expires  time.Time `json:"e"`
}

const attemptLifetime = 10 * time.Minute

func (s *Service) login(w http.ResponseWriter, r *http.Request) error {
	if s.options.OIDC == nil {
		return ErrNotFound
	}
	flow, err := s.options.OIDC.flow(r.Context(), s.callbackURL(r))
	if err != nil {
		s.options.Log.Warn("signing in failed", "error", err)
		backToPage(w, "unavailable")
		return nil
	}
	next := attempt{rand.Text(), rand.Text(), oauth2.GenerateVerifier(), time.Now().Add(attemptLifetime)}
	s.seal.set(w, r, loginCookie, next, attemptLifetime)
	w.Header().Set("Location", flow.AuthCodeURL(next.State, oidc.Nonce(next.Nonce), oauth2.S256ChallengeOption(next.Verifier)))
	w.WriteHeader(http.StatusSeeOther)
	return nil
}

// callbackURL is where the provider leads back to. It accepts only registered URLs.
func (s *Service) callbackURL(r *http.Request) string {
	return s.publicURL(r) + Path + "callback"
}

// publicURL returns where browsers reach the gateway, without a slash at its end.
func (s *Service) publicURL(r *http.Request) string {
	switch {
	case s.options.PublicURL != "":
		return strings.TrimSuffix(s.options.PublicURL, "/")
	case isSecure(r):
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// flow returns the settings of the authorization code flow.
func (o *OIDC) flow(ctx context.Context, callbackURL string) (*oauth2.Config, error) {
	p, err := o.connect(ctx)
	if err != nil {
		return nil, err
	}
	return &oauth2.Config{
		ClientID: o.options.ClientID, ClientSecret: o.options.ClientSecret, Endpoint: p.endpoint, Scopes: p.scopes, RedirectURL: callbackURL,
	}, nil
}

func (s *Service) callback(w http.ResponseWriter, r *http.Request) (Identity, error) {
	if s.options.OIDC == nil {
		return Identity{}, ErrNotFound
	}
	var current attempt
	isKnown := s.seal.get(r, loginCookie, &current)
	s.seal.clear(w, r, loginCookie)
	query := r.URL.Query()
	failure := ""
	var identity Identity
	var err error
	switch {
	case !isKnown || !time.Now().Before(current.Expires) || !isEqual(query.Get("state"), current.State):
		failure, err = "expired", errors.New("the state is not that of a sign-in which this browser began")
	case query.Get("code") == "":
		failure, err = "denied", fmt.Errorf("the provider answered %q", event.Redact(query.Get("error"), maxErrorCode))
	default:
		identity, err = s.options.OIDC.redeem(r, s.callbackURL(r), query.Get("code"), current)
		switch {
		case errors.Is(err, ErrUnauthenticated):
			failure = "rejected"
		case err != nil:
			failure = "unavailable"
		}
	}
	if err != nil {
		s.options.Log.Warn("signing in failed", "error", err)
		backToPage(w, failure)
		return Identity{}, nil
	}
	s.begin(w, r, session{Identity: &identity})
	backToPage(w, "")
	return identity, nil
}

const maxErrorCode = 64 // bytes in the log

// redeem exchanges the code of the provider for an identity.
func (o *OIDC) redeem(r *http.Request, callbackURL, code string, current attempt) (Identity, error) {
	flow, err := o.flow(r.Context(), callbackURL)
	if err != nil {
		return Identity{}, err
	}
	ctx, cancel := context.WithTimeout(oidc.ClientContext(r.Context(), o.client), providerTimeout)
	defer cancel()
	tokens, err := flow.Exchange(ctx, code, oauth2.VerifierOption(current.Verifier))
	if rejected := new(oauth2.RetrieveError); errors.As(err, &rejected) {
		// The response could contain the code or the secret.
		err = fmt.Errorf("the provider rejected the code with status %d, %q", rejected.Response.StatusCode, event.Redact(rejected.ErrorCode, maxErrorCode))
		if rejected.Response.StatusCode < http.StatusInternalServerError {
			err = fmt.Errorf("%w: %w", ErrUnauthenticated, err)
		}
	}
	if err != nil {
		return Identity{}, err
	}
	raw, _ := tokens.Extra("id_token").(string)
	identity, token, err := o.verify(ctx, raw)
	if err != nil {
		return Identity{}, err
	}
	if !isEqual(token.Nonce, current.Nonce) {
		return Identity{}, fmt.Errorf("%w: the token belongs to another sign-in", ErrUnauthenticated)
	}
	return identity, nil
}

// backToPage never leads to another site. The page shows the failure.
func backToPage(w http.ResponseWriter, failure string) {
	location := "../"
	if failure != "" {
		location += "?sign-in=" + failure
	}
	w.Header().Set("Location", location)
	w.WriteHeader(http.StatusSeeOther)
}
