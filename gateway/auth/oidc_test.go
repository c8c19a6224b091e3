package auth_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc/oidctest"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/gateway/auth"
	"github.com/seed-9ed7edd4/chronicle/gateway/auth/authtest"
)

var person = map[string]any{
	"sub": "248289761001", "email": "ann@example.com", "https://example.com/org": "acme",
	"roles": []string{"admin", "chronicle-write"}, "realm_access": map[string]any{"roles": []string{"chronicle-admin"}},
}

func oidcOptions(p *authtest.Provider) auth.OIDCOptions {
	return auth.OIDCOptions{Issuer: p.Issuer, ClientID: authtest.ClientID, ClientSecret: authtest.ClientSecret, Mapping: auth.OIDCMapping}
}

func withProvider(t *testing.T, options auth.OIDCOptions) *auth.Service {
	return newService(t, auth.Options{OIDC: auth.NewOIDC(options)})
}

func TestTheClaimsOfAJWTAreMapped(t *testing.T) {
	p := authtest.Start(t, person)
	for _, test := range []struct {
		settings []string
		defaults []auth.Role
		claims   map[string]any
		want     auth.Identity
	}{
		{want: auth.Identity{Subject: "248289761001", Roles: []auth.Role{auth.RoleWrite}}},
		{
			settings: []string{"subject=email", "tenant=https://example.com/org", "roles=realm_access.roles"}, claims: map[string]any{"email_verified": true},
			want: auth.Identity{Subject: "ann@example.com", Tenant: "acme", Roles: []auth.Role{auth.RoleAdmin}},
		},
		{claims: map[string]any{"roles": "chronicle-read"}, want: auth.Identity{Subject: "248289761001", Roles: []auth.Role{auth.RoleRead}}},
		{claims: map[string]any{"roles": nil}, want: auth.Identity{Subject: "248289761001"}},
		{
			claims: map[string]any{"roles": []any{"admin", "write", "chronicle-", "chronicle-owner", 1}}, defaults: []auth.Role{auth.RoleRead},
			want: auth.Identity{Subject: "248289761001", Roles: []auth.Role{auth.RoleRead}},
		},
	} {
		options := oidcOptions(p)
		var err error
		options.Mapping, err = auth.ParseMapping(options.Mapping, test.settings)
		require.NoError(t, err)
		options.Mapping.DefaultRoles = test.defaults
		got, err := withProvider(t, options).Authenticate(withBearer(p.Token(test.claims)))
		require.NoError(t, err)
		require.Equal(t, test.want, got)
	}
	options := oidcOptions(p)
	var err error
	options.Mapping.Groups, err = auth.ParseGroups([]string{"staff=read", "cn=ops,ou=it=admin", "team=write"})
	require.NoError(t, err)
	got, err := withProvider(t, options).Authenticate(withBearer(p.Token(map[string]any{"roles": []string{"cn=ops,ou=it", "staff", "chronicle-approve"}})))
	require.NoError(t, err)
	require.Equal(t, []auth.Role{auth.RoleAdmin, auth.RoleRead}, got.Roles, "only the groups that the operator maps")
	for _, setting := range []string{"", "staff", "=read", "staff=owner"} {
		_, err := auth.ParseGroups([]string{setting})
		require.ErrorContains(t, err, "want GROUP=ROLE with read, write, approve or admin as the role", setting)
	}
	_, err = auth.ParseMapping(auth.OIDCMapping, []string{"group=x"})
	require.EqualError(t, err, `"group=x": want subject=NAME, tenant=NAME or roles=NAME`)
}

func TestAClaimThatIsMissingOrMalformedIsNotReplaced(t *testing.T) {
	p := authtest.Start(t, person)
	options := oidcOptions(p)
	options.Mapping.Tenant = "org"
	service := withProvider(t, options)
	for _, claims := range []map[string]any{
		{}, {"org": ""}, {"org": "a/b"}, {"org": []string{"a", "b"}}, {"org": 1}, {"org": "acme", "sub": nil}, {"org": "acme", "sub": "a\u202eb"},
	} {
		_, err := service.Authenticate(withBearer(p.Token(claims)))
		require.ErrorIs(t, err, auth.ErrUnauthenticated, claims)
		require.ErrorContains(t, err, "claim ")
	}
}

func TestAnEmailIsASubjectOnlyIfItIsVerified(t *testing.T) {
	p := authtest.Start(t, person)
	options := oidcOptions(p)
	options.Mapping.Subject = "email"
	service := withProvider(t, options)
	const email, sub = "ann@example.com", "248289761001"
	for verified, want := range map[any]string{true: email, "true": email, nil: sub, false: sub, "false": sub, 1: sub} {
		got, err := service.Authenticate(withBearer(p.Token(map[string]any{"email_verified": verified})))
		require.NoError(t, err)
		require.Equal(t, want, got.Subject, verified)
	}
}

func TestInvalidJWTsAreRejected(t *testing.T) {
	p := authtest.Start(t, person)
	service := withProvider(t, oidcOptions(p))
	key, id := p.Key()
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	require.NoError(t, err)
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	encode := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	valid := p.Token(nil)
	parts := strings.Split(valid, ".")
	for name, token := range map[string]string{
		"expired":                 p.Token(map[string]any{"exp": time.Now().Add(-2 * time.Minute).Unix()}),
		"without expiry":          p.Token(map[string]any{"exp": nil}),
		"not yet valid":           p.Token(map[string]any{"nbf": time.Now().Add(10 * time.Minute).Unix()}),
		"another audience":        p.Token(map[string]any{"aud": "other"}),
		"without audience":        p.Token(map[string]any{"aud": nil}),
		"another issuer":          p.Token(map[string]any{"iss": p.Issuer + "/"}),
		"algorithm none":          encode(`{"alg":"none"}`) + "." + encode(p.Claims(nil)) + ".",
		"HS256 by the public key": string(oidctest.SignIDToken(public, id, "HS256", p.Claims(nil))),
		"HS256 by the DER":        string(oidctest.SignIDToken(der, id, "HS256", p.Claims(nil))),
		"an algorithm that the provider does not announce": oidctest.SignIDToken(curve, id, "ES256", p.Claims(nil)),
		"another key with its id":                          oidctest.SignIDToken(other, id, "RS256", p.Claims(nil)),
		"another key":                                      oidctest.SignIDToken(other, "mine", "RS256", p.Claims(nil)),
		"changed claims":                                   parts[0] + "." + encode(p.Claims(map[string]any{"sub": "bob"})) + "." + parts[2],
		"without signature":                                parts[0] + "." + parts[1] + ".",
		"malformed":                                        "a.b.c",
		"empty":                                            "",
		"a static token":                                   "chr_abcdefgh_" + strings.Repeat("A", 52),
	} {
		_, err := service.Authenticate(withBearer(token))
		require.ErrorIs(t, err, auth.ErrUnauthenticated, name)
		require.NotContains(t, err.Error(), parts[2], name)
	}
	_, err = service.Authenticate(withBearer(valid))
	require.NoError(t, err)
	_, err = service.Authenticate(withBearer(p.Token(map[string]any{"exp": time.Now().Add(-30 * time.Second).Unix()})))
	require.NoError(t, err, "clocks differ")
}

func TestKeysRotate(t *testing.T) {
	t.Parallel() // it waits
	p := authtest.Start(t, person)
	service := withProvider(t, oidcOptions(p))
	before := p.Token(nil)
	_, err := service.Authenticate(withBearer(before))
	require.NoError(t, err)
	p.Rotate()
	after := p.Token(nil)
	require.Eventually(t, func() bool {
		_, err := service.Authenticate(withBearer(after))
		return err == nil
	}, time.Minute, 50*time.Millisecond)
	_, err = service.Authenticate(withBearer(before))
	require.ErrorIs(t, err, auth.ErrUnauthenticated, "its key was withdrawn")
}

func TestInvalidTokensDoNotFloodTheProvider(t *testing.T) {
	p := authtest.Start(t, person)
	service := withProvider(t, oidcOptions(p))
	key, _ := p.Key()
	bogus := oidctest.SignIDToken(key, "unknown", "RS256", p.Claims(nil))
	began := time.Now()
	for range 200 {
		_, err := service.Authenticate(withBearer(bogus))
		require.ErrorIs(t, err, auth.ErrUnauthenticated)
	}
	require.LessOrEqual(t, p.KeyRequests.Load(), 1+int64(time.Since(began).Seconds()))
}

func TestAProviderThatIsDown(t *testing.T) {
	t.Parallel() // it waits
	p := authtest.Start(t, person)
	service := withProvider(t, oidcOptions(p))
	token := p.Token(nil)

	p.Down.Store(true)
	_, err := service.Authenticate(withBearer(token))
	require.Error(t, err)
	require.NotErrorIs(t, err, auth.ErrUnauthenticated, "nobody knows whether the token is valid")
	p.Down.Store(false)
	require.Eventually(t, func() bool {
		_, err := service.Authenticate(withBearer(token))
		return err == nil
	}, time.Minute, 50*time.Millisecond, "it was down at the start")

	p.Down.Store(true)
	_, err = service.Authenticate(withBearer(token))
	require.NoError(t, err, "known keys remain valid")
	p.Rotate()
	rotated := p.Token(nil)
	require.Eventually(t, func() bool {
		_, err := service.Authenticate(withBearer(rotated))
		return err != nil && !strings.Contains(err.Error(), auth.ErrUnauthenticated.Error())
	}, time.Minute, 50*time.Millisecond, "a new key is unknown")
	p.Down.Store(false)
	require.Eventually(t, func() bool {
		_, err := service.Authenticate(withBearer(rotated))
		return err == nil
	}, time.Minute, 50*time.Millisecond)
}

func TestAProviderThatIsNotAtItsAddress(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	issuer := "http://" + closed.Addr().String()
	provider := auth.NewOIDC(auth.OIDCOptions{Issuer: issuer, ClientID: "c", Mapping: auth.OIDCMapping})
	require.ErrorContains(t, provider.Connect(t.Context()), "read the configuration of OpenID provider "+issuer)
}
