package auth

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"
)

// Options configure a [Service]. At least one of Tokens, OIDC and Proxy is set.
type Options struct {
	Tokens *Tokens
	OIDC   *OIDC
	Proxy  *Proxy
	// SessionKey encrypts the cookies of sessions; at least 32 bytes, the same for all gateways behind one name. Empty: a
	// random key, so that people sign in again after a restart.
	SessionKey []byte
	// PublicURL is where browsers reach the page, with a slash at its end. Empty: at the host of each request.
	PublicURL string
	Log       *slog.Logger // receives why signing in failed; nil: none
}

// Service is an [Authenticator] that also signs people in. The zero Service signs nobody in.
type Service struct {
	options Options
	seal    *seal
}

const minProxySecret = 16 // bytes

// New returns an error for an invalid key or secret.
func New(options Options) (*Service, error) {
	if options.Tokens == nil && options.OIDC == nil && options.Proxy == nil {
		return nil, errors.New("authentication: no method (want tokens, OIDC or a proxy)")
	}
	if options.Proxy != nil && len(options.Proxy.Secret) < minProxySecret {
		return nil, fmt.Errorf("proxy secret: %d bytes (want at least %d)", len(options.Proxy.Secret), minProxySecret)
	}
	options.Log = cmp.Or(options.Log, slog.New(slog.DiscardHandler))
	seal, err := newSeal(options.SessionKey)
	return &Service{options, seal}, err
}

func (s *Service) Authenticate(r *http.Request) (Identity, error) {
	token, isBearer := bearer(r)
	if isBearer && strings.HasPrefix(token, SharePrefix) { // first, since it reaches the least
		return s.authenticateLink(token)
	}
	if s.options.Proxy != nil && len(r.Header.Values(SecretHeader)) > 0 {
		return s.options.Proxy.authenticate(r)
	}
	if isBearer {
		return s.authenticateBearer(r, token)
	}
	return s.authenticateSession(r)
}

func (s *Service) authenticateBearer(r *http.Request, token string) (Identity, error) {
	switch {
	case s.options.Tokens != nil && (strings.HasPrefix(token, TokenPrefix) || s.options.OIDC == nil):
		return identityOf(s.options.Tokens.verify(token))
	case s.options.OIDC != nil:
		identity, _, err := s.options.OIDC.verify(r.Context(), token)
		return identity, err
	}
	return Identity{}, fmt.Errorf("%w: tokens are not accepted", ErrUnauthenticated)
}

// bearer returns the token in the header Authorization; ok is false without this scheme.
func bearer(r *http.Request) (token string, ok bool) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.TrimSpace(token), strings.EqualFold(scheme, "Bearer")
}

func (s *Service) authenticateSession(r *http.Request) (Identity, error) {
	var current session
	switch {
	case !s.seal.get(r, sessionCookie, &current):
		return Identity{}, fmt.Errorf("%w: no credential", ErrUnauthenticated)
	case !time.Now().Before(current.Expires):
		return Identity{}, fmt.Errorf("%w: expired session", ErrUnauthenticated)
	case current.Token != "" && s.options.Tokens != nil:
		return identityOf(s.options.Tokens.record(current.Token))
	case current.Identity != nil && s.options.OIDC != nil:
		return *current.Identity, nil
	}
	return Identity{}, fmt.Errorf("%w: the session began in a way that is not accepted", ErrUnauthenticated)
}

func identityOf(token Token, err error) (Identity, error) {
	if err != nil {
		return Identity{}, err
	}
	return Identity{Subject: token.Subject, Token: token.ID, Tenant: token.Tenant, Roles: token.Roles}, nil
}
