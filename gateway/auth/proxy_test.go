package auth_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/gateway/auth"
)

func TestATrustedProxyTellsIdentities(t *testing.T) {
	mapping := auth.ProxyMapping
	service := newService(t, auth.Options{Proxy: &auth.Proxy{Secret: "s3cr3t", Mapping: mapping}})
	got, err := service.Authenticate(request(auth.SecretHeader, "s3cr3t", "X-Forwarded-User", "ann", "X-Forwarded-Groups", "staff, chronicle-write,approve",
		"X-Forwarded-Tenant", "forged", "Authorization", "Basic of-the-proxy"))
	require.NoError(t, err)
	require.Equal(t, auth.Identity{Subject: "ann", Roles: []auth.Role{auth.RoleWrite, auth.RoleApprove}}, got, "a tenant header is not read unless it is configured")

	mapping.Tenant = "X-Forwarded-Tenant"
	service = newService(t, auth.Options{Proxy: &auth.Proxy{Secret: "s3cr3t", Mapping: mapping}})
	for _, header := range [][]string{
		{"X-Forwarded-User", "ann", "X-Forwarded-Tenant", "acme"},
		{auth.SecretHeader, "", "X-Forwarded-User", "ann", "X-Forwarded-Tenant", "acme"},
		{auth.SecretHeader, "other", "X-Forwarded-User", "ann", "X-Forwarded-Tenant", "acme"},
		{auth.SecretHeader, "s3cr3t", auth.SecretHeader, "s3cr3t", "X-Forwarded-User", "ann", "X-Forwarded-Tenant", "acme"},
		{auth.SecretHeader, "s3cr3t"},
		{auth.SecretHeader, "s3cr3t", "X-Forwarded-User", "ann"},
		{auth.SecretHeader, "s3cr3t", "X-Forwarded-User", "ann", "X-Forwarded-Tenant", ""},
		{auth.SecretHeader, "s3cr3t", "X-Forwarded-User", "", "X-Forwarded-Tenant", "acme"},
		{auth.SecretHeader, "s3cr3t", "X-Forwarded-User", "ann", "X-Forwarded-User", "bob", "X-Forwarded-Tenant", "acme"},
		{auth.SecretHeader, "s3cr3t", "X-Forwarded-User", "ann", "X-Forwarded-Tenant", "acme", "X-Forwarded-Tenant", "other"},
	} {
		_, err := service.Authenticate(request(header...))
		require.ErrorIs(t, err, auth.ErrUnauthenticated, header)
		require.NotContains(t, err.Error(), "s3cr3t")
	}
	got, err = service.Authenticate(request(auth.SecretHeader, "s3cr3t", "X-Forwarded-User", "ann", "X-Forwarded-Tenant", "acme"))
	require.NoError(t, err)
	require.Equal(t, auth.Identity{Subject: "ann", Tenant: "acme"}, got)
}
