package client_test

import (
	"net/url"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/internal/natsserver"
)

func TestTheConnectionToNATSReportsChanges(t *testing.T) {
	server, err := natsserver.Start(natsserver.Options{})
	require.NoError(t, err)
	at, err := url.Parse(server.URL())
	require.NoError(t, err)
	port, err := strconv.Atoi(at.Port())
	require.NoError(t, err)
	lost, found := make(chan error, 2), make(chan struct{}, 1)
	conn, err := client.DialStream(server.URL(), client.Config{
		OnDisconnect: func(err error) { lost <- err }, OnConnect: func() { found <- struct{}{} },
	}, "default")
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	server.Shutdown()
	require.Error(t, <-lost)
	server, err = natsserver.Start(natsserver.Options{Port: port})
	require.NoError(t, err)
	t.Cleanup(server.Shutdown)
	<-found
}
