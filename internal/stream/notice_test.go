package stream_test

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/internal/stream"
)

func TestNoticesReachTheirTenantOnly(t *testing.T) {
	server := startServer(t)
	worker, viewer := connect(t, server, stream.Options{}), connect(t, server, stream.Options{})
	subscribe := func(isBound bool, tenant string) (chan string, func()) {
		notices := make(chan string, 100)
		unsubscribe, err := viewer.SubscribeNotices(isBound, tenant, func(name string) { notices <- name })
		require.NoError(t, err)
		return notices, unsubscribe
	}
	all, _ := subscribe(false, "")
	acme, _ := subscribe(true, "acme")
	none, unsubscribe := subscribe(true, "")
	require.NoError(t, viewer.Flush(within(t)))

	broadcast(t, worker, stream.Attempt{ContextName: "acme/de.mo", RequestID: "de.mo:r0001", Number: 1}, nil).Close()
	worker.Notice("demo")
	for _, want := range []string{"acme/de.mo", "acme/de.mo", "demo"} { // a broadcast begins and ends
		require.Equal(t, want, <-all)
	}

	// A name that is not that of the subject is not passed on.
	forger, err := nats.Connect(server.URL())
	require.NoError(t, err)
	defer forger.Close()
	require.NoError(t, forger.Publish("chronicle.default.acme.demo.notice", []byte("other/demo")))
	require.NoError(t, forger.Publish("chronicle.default.acme.demo.notice", nil))
	require.NoError(t, forger.Flush())
	worker.Notice("acme/last")
	worker.Notice("last")
	require.Equal(t, "acme/last", <-all)
	require.Equal(t, "last", <-all)
	for _, want := range []string{"acme/de.mo", "acme/de.mo", "acme/last"} {
		require.Equal(t, want, <-acme)
	}
	require.Equal(t, "demo", <-none)
	require.Equal(t, "last", <-none)

	unsubscribe()
	require.NoError(t, viewer.Flush(within(t)))
	worker.Notice("demo")
	require.Equal(t, "demo", <-all)
	require.Empty(t, none)
}

func TestNoticesNeedNoServer(t *testing.T) {
	var conn *stream.Conn
	conn.Notice("demo")
	unsubscribe, err := conn.SubscribeNotices(true, "", func(string) {})
	require.NoError(t, err)
	unsubscribe()
}
