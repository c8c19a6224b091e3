package stream_test

import (
	"context"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/stream"
	"github.com/seed-9ed7edd4/chronicle/internal/stream/streamtest"
)

func TestUnresponsiveServerDoesNotBlockAnswers(t *testing.T) {
	// More than any socket buffers.
	for name, of := range map[string]struct{ answers, deltas, bytes int }{
		"a long one":      {1, 500, 100_000},
		"many short ones": {50, 500, 2_000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tunnel := streamtest.Start(t, startServer(t).URL())
			conn, err := stream.Connect(tunnel.URL(), stream.Options{})
			require.NoError(t, err)
			t.Cleanup(conn.Close)
			require.NoError(t, conn.Flush(within(t)))
			var answers sync.WaitGroup
			for i := range of.answers {
				name := strconv.Itoa(i)
				b := broadcast(t, conn, first(name, 1), neverStopped(t))
				answers.Go(func() {
					text := strings.Repeat("x", of.bytes)
					for range of.deltas {
						b.Publish(text)
					}
					// Then the next ones.
					for i := range 100 {
						b := conn.Broadcast(first(name, i+2), neverStopped(t))
						b.Publish("Hello")
						b.Close()
					}
				})
			}
			tunnel.Silence()
			said := make(chan struct{})
			go func() {
				defer close(said)
				answers.Wait()
			}()
			select {
			case <-said:
			case <-time.After(time.Minute):
				t.Fatal("publishing waits for an unresponsive server")
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			require.ErrorIs(t, conn.Stop(ctx, "0", stream.Stop{RequestID: event.FormatRequestID("0", 1)}), stream.ErrNoWorker)
		})
	}
}

func TestFailedWriteClosesTheConnection(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	conn, err := stream.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	server, err := listener.Accept()
	require.NoError(t, err)
	defer server.Close()

	require.NoError(t, conn.SetWriteDeadline(time.Unix(0, 1)))
	_, err = conn.Write([]byte("PING"))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NoError(t, server.SetReadDeadline(time.Now().Add(time.Minute)))
	_, err = server.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
}
