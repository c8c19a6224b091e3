// Package auth tells who sends a request to the gateway and what they may do.
package auth

import (
	"errors"
	"net/http"
	"slices"
)

// Identity is who sends a request.
type Identity struct {
	Subject string // as the audit log and the approvals of a log name it
	Token   string // the id of a static token that identifies it; "": another credential
	// Tenant owns the contexts that the identity reaches; "": those without a tenant.
	Tenant string
	Roles  []Role // none: the identity may do nothing
	// Shared is all that the identity reaches, by a share link; nil: all contexts of the tenant.
	Shared *Shared
}

// Role is what an identity may do. Each includes reading, RoleAdmin includes all.
type Role string

// Roles of an [Identity].
const (
	RoleRead    Role = "read"    // reads contexts
	RoleWrite   Role = "write"   // sends events, interrupts and closes
	RoleApprove Role = "approve" // decides on tool calls
	RoleAdmin   Role = "admin"
)

// Values returns all roles.
func (Role) Values() []Role { return []Role{RoleRead, RoleWrite, RoleApprove, RoleAdmin} }

// IsKnown reports whether the role is one of Values.
func (r Role) IsKnown() bool { return slices.Contains(r.Values(), r) }

// Has reports whether the roles include a role.
func (i Identity) Has(role Role) bool {
	return slices.ContainsFunc(i.Roles, func(has Role) bool {
		switch has {
		case role, RoleAdmin:
			return true
		case RoleWrite, RoleApprove:
			return role == RoleRead
		}
		return false
	})
}

// Authenticator identifies the sender of a request.
type Authenticator interface {
	// Authenticate returns an error that wraps [ErrUnauthenticated] for a request without a valid credential; its text
	// names the reason and contains no credential. Other errors mean that the credential could not be checked.
	Authenticate(r *http.Request) (Identity, error)
}

// ErrUnauthenticated means that a request has no credential or an invalid one.
var ErrUnauthenticated = errors.New("unauthenticated")
