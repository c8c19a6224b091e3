package auth_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/gateway/auth"
)

const secret = "s3cr3t of the proxy"

func TestATrustedProxyTellsIdentities(t *testing.T) {
	mapping := auth.ProxyMapping
	service := newService(t, auth.Options{Proxy: &auth.Proxy{Secret: secret, Mapping: mapping}})
	got, err := service.Authenticate(request(auth.SecretHeader, secret, "X-Forwarded-User", "ann", "X-Forwarded-Groups", "staff, chronicle-write,chronicle-approve,admin",
		"X-Forwarded-Tenant", "forged", "Authorization", "Basic of-the-proxy"))
	require.NoError(t, err)
	require.Equal(t, auth.Identity{Subject: "ann", Roles: []auth.Role{auth.RoleWrite, auth.RoleApprove}}, got, "a tenant header is not read unless it is configured")

	mapping.Tenant = "X-Forwarded-Tenant"
	service = newService(t, auth.Options{Proxy: &auth.Proxy{Secret: secret, Mapping: mapping}})
	for _, header := range [][]string{
		{"X-Forwarded-User", "ann", "X-Forwarded-Tenant", "acme"},
		{auth.SecretHeader, "", "X-Forwarded-User", "ann", "X-Forwarded-Tenant", "acme"},
		{auth.SecretHeader, "other", "X-Forwarded-User", "ann", "X-Forwarded-Tenant", "acme"},
		{auth.SecretHeader, secret, auth.SecretHeader, secret, "X-Forwarded-User", "ann", "X-Forwarded-Tenant", "acme"},
		{auth.SecretHeader, secret},
		{auth.SecretHeader, secret, "X-Forwarded-User", "ann"},
		{auth.SecretHeader, secret, "X-Forwarded-User", "ann", "X-Forwarded-Tenant", ""},
		{auth.SecretHeader, secret, "X-Forwarded-User", "", "X-Forwarded-Tenant", "acme"},
		{auth.SecretHeader, secret, "X-Forwarded-User", "ann", "X-Forwarded-User", "bob", "X-Forwarded-Tenant", "acme"},
		{auth.SecretHeader, secret, "X-Forwarded-User", "ann", "X-Forwarded-Tenant", "acme", "X-Forwarded-Tenant", "other"},
	} {
		_, err := service.Authenticate(request(header...))
		require.ErrorIs(t, err, auth.ErrUnauthenticated, header)
		require.NotContains(t, err.Error(), secret)
	}
	got, err = service.Authenticate(request(auth.SecretHeader, secret, "X-Forwarded-User", "ann", "X-Forwarded-Tenant", "acme"))
	require.NoError(t, err)
	require.Equal(t, auth.Identity{Subject: "ann", Tenant: "acme"}, got)
}

func TestAProxyHasASecret(t *testing.T) {
	for _, secret := range []string{"", "s3cr3t"} {
		_, err := auth.New(auth.Options{Proxy: &auth.Proxy{Secret: secret, Mapping: auth.ProxyMapping}})
		require.ErrorContains(t, err, "at least 16", secret)
	}
}
