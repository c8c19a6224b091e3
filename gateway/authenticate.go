package gateway

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway/auth"
)

type identityKey struct{}

// identityOf returns who sends a request; the zero identity without authentication.
func identityOf(r *http.Request) auth.Identity {
	identity, _ := r.Context().Value(identityKey{}).(auth.Identity)
	return identity
}

// admitted lets those requests reach next that may, with their tenant. There is no other check of access, but for that
// of the events in [Gateway.sendEvents].
func (g *Gateway) admitted(route route, next http.HandlerFunc) http.HandlerFunc {
	switch {
	case route.roles == nil:
		panic(route.pattern + " states no roles")
	case len(route.roles) == 0:
		return next
	}
	return func(w http.ResponseWriter, r *http.Request) {
		identity, err := g.identify(w, r, route)
		if err == nil {
			r = r.WithContext(context.WithValue(r.Context(), identityKey{}, identity))
			err = g.enter(w, r, identity, next)
		}
		if err != nil {
			g.fail(w, r, err)
		}
	}
}

func (g *Gateway) identify(w http.ResponseWriter, r *http.Request, route route) (identity auth.Identity, err error) {
	if g.options.Auth != nil {
		identity, err = g.options.Auth.Authenticate(r)
	}
	operation, roles := route.operation(), route.roles
	if operation == "closeContext" && isPurge(r) {
		operation, roles = "purge", []auth.Role{auth.RoleAdmin}
	}
	g.audit(w, r, operation, identity)
	switch {
	case g.options.Auth == nil:
		return identity, nil
	case err != nil:
		return identity, g.credentialProblem(w, r, err)
	case !slices.ContainsFunc(roles, identity.Has):
		return identity, missingRole(roles...)
	case identity.Shared != nil && !(route.isShared && r.PathValue("name") == identity.Shared.Context):
		return identity, forbidden("a share link reads only the events, the transcript, the state and the attachments of its context")
	}
	return identity, nil
}

func missingRole(roles ...auth.Role) error {
	names := make([]string, len(roles))
	for i, role := range roles {
		names[i] = string(role)
	}
	return forbidden("the credential lacks the role %s", strings.Join(names, " or "))
}

func forbidden(format string, args ...any) error {
	return problem(problemForbidden, http.StatusForbidden, "Forbidden", format, args...)
}

func (g *Gateway) credentialProblem(w http.ResponseWriter, r *http.Request, err error) error {
	if errors.Is(err, auth.ErrUnauthenticated) {
		w.Header().Set("WWW-Authenticate", "Bearer")
		reason := strings.TrimPrefix(err.Error(), auth.ErrUnauthenticated.Error()+": ")
		return problem(problemUnauthenticated, http.StatusUnauthorized, "Authentication required", "%s", event.Redact(reason, 0))
	}
	g.options.Log.Error("a credential was not checked", "request_id", requestID(r), "error", event.Redact(err.Error(), 0))
	return problem(problemUnchecked, http.StatusServiceUnavailable, "The credential could not be checked", "see the log of the gateway")
}

// recheck returns an error if the credential of a stream is no longer valid, or means another identity.
func (g *Gateway) recheck(w http.ResponseWriter, r *http.Request) error {
	if g.options.Auth == nil {
		return nil
	}
	identity, err := g.options.Auth.Authenticate(r)
	switch {
	case errors.Is(err, auth.ErrUnauthenticated):
		return g.credentialProblem(w, r, err)
	case err == nil && !reflect.DeepEqual(identity, identityOf(r)):
		return problem(problemUnauthenticated, http.StatusUnauthorized, "Authentication required", "the roles or the tenant changed")
	}
	return nil // also if the credential cannot be checked now
}
