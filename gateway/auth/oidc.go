package auth

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// OIDCOptions configure an [OIDC].
type OIDCOptions struct {
	Issuer   string // URL of the provider, exactly as in its tokens
	ClientID string // of the gateway at the provider, and the audience of the tokens that it accepts
	// ClientSecret is "" for a public client.
	ClientSecret string
	Mapping      Mapping
}

// OIDCMapping are the default claims. A claim inside of another one has a name like realm_access.roles.
var OIDCMapping = Mapping{Subject: "sub", Roles: "roles"}

// OIDC accepts the JWTs of an OpenID Connect provider. It fetches the configuration of the provider before the first use,
// and its keys when a token names an unknown one.
type OIDC struct {
	options OIDCOptions
	client  *http.Client

	mu       sync.Mutex
	provider *provider
	tried    time.Time // of the last failed attempt
	err      error
}

type provider struct {
	verifier *oidc.IDTokenVerifier
	endpoint oauth2.Endpoint
	scopes   []string
}

const (
	providerTimeout = 10 * time.Second // of each request to the provider
	providerRetry   = 2 * time.Second  // from a failed attempt to fetch the configuration
	// clockSkew is how much earlier than here the clock of the provider may be. A token may begin up to four minutes later
	// than now.
	clockSkew = time.Minute
)

// algorithms are asymmetric: the gateway has no key that could sign a token.
var algorithms = []string{
	oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA,
}

// NewOIDC does not reach the provider.
func NewOIDC(options OIDCOptions) *OIDC {
	return &OIDC{options: options, client: &http.Client{Timeout: providerTimeout, Transport: &transport{}}}
}

// Connect fetches the configuration of the provider, unless an earlier call did.
func (o *OIDC) Connect(ctx context.Context) error {
	_, err := o.connect(ctx)
	return err
}

func (o *OIDC) connect(ctx context.Context) (*provider, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.provider != nil {
		return o.provider, nil
	}
	if time.Since(o.tried) < providerRetry {
		return nil, o.err
	}
	found, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), o.client), o.options.Issuer)
	if err != nil {
		o.tried, o.err = time.Now(), fmt.Errorf("read the configuration of OpenID provider %s: %w", o.options.Issuer, err)
		return nil, o.err
	}
	var metadata struct {
		Keys       string   `json:"jwks_uri"`
		Algorithms []string `json:"id_token_signing_alg_values_supported"`
		Scopes     []string `json:"scopes_supported"`
	}
	if err := found.Claims(&metadata); err != nil {
		return nil, err
	}
	isUnsupported := func(algorithm string) bool { return !slices.Contains(algorithms, algorithm) }
	o.provider = &provider{
		verifier: oidc.NewVerifier(o.options.Issuer, newKeySet(o.client, metadata.Keys), &oidc.Config{
			ClientID:             o.options.ClientID,
			SupportedSigningAlgs: slices.DeleteFunc(metadata.Algorithms, isUnsupported), // none: RS256
			Now:                  func() time.Time { return time.Now().Add(-clockSkew) },
		}),
		endpoint: found.Endpoint(),
		scopes:   []string{oidc.ScopeOpenID, "profile", "email"},
	}
	if slices.Contains(metadata.Scopes, "groups") {
		o.provider.scopes = append(o.provider.scopes, "groups")
	}
	return o.provider, nil
}

// verify returns the identity in a JWT, and the JWT.
func (o *OIDC) verify(ctx context.Context, token string) (Identity, *oidc.IDToken, error) {
	p, err := o.connect(ctx)
	if err != nil {
		return Identity{}, nil, err
	}
	ctx, outage := withOutage(ctx)
	verified, err := p.verifier.Verify(ctx, token)
	switch {
	case *outage != nil:
		return Identity{}, nil, fmt.Errorf("read the keys of OpenID provider %s: %w", o.options.Issuer, *outage)
	case err != nil:
		return Identity{}, nil, fmt.Errorf("%w: %w", ErrUnauthenticated, err)
	}
	claims := map[string]any{}
	if err := verified.Claims(&claims); err != nil {
		return Identity{}, nil, fmt.Errorf("%w: %w", ErrUnauthenticated, err)
	}
	mapping := o.options.Mapping
	if mapping.Subject == "email" && !slices.Contains([]any{true, "true"}, claims["email_verified"]) {
		mapping.Subject = "sub" // anyone could have registered with the address
	}
	identity, err := mapping.identity(func(name string) []string { return texts(claim(claims, name)) })
	if err != nil {
		return Identity{}, nil, fmt.Errorf("%w: claim %w", ErrUnauthenticated, err)
	}
	return identity, verified, nil
}

// claim returns the claim of a name, which may contain dots itself.
func claim(claims map[string]any, name string) any {
	if value, ok := claims[name]; ok {
		return value
	}
	outer, inner, ok := strings.Cut(name, ".")
	if nested, isObject := claims[outer].(map[string]any); ok && isObject {
		return claim(nested, inner)
	}
	return nil
}

// texts returns a text, or the texts in a list.
func texts(value any) (found []string) {
	switch value := value.(type) {
	case string:
		return []string{value}
	case []any:
		for _, element := range value {
			if text, ok := element.(string); ok {
				found = append(found, text)
			}
		}
	}
	return found
}
