package stream_test

import (
	"io"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/stream"
)

// tunnel leads to a server until it falls silent: then it reads no more, takes
// no connection and closes none, like a host that has lost its network.
type tunnel struct {
	listener net.Listener
	silent   atomic.Bool
}

func startTunnel(t *testing.T, to string) *tunnel {
	t.Helper()
	u, err := url.Parse(to)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	tun := &tunnel{listener: listener}
	done := make(chan struct{})
	t.Cleanup(func() {
		close(done)
		_ = listener.Close()
	})
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer in.Close()
				if !tun.silent.Load() {
					tun.carry(in, u.Host)
				}
				<-done
			}()
		}
	}()
	return tun
}

func (tun *tunnel) url() string { return "nats://" + tun.listener.Addr().String() }

// carry carries bytes both ways until the tunnel is silent or one end is gone.
func (tun *tunnel) carry(in net.Conn, host string) {
	out, err := net.Dial("tcp", host)
	if err != nil {
		return
	}
	go func() {
		defer in.Close()
		_, _ = io.Copy(in, out)
	}()
	buffer := make([]byte, 4096)
	for !tun.silent.Load() {
		n, err := in.Read(buffer)
		if err != nil {
			_ = out.Close()
			return
		}
		if _, err := out.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func TestAServerThatFallsSilentDoesNotHoldAnAnswerUp(t *testing.T) {
	tun := startTunnel(t, startServer(t).URL())
	conn, err := stream.Connect(tun.url(), stream.Options{})
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	require.NoError(t, conn.Flush(within(t)))
	b := broadcast(t, conn, first("demo", 1), neverStopped(t))

	tun.silent.Store(true)
	said := make(chan struct{})
	go func() {
		defer close(said)
		// More than the buffers of any socket.
		text := strings.Repeat("x", 100_000)
		for range 500 {
			b.Say(text)
		}
		// And then the next answers.
		for i := range 100 {
			b := conn.Broadcast(first("demo", i+2), neverStopped(t))
			b.Say("Hello")
			b.Close()
		}
	}()
	select {
	case <-said:
	case <-time.After(15 * time.Second):
		t.Fatal("what is said waits for a server that does not listen")
	}
	require.ErrorIs(t, conn.Stop(within(t), "demo", stream.Stop{RequestID: event.FormatRequestID("demo", 1)}), stream.ErrNobody)
}
