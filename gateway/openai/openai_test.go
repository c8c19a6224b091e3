package openai_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/auth"
	"github.com/seed-9ed7edd4/chronicle/gateway/openai"
)

// claims are credentials that name a role: "Bearer ROLE".
type claims struct{}

func (claims) Authenticate(r *http.Request) (auth.Identity, error) {
	role, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return auth.Identity{}, auth.ErrUnauthenticated
	}
	return auth.Identity{Subject: "ann", Roles: []auth.Role{auth.Role(role)}}, nil
}

// noTenants is a client without tenants, which forbids every admitted request.
type noTenants struct{}

func (noTenants) Tenant(string) (*client.Client, error) { return nil, errors.New("no tenant") }
func (noTenants) Live() bool                            { return false }
func (noTenants) Ping(context.Context) error            { return nil }
func (noTenants) Limits() (limits client.Limits)        { return limits }

func TestErrorsOfAdmissionHaveTheShapeOfTheAPI(t *testing.T) {
	protocol := openai.Protocol()
	g := gateway.New(noTenants{}, gateway.Options{Rate: -1, Auth: claims{}, Protocols: []gateway.Protocol{protocol}})
	t.Cleanup(g.Close)
	ask := func(method, path, credential string) (status int, kind, code, message string) {
		t.Helper()
		r := httptest.NewRequest(method, path, nil)
		r.Host = "localhost"
		if credential != "" {
			r.Header.Set("Authorization", "Bearer "+credential)
		}
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		var body struct {
			Error struct{ Message, Type, Code string }
		}
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &body), "%s", w.Body)
		require.NotEmpty(t, body.Error.Message)
		return w.Code, body.Error.Type, body.Error.Code, body.Error.Message
	}
	admitted := map[string][]auth.Role{
		"GET": {auth.RoleRead, auth.RoleWrite, auth.RoleApprove, auth.RoleAdmin}, "POST": {auth.RoleWrite, auth.RoleAdmin}, "DELETE": {auth.RoleAdmin},
		"POST /v1/responses": {auth.RoleWrite, auth.RoleApprove, auth.RoleAdmin},
	}
	for _, route := range protocol.Routes {
		method, path, _ := strings.Cut(route.Pattern, " ")
		path = strings.NewReplacer("{id}", "resp_demo_0001", "{id...}", "openai/gpt", "{name}", "demo").Replace(path)
		roles, ok := admitted[route.Pattern]
		if !ok {
			roles = admitted[method]
		}
		status, kind, code, _ := ask(method, path, "")
		require.Equal(t, []any{401, "authentication_error", "unauthenticated"}, []any{status, kind, code}, route.Pattern)
		for _, role := range []auth.Role{auth.RoleRead, auth.RoleWrite, auth.RoleApprove, auth.RoleAdmin, "none"} {
			status, kind, code, message := ask(method, path, string(role))
			require.Equal(t, []any{403, "permission_error", "forbidden"}, []any{status, kind, code})
			require.Equal(t, !slices.Contains(roles, role), strings.Contains(message, "lacks the role"), "%s %s: %s", role, route.Pattern, message)
		}
	}
	status, kind, code, _ := ask("GET", "/v1/nothing", "")
	require.Equal(t, []any{404, "invalid_request_error", "not_found"}, []any{status, kind, code})
	status, _, code, _ = ask("PATCH", "/v1/responses", "")
	require.Equal(t, []any{405, "method"}, []any{status, code})
}
