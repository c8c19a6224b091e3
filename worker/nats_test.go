package main_test

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/internal/stream"
)

func TestWorkerAuthenticatesAtNATSWithoutLoggingSecrets(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t-0123456789"
	nats, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, Username: "chronicle", Password: secret, NoLog: true, NoSigs: true,
	})
	require.NoError(t, err)
	nats.Start()
	t.Cleanup(nats.Shutdown)
	require.True(t, nats.ReadyForConnections(time.Minute))
	host := nats.Addr().String()
	backend := dev(t, t.TempDir())
	facts := backend.ready()
	temporal := facts["temporal"]

	for name, tt := range map[string]struct {
		url, password string
		connected     bool
	}{
		"in the URL":       {url: "nats://chronicle:" + secret + "@" + host, connected: true},
		"by environment":   {url: "nats://" + host, password: secret, connected: true},
		"another password": {url: "nats://chronicle:" + secret + "x@" + host},
		"none":             {url: "nats://" + host},
	} {
		t.Run(name, func(t *testing.T) {
			worker := prepare(t, "--address", temporal, "--blob-url", facts["blobs"], "--json")
			worker.cmd.Env = append(worker.cmd.Env, "NATS_URL="+tt.url)
			config := client.Config{Address: temporal, NATSURL: tt.url}
			if tt.password != "" {
				worker.cmd.Env = append(worker.cmd.Env, "NATS_USER=chronicle", "NATS_PASSWORD="+tt.password)
				config.NATSAuth.User, config.NATSAuth.Password = "chronicle", tt.password
			}
			worker.start()
			require.NotContains(t, worker.ready()["nats"], secret)
			c, err := client.Dial(t.Context(), config)
			require.NoError(t, err)
			defer c.Shutdown()
			require.Equal(t, tt.connected, c.Live())
			worker.signal(syscall.SIGTERM)
			require.Zero(t, worker.exit(), worker.stderr.String())
			require.NotContains(t, worker.stderr.String(), secret)
			require.Equal(t, !tt.connected, strings.Contains(worker.stderr.String(), `"error":"nats: Authorization Violation: the server re`), worker.stderr.String())
		})
	}
	backend.signal(syscall.SIGTERM)
	require.Zero(t, backend.exit(), backend.stderr.String())
}

func TestClientsOfADevWorkerNeedItsToken(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	var token string
	for _, start := range []string{"first", "second"} {
		worker := dev(t, data)
		facts := worker.ready()
		content, err := os.ReadFile(natsAuth(facts).TokenFile)
		require.NoError(t, err)
		if start == "second" {
			require.Equal(t, token, string(content), "the token is kept")
		}
		token = string(content)
		require.True(t, dial(t, facts).Live())

		for name, auth := range map[string]stream.Auth{"the server requires authentication": {}, "the server refuses the credentials": {Token: "another"}} {
			c, err := client.Dial(t.Context(), client.Config{Address: facts["temporal"], NATSURL: facts["nats"], NATSAuth: auth})
			require.NoError(t, err)
			defer c.Shutdown()
			require.False(t, c.Live())
			require.ErrorContains(t, c.LiveError(), name+" (for worker --dev, set NATS_TOKEN_FILE or --nats-token-file to nats.token in its data directory;")
		}
		worker.signal(syscall.SIGTERM)
		require.Zero(t, worker.exit(), worker.stderr.String())
		require.NotContains(t, worker.stderr.String(), strings.TrimSpace(token))
	}
}
