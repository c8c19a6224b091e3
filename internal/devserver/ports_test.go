package devserver_test

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/internal/devserver"
)

func TestFreePorts(t *testing.T) {
	t.Parallel()
	t.Run("each zero gets a different port", func(t *testing.T) {
		t.Parallel()
		ports, err := devserver.FreePorts(0, 0, 0)
		require.NoError(t, err)
		require.Len(t, ports, 3)
		require.NotContains(t, ports, 0)
		require.NotEqual(t, ports[0], ports[1])
		require.NotEqual(t, ports[1], ports[2])
		require.NotEqual(t, ports[0], ports[2])
	})
	t.Run("a port in use is a PortError", func(t *testing.T) {
		t.Parallel()
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer listener.Close()
		port := listener.Addr().(*net.TCPAddr).Port
		_, err = devserver.FreePorts(0, port)
		require.EqualError(t, err, listener.Addr().String()+" is already in use")
	})
	t.Run("a duplicate port is an error", func(t *testing.T) {
		t.Parallel()
		ports, err := devserver.FreePorts(0)
		require.NoError(t, err)
		_, err = devserver.FreePorts(ports[0], ports[0])
		require.ErrorContains(t, err, "is already in use")
	})
}
