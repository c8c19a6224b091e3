package auth

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Mapping names the claims of a token, or the headers of a proxy, that tell an identity.
type Mapping struct {
	Subject string
	Tenant  string // "": identities have no tenant
	Roles   string // has the groups of a person
	// Groups are those that mean a role; others are ignored. Nil: [DefaultGroups].
	Groups       map[string]Role
	DefaultRoles []Role // of identities without a role
}

// ParseMapping changes a mapping by settings of the form subject=NAME, tenant=NAME or roles=NAME.
func ParseMapping(base Mapping, settings []string) (Mapping, error) {
	for _, setting := range settings {
		field, name, _ := strings.Cut(setting, "=")
		to := map[string]*string{"subject": &base.Subject, "tenant": &base.Tenant, "roles": &base.Roles}[field]
		if to == nil || name == "" {
			return base, fmt.Errorf("%q: want subject=NAME, tenant=NAME or roles=NAME", setting)
		}
		*to = name
	}
	return base, nil
}

// DefaultGroups are unlikely to exist for another purpose.
var DefaultGroups = map[string]Role{
	"chronicle-read": RoleRead, "chronicle-write": RoleWrite, "chronicle-approve": RoleApprove, "chronicle-admin": RoleAdmin,
}

// ParseGroups returns the roles in settings of the form GROUP=ROLE; nil without any.
func ParseGroups(settings []string) (groups map[string]Role, err error) {
	for _, setting := range settings {
		at := strings.LastIndexByte(setting, '=') // the name of a group may contain others
		if at < 1 || !Role(setting[at+1:]).IsKnown() {
			return nil, fmt.Errorf("%q: want GROUP=ROLE with read, write, approve or admin as the role", setting)
		}
		if groups == nil {
			groups = map[string]Role{}
		}
		groups[setting[:at]] = Role(setting[at+1:])
	}
	return groups, nil
}

// ParseRoles returns roles by name.
func ParseRoles(names []string) ([]Role, error) {
	var roles []Role
	for _, name := range names {
		role := Role(name)
		if !role.IsKnown() {
			return nil, fmt.Errorf("%q: want read, write, approve or admin", name)
		}
		roles = append(roles, role)
	}
	return roles, nil
}

// identity returns the identity told by values, which get returns by the names in the mapping.
func (m Mapping) identity(get func(name string) []string) (Identity, error) {
	var found Identity
	var err error
	if found.Subject, err = single(m.Subject, get); err != nil {
		return Identity{}, err
	}
	if err := checkSubject(found.Subject); err != nil {
		return Identity{}, fmt.Errorf("%s: %w", m.Subject, err)
	}
	if m.Tenant != "" {
		if found.Tenant, err = single(m.Tenant, get); err != nil {
			return Identity{}, err
		}
		if err := event.ValidateTenant(found.Tenant); err != nil {
			return Identity{}, fmt.Errorf("%s: %w", m.Tenant, err)
		}
	}
	groups := m.Groups
	if groups == nil {
		groups = DefaultGroups
	}
	for _, group := range get(m.Roles) {
		if role, ok := groups[group]; ok && !slices.Contains(found.Roles, role) {
			found.Roles = append(found.Roles, role)
		}
	}
	if len(found.Roles) == 0 {
		found.Roles = m.DefaultRoles
	}
	return found, nil
}

// single returns the only value of a name. Of several, the sender may have added one.
func single(name string, get func(string) []string) (string, error) {
	values := get(name)
	if len(values) != 1 {
		return "", fmt.Errorf("%s: %d values (want one)", name, len(values))
	}
	return values[0], nil
}

// Validate returns an error for an invalid subject, tenant or role, and for an identity without roles.
func (i Identity) Validate() error {
	if err := checkSubject(i.Subject); err != nil {
		return err
	}
	if i.Tenant != "" {
		if err := event.ValidateTenant(i.Tenant); err != nil {
			return err
		}
	}
	if len(i.Roles) == 0 {
		return errors.New("role: missing (want read, write, approve or admin)")
	}
	for _, role := range i.Roles {
		if !role.IsKnown() {
			return fmt.Errorf("role %q: want read, write, approve or admin", role)
		}
	}
	return nil
}

const maxSubject = 256 // bytes

func checkSubject(subject string) error {
	if subject == "" || len(subject) > maxSubject || !utf8.ValidString(subject) ||
		strings.ContainsFunc(subject, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return fmt.Errorf("a subject has 1-%d bytes of printable text", maxSubject)
	}
	return nil
}
