package stream_test

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
	"github.com/seed-9ed7edd4/chronicle/internal/natsserver"
	"github.com/seed-9ed7edd4/chronicle/internal/stream"
)

func TestNilConnDiscardsEverything(t *testing.T) {
	var conn *stream.Conn
	require.False(t, conn.Connected())
	require.Error(t, conn.Flush(within(t)))
	_, err := conn.RoundTrip(within(t))
	require.Error(t, err)
	_, err = conn.AskRoundTrip(within(t))
	require.Error(t, err)
	sub, err := conn.Subscribe("demo")
	require.NoError(t, err)
	b := conn.Broadcast(stream.Attempt{ContextName: "demo", RequestID: "demo:r0001", Number: 2}, neverStopped(t))
	b.SetThrough("demo:0002")
	b.Publish("Hello")
	b.Close()
	select {
	case m := <-sub.Messages():
		t.Fatalf("unexpected message: %+v", m)
	default:
	}
	sub.Close()
	conn.Close()
}

func TestARoundTripIsMeasured(t *testing.T) {
	server := startServer(t)
	conn := connect(t, server, stream.Options{})
	for _, roundTrip := range []func(context.Context) (time.Duration, error){conn.RoundTrip, conn.AskRoundTrip} {
		took, err := roundTrip(within(t))
		require.NoError(t, err)
		require.Positive(t, took)
	}
	conn.Close()
	for _, roundTrip := range []func(context.Context) (time.Duration, error){conn.RoundTrip, conn.AskRoundTrip} {
		_, err := roundTrip(within(t))
		require.ErrorIs(t, err, nats.ErrConnectionClosed)
	}
}

func TestContextsAndNamespacesAreSeparate(t *testing.T) {
	server := startServer(t)
	worker := map[string]*stream.Conn{}
	for _, namespace := range []string{"", "prod", "a.b", "a"} {
		worker[namespace] = connect(t, server, stream.Options{Namespace: namespace})
	}
	type place struct{ namespace, context string }
	for name, of := range map[string]struct{ speaker, listener place }{
		"another namespace":                              {place{"", "demo"}, place{"prod", "demo"}},
		"a context whose name is a prefix":               {place{"", "a.b"}, place{"", "a"}},
		"names that differ by a dot":                     {place{"", "a.b"}, place{"", "a_b"}},
		"a name that looks like the encoding of another": {place{"", "a.b"}, place{"", "a=2Eb"}},
		"a namespace with a dot":                         {place{"a.b", "c"}, place{"a", "b.c"}},
		"a wildcard":                                     {place{"", "demo"}, place{"", "*"}},
		"names that differ by case":                      {place{"", "demo"}, place{"", "Demo"}},
	} {
		t.Run(name, func(t *testing.T) {
			sub := subscribe(t, worker[of.listener.namespace], of.listener.context)
			b := broadcast(t, worker[of.speaker.namespace], stream.Attempt{
				ContextName: of.speaker.context, RequestID: of.listener.context + ":r0001", Number: 1,
			}, neverStopped(t))
			b.Publish("not for you")
			require.NoError(t, worker[of.speaker.namespace].Flush(within(t)))
			own := broadcast(t, worker[of.listener.namespace], stream.Attempt{
				ContextName: of.listener.context, RequestID: of.listener.context + ":r0001", Number: 1,
			}, neverStopped(t))
			own.Publish("for you")
			require.Equal(t, "for you", next(t, sub).Delta)
			own.Close()
			b.Close()
		})
	}
}

func TestNamesAreEncodedAsOneToken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.String().Draw(t, "a"), rapid.String().Draw(t, "b")
		require.Regexp(t, `^[A-Za-z0-9_=-]*$`, stream.Token(a))
		require.Equal(t, a == b, stream.Token(a) == stream.Token(b), "the encoding is unique")
	})
}

func TestContextsHaveDistinctSubjects(t *testing.T) {
	server := startServer(t)
	conn, err := stream.Connect(server.URL(), stream.Options{Namespace: "a.b"})
	require.NoError(t, err)
	defer conn.Close()
	require.Equal(t, "chronicle.a=2Eb._.demo.delta", conn.Subject("demo", "delta"))
	require.Equal(t, "chronicle.a=2Eb.acme._=2E.ask", conn.Subject("acme/_.", "ask"))
	rapid.Check(t, func(t *rapid.T) {
		one, other := eventtest.ContextName().Draw(t, "one"), eventtest.ContextName().Draw(t, "other")
		require.Equal(t, one == other, conn.Subject(one, "delta") == conn.Subject(other, "delta"))
		require.Equal(t, 4, strings.Count(conn.Subject(one, "delta"), "."))
	})
}

func TestSubscriptionContinuesAfterReconnect(t *testing.T) {
	server := startServer(t)
	at, err := url.Parse(server.URL())
	require.NoError(t, err)
	port, err := strconv.Atoi(at.Port())
	require.NoError(t, err)

	lost, found := make(chan struct{}, 2), make(chan struct{}, 2)
	watched := stream.Options{OnDisconnect: func(error) { lost <- struct{}{} }, OnConnect: func() { found <- struct{}{} }}
	worker, reader := connect(t, server, watched), connect(t, server, watched)
	sub := subscribe(t, reader, "demo")
	b := broadcast(t, worker, first("demo", 1), neverStopped(t))
	var s screen
	b.Publish("Hel")
	s.until(t, sub, "Hel")

	server.Shutdown()
	both(t, lost)
	require.False(t, reader.Connected())
	b.Publish("lo")
	require.ErrorIs(t, worker.Stop(within(t), "demo", stream.Stop{RequestID: "demo:r0001"}), stream.ErrNoWorker)

	server, err = natsserver.Start(natsserver.Options{Port: port})
	require.NoError(t, err)
	t.Cleanup(server.Shutdown)
	both(t, found)
	require.NoError(t, reader.Flush(within(t)))
	require.NoError(t, worker.Flush(within(t)))
	b.Publish("!")
	s.until(t, sub, "Hello!")
}

func both(t *testing.T, of <-chan struct{}) {
	t.Helper()
	for range 2 {
		select {
		case <-of:
		case <-within(t).Done():
			t.Fatal("the connections did not report the change")
		}
	}
}

func TestConnectsWhenTheServerStartsLater(t *testing.T) {
	server := startServer(t)
	at, err := url.Parse(server.URL())
	require.NoError(t, err)
	server.Shutdown()
	port, err := strconv.Atoi(at.Port())
	require.NoError(t, err)

	found := make(chan struct{}, 1)
	conn, err := stream.Connect(at.String(), stream.Options{OnConnect: func() { found <- struct{}{} }})
	require.NoError(t, err)
	defer conn.Close()
	require.False(t, conn.Connected())
	require.ErrorIs(t, conn.ConnectError(), nats.ErrNoServers)
	sub, err := conn.Subscribe("demo")
	require.NoError(t, err)
	defer sub.Close()

	server, err = natsserver.Start(natsserver.Options{Port: port})
	require.NoError(t, err)
	defer server.Shutdown()
	select {
	case <-found:
	case <-within(t).Done():
		t.Fatal("the connection was not reported")
	}
	require.NoError(t, conn.Flush(within(t)))
	require.True(t, conn.Connected())
	b := broadcast(t, conn, first("demo", 1), neverStopped(t))
	b.Publish("Hello")
	require.Equal(t, "Hello", next(t, sub).Delta)
}

func TestSubscribeOnAClosedConnection(t *testing.T) {
	conn := connect(t, startServer(t), stream.Options{})
	conn.Close()
	_, err := conn.Subscribe("demo")
	require.EqualError(t, err, "subscribe to the answers of context demo: nats: connection closed")
	b := conn.Broadcast(first("demo", 1), neverStopped(t))
	b.Publish("to nobody")
	b.Close()
}

func TestNothingIsDeliveredAfterClose(t *testing.T) {
	server := startServer(t)
	worker, reader := connect(t, server, stream.Options{}), connect(t, server, stream.Options{})
	b := broadcast(t, worker, first("demo", 1), neverStopped(t))
	sub := subscribe(t, reader, "demo")
	b.Publish("Hel")
	new(screen).until(t, sub, "Hel")
	sub.Close()
	sub.Close() // a second call has no effect
	heard := len(sub.Messages())
	b.Publish("lo")
	require.NoError(t, worker.Flush(within(t)))
	require.NoError(t, reader.Flush(within(t)))
	require.Len(t, sub.Messages(), heard)
}

func TestErrorsOmitThePasswordInTheURL(t *testing.T) {
	_, err := stream.Connect("nats://me:hunter2@127.0.0.1:port", stream.Options{})
	require.ErrorContains(t, err, "nats at nats://[removed]@127.0.0.1:port: invalid URL")
	require.NotContains(t, err.Error(), "hunter2")
}

func TestAServerListensOnLoopback(t *testing.T) {
	server := startServer(t)
	at, err := url.Parse(server.URL())
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1", at.Hostname(), "it requires no password")
}
