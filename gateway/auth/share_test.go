package auth_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway/auth"
)

func TestAShareLinkIsACredentialUntilItExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := tokenFile(t)
		_, record := create(t, file, ann, 3*24*time.Hour)
		by := ann
		by.Token = record.ID
		key := bytes.Repeat([]byte("k"), 32)
		service, err := auth.New(auth.Options{Tokens: auth.OpenTokens(file, slog.Default()), SessionKey: key, PublicURL: "https://example.com/chat/"})
		require.NoError(t, err)
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		what := auth.Shared{Context: "demo", Created: time.Now().UTC().Round(0)}
		link, err := service.Share(r, by, what, time.Hour)
		require.NoError(t, err)
		credential, ok := strings.CutPrefix(link.URL, "https://example.com/chat/#share=")
		require.True(t, ok, link.URL)
		require.Equal(t, time.Now().Add(time.Hour).UTC(), link.ExpiresAt)
		require.NotContains(t, event.Redact("see "+link.URL, 0), credential)

		r.Header.Set("Authorization", "Bearer "+credential)
		identity, err := service.Authenticate(r)
		require.NoError(t, err)
		require.Equal(t, auth.Identity{Subject: "share link of ann", Token: record.ID, Tenant: "acme", Roles: []auth.Role{auth.RoleRead}, Shared: &what}, identity)
		withoutTokens, err := auth.New(auth.Options{Proxy: &auth.Proxy{Secret: strings.Repeat("s", 16)}, SessionKey: key})
		require.NoError(t, err)
		_, err = withoutTokens.Authenticate(r)
		require.EqualError(t, err, "unauthenticated: the share link was made with a token, which is not accepted")

		long, err := service.Share(r, by, what, 7*24*time.Hour)
		require.NoError(t, err)
		require.Equal(t, *record.Expires, long.ExpiresAt, "with its token")

		time.Sleep(time.Hour) // bubble time: the link expires
		_, err = service.Authenticate(r)
		require.EqualError(t, err, "unauthenticated: expired share link")
		r.Header.Set("Authorization", "Bearer "+credential+"A")
		_, err = service.Authenticate(r)
		require.EqualError(t, err, "unauthenticated: unknown or revoked share link")
		r.Header.Set("Authorization", "Bearer "+auth.SharePrefix)
		_, err = new(auth.Service).Authenticate(r)
		require.ErrorIs(t, err, auth.ErrUnauthenticated)
	})
}
