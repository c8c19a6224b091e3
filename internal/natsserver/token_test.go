package natsserver_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/internal/natsserver"
	"github.com/seed-9ed7edd4/chronicle/internal/stream"
)

func requirePrivate(t *testing.T, file string) {
	t.Helper()
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
}

func TestATokenIsMadeOnceAndKept(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "token")
	token, err := natsserver.Token(file)
	require.NoError(t, err)
	require.Regexp(t, `^[0-9a-f]{64}$`, token)
	requirePrivate(t, file)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)

	again, err := natsserver.Token(file)
	require.NoError(t, err)
	require.Equal(t, token, again)
	other, err := natsserver.Token(filepath.Join(t.TempDir(), "token"))
	require.NoError(t, err)
	require.NotEqual(t, token, other)
}

func TestATokenIsProtectedAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("copied\n"), 0o644))
	token, err := natsserver.Token(file)
	require.NoError(t, err)
	require.Equal(t, "copied", token)
	requirePrivate(t, file)
}

func TestAnInvalidTokenIsNotShown(t *testing.T) {
	for name, content := range map[string]string{"empty": "\n", "two lines": "s3cr3t\ns3cr3t\n"} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "token")
			require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
			_, err := natsserver.Token(file)
			require.ErrorContains(t, err, file+" is not one line (delete the file")
			require.NotContains(t, err.Error(), "s3cr3t")
		})
	}
	_, err := natsserver.Token(t.TempDir())
	require.ErrorContains(t, err, "read NATS token: ")
	_, err = natsserver.Token(filepath.Join(t.TempDir(), "missing", "token"))
	require.ErrorContains(t, err, "write NATS token: ")
}

func TestClientsNeedTheToken(t *testing.T) {
	const token = "s3cr3t-0123456789"
	server, err := natsserver.Start(natsserver.Options{Token: token})
	require.NoError(t, err)
	t.Cleanup(server.Shutdown)
	require.NotContains(t, server.URL(), token)
	for given, want := range map[string]bool{"": false, strings.ToUpper(token): false, token: true} {
		conn, err := stream.Connect(server.URL(), stream.Options{Auth: stream.Auth{Token: given}})
		require.NoError(t, err)
		defer conn.Close()
		require.Equal(t, want, conn.Connected())
	}
}
