package auth

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Shared is all that a share link reaches.
type Shared struct {
	Context string    `json:"context"` // its name within the tenant
	Created time.Time `json:"created"` // of that context; another one of the same name is not shared
}

// Link is a share link, which is a credential.
type Link struct {
	URL       string    `json:"url"` // of the page
	ExpiresAt time.Time `json:"expiresAt"`
}

// SharePrefix begins the credential in the fragment of a [Link]. Package event redacts it.
const SharePrefix = "chs_"

// Errors of [Service.Share].
var (
	ErrNoAuth       = errors.New("no authentication")
	ErrNoSessionKey = errors.New("no session key")
)

// sharing is what the credential of a share link seals.
type sharing struct {
	Identity Identity  `json:"i"`
	Expires  time.Time `json:"e"`
}

// Share returns a link that reads what is shared by an identity of the same tenant, for a time. A link that was made with a
// static token ends with the token. Another [Options.SessionKey] ends all links. The error is ErrNoAuth for the zero
// Service, and ErrNoSessionKey for a random key, with which links would end at a restart.
func (s *Service) Share(r *http.Request, by Identity, what Shared, lifetime time.Duration) (Link, error) {
	switch {
	case s.seal == nil:
		return Link{}, ErrNoAuth
	case len(s.options.SessionKey) == 0:
		return Link{}, ErrNoSessionKey
	}
	made := sharing{
		Identity: Identity{Subject: "share link of " + by.Subject, Token: by.Token, Tenant: by.Tenant, Roles: []Role{RoleRead}, Shared: &what},
		Expires:  time.Now().Add(lifetime).UTC().Truncate(time.Second),
	}
	if by.Token != "" {
		token, err := s.options.Tokens.record(by.Token)
		if err != nil {
			return Link{}, err
		}
		if token.Expires != nil {
			made.Expires = slices.MinFunc([]time.Time{made.Expires, *token.Expires}, time.Time.Compare)
		}
	}
	return Link{s.publicURL(r) + "/#share=" + SharePrefix + s.seal.encode(SharePrefix, made), made.Expires}, nil
}

func (s *Service) authenticateLink(credential string) (Identity, error) {
	var made sharing
	switch {
	case s.seal == nil || !s.seal.decode(SharePrefix, strings.TrimPrefix(credential, SharePrefix), &made):
		return Identity{}, fmt.Errorf("%w: unknown or revoked share link", ErrUnauthenticated)
	case !time.Now().Before(made.Expires):
		return Identity{}, fmt.Errorf("%w: expired share link", ErrUnauthenticated)
	case made.Identity.Token != "" && s.options.Tokens == nil:
		return Identity{}, fmt.Errorf("%w: the share link was made with a token, which is not accepted", ErrUnauthenticated)
	case made.Identity.Token != "":
		if _, err := s.options.Tokens.record(made.Identity.Token); err != nil {
			return Identity{}, err
		}
	}
	return made.Identity, nil
}
