package gateway_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/auth"
)

func TestAPurgeDeletesTheContext(t *testing.T) {
	l := newLog()
	w := serve(t, fakeClient{log: l}, gateway.Options{})
	for query, want := range map[string]string{"purge": "delete ", "purge=true": "delete ", "purge=true&forks=keep": "delete keep", "purge=true&forks=delete": "delete delete"} {
		l.calls = nil
		got := w.do(http.MethodDelete, "/contexts/demo?"+query, "")
		require.Equal(t, http.StatusAccepted, got.status, got.body)
		require.Equal(t, "/contexts/demo/deletion", got.header.Get("Location"))
		require.Equal(t, []string{want}, l.calls)
	}
	receipt := w.do(http.MethodGet, "/contexts/demo/deletion", "")
	require.Equal(t, http.StatusOK, receipt.status, receipt.body)
	require.Contains(t, receipt.body, `"removed":[{"place":"runs","count":2,"at":"2026-01-02T15:04:05Z"}]`)
}

func TestAnUnclearPurgeDeletesNothing(t *testing.T) {
	l := newLog()
	w := serve(t, fakeClient{log: l}, gateway.Options{})
	for _, query := range []string{"purge=1", "purge=false", "purge=true&forks=all", "forks=delete"} {
		got := w.do(http.MethodDelete, "/contexts/demo?"+query, "")
		require.Equal(t, http.StatusBadRequest, got.status, got.body)
		require.Empty(t, got.header.Get("Location"))
	}
	require.Empty(t, l.calls)
	l.Fail(client.ErrNoContext)
	got := w.do(http.MethodDelete, "/contexts/demo?purge=true", "")
	require.Equal(t, http.StatusNotFound, got.status, got.body)
	require.Empty(t, got.header.Get("Location"))
	require.Equal(t, http.StatusNotFound, w.do(http.MethodGet, "/contexts/demo/deletion", "").status)
}

func TestASecondPurgeWithOtherOptionsIsAConflict(t *testing.T) {
	l := newLog()
	w := serve(t, fakeClient{log: l}, gateway.Options{})
	l.Fail(fmt.Errorf("delete context demo: %w: its choice for forks is delete (repeat with this choice)", client.ErrDeleting))
	got := w.do(http.MethodDelete, "/contexts/demo?purge=true&forks=keep", "")
	require.Equal(t, http.StatusConflict, got.status, got.body)
	require.Contains(t, got.body, "urn:chronicle:problem:deleting")
	require.Contains(t, got.body, "its choice for forks is delete (repeat with this choice)")
	require.Empty(t, got.header.Get("Location"))
}

func TestAPurgeRequiresTheRoleAdmin(t *testing.T) {
	l := newLog()
	w := serve(t, eachTenant{"acme": {log: l}}, gateway.Options{Auth: claims{}})
	for _, role := range []auth.Role{auth.RoleRead, auth.RoleWrite} {
		got := w.do(http.MethodDelete, "/contexts/demo?purge=true", "", by("acme", role)...)
		require.Equal(t, http.StatusForbidden, got.status, got.body)
		require.Contains(t, got.body, "lacks the role admin")
		require.Empty(t, l.calls)
	}
	got := w.do(http.MethodDelete, "/contexts/demo?purge=true", "", by("acme", auth.RoleAdmin)...)
	require.Equal(t, http.StatusAccepted, got.status, got.body)
	require.Equal(t, []string{"delete "}, l.calls)
}

func TestTheAuditLogTellsAPurgeFromTheEndOfASession(t *testing.T) {
	var written bytes.Buffer
	w := serve(t, eachTenant{"acme": {log: newLog()}}, gateway.Options{Auth: claims{}, Audit: slog.New(slog.NewJSONHandler(&written, nil))})
	for _, role := range []auth.Role{auth.RoleWrite, auth.RoleAdmin} {
		w.do(http.MethodDelete, "/contexts/demo?purge", "", by("acme", role)...)
	}
	w.do(http.MethodDelete, "/contexts/demo", "", by("acme", auth.RoleAdmin)...)
	w.gateway.Close()
	for _, entry := range []string{`"purge","context":"demo","status":403`, `"purge","context":"demo","status":202`, `"closeContext","context":"demo","status":202`} {
		require.Equal(t, 1, strings.Count(written.String(), `"operation":`+entry), written.String())
	}
	require.Equal(t, 3, strings.Count(written.String(), "\n"))
}
