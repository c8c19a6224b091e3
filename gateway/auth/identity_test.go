package auth_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/gateway/auth"
)

func TestRolesIncludeReading(t *testing.T) {
	for _, c := range []struct {
		roles []auth.Role
		has   []auth.Role
	}{
		{nil, nil},
		{[]auth.Role{"unknown"}, []auth.Role{}},
		{[]auth.Role{auth.RoleRead}, []auth.Role{auth.RoleRead}},
		{[]auth.Role{auth.RoleWrite}, []auth.Role{auth.RoleRead, auth.RoleWrite}},
		{[]auth.Role{auth.RoleApprove}, []auth.Role{auth.RoleRead, auth.RoleApprove}},
		{[]auth.Role{auth.RoleWrite, auth.RoleApprove}, []auth.Role{auth.RoleRead, auth.RoleWrite, auth.RoleApprove}},
		{[]auth.Role{auth.RoleAdmin}, []auth.Role{auth.RoleRead, auth.RoleWrite, auth.RoleApprove, auth.RoleAdmin}},
	} {
		for _, role := range []auth.Role{auth.RoleRead, auth.RoleWrite, auth.RoleApprove, auth.RoleAdmin} {
			want := false
			for _, has := range c.has {
				want = want || has == role
			}
			require.Equal(t, want, auth.Identity{Roles: c.roles}.Has(role), "%v %s", c.roles, role)
		}
	}
}
