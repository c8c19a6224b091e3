package connect_test

import (
	"context"
	"log/slog"
	"net/url"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/internal/connect"
	"github.com/seed-9ed7edd4/chronicle/internal/natsserver"
	"github.com/seed-9ed7edd4/chronicle/internal/stream"
)

// records passes each message on.
type records chan string

func (r records) Enabled(context.Context, slog.Level) bool { return true }
func (r records) WithAttrs([]slog.Attr) slog.Handler       { return r }
func (r records) WithGroup(string) slog.Handler            { return r }

func (r records) Handle(_ context.Context, record slog.Record) error {
	r <- record.Message
	return nil
}

func TestTheConnectionToNATSReportsChanges(t *testing.T) {
	server, err := natsserver.Start(natsserver.Options{})
	require.NoError(t, err)
	at, err := url.Parse(server.URL())
	require.NoError(t, err)
	port, err := strconv.Atoi(at.Port())
	require.NoError(t, err)
	logged := make(records, 1)
	conn, err := connect.NATS(server.URL(), stream.Options{Namespace: "default"}, slog.New(logged))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	server.Shutdown()
	require.Equal(t, "lost the connection to NATS: answers are not streamed until it is restored", <-logged)
	server, err = natsserver.Start(natsserver.Options{Port: port})
	require.NoError(t, err)
	t.Cleanup(server.Shutdown)
	require.Equal(t, "connected to NATS: answers are streamed", <-logged)
}
