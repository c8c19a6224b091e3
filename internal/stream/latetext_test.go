package stream_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/natsserver"
	"github.com/seed-9ed7edd4/chronicle/internal/stream"
	"github.com/seed-9ed7edd4/chronicle/internal/stream/streamtest"
)

func TestLateSubscriberGetsTheTextSoFar(t *testing.T) {
	server := startServer(t)
	worker, reader := connect(t, server, stream.Options{}), connect(t, server, stream.Options{})
	b := broadcast(t, worker, first("demo", 1), neverStopped(t))
	b.SetThrough("demo:0002")
	b.Publish("Hel")
	b.Publish("lo")
	require.NoError(t, worker.Flush(within(t)))
	sub := subscribe(t, reader, "demo")
	require.Equal(t, event.TextDelta{
		RequestID: "demo:r0001", Attempt: 1, Index: 1, Delta: "Hello", Reset: true, ThroughEventID: "demo:0002",
	}, next(t, sub))
	b.Publish("!")
	require.Equal(t, event.TextDelta{
		RequestID: "demo:r0001", Attempt: 1, Index: 2, Delta: "!", ThroughEventID: "demo:0002",
	}, next(t, sub))
}

func TestLateSubscriberDuringManyDeltasGetsThemAll(t *testing.T) {
	server := startServer(t)
	worker, reader := connect(t, server, stream.Options{}), connect(t, server, stream.Options{})
	b := broadcast(t, worker, first("demo", 1), neverStopped(t))
	var text strings.Builder
	said := make(chan struct{})
	half := make(chan struct{})
	go func() {
		defer close(said)
		for i := range 2000 {
			piece := strconv.Itoa(i) + " "
			text.WriteString(piece)
			b.Publish(piece)
			if i == 1000 {
				close(half)
			}
		}
	}()
	<-half
	sub := subscribe(t, reader, "demo")
	<-said
	new(screen).until(t, sub, text.String())
}

func TestSlowReaderGetsTheTextSoFar(t *testing.T) {
	server := startServer(t)
	worker, reader := connect(t, server, stream.Options{}), connect(t, server, stream.Options{})
	b := broadcast(t, worker, first("demo", 1), neverStopped(t))
	var text strings.Builder
	say := func(piece string) {
		text.WriteString(piece)
		b.Publish(piece)
	}
	say("Once upon")
	require.NoError(t, worker.Flush(within(t)))
	sub := subscribe(t, reader, "demo")
	var s screen
	s.until(t, sub, "Once upon")

	for i := range 2 * cap(sub.Messages()) {
		say(" " + strconv.Itoa(i))
	}
	require.NoError(t, worker.Flush(within(t)))
	require.NoError(t, reader.Flush(within(t)), "all messages have arrived and half of them were dropped")
	s.show(next(t, sub))
	say(" and that is all")
	s.until(t, sub, text.String())
}

// script is a scripted worker that uses the JSON of the documented subjects.
type script struct {
	t    *testing.T
	nats *nats.Conn
	asks chan *nats.Msg
}

func newScript(t *testing.T, server *natsserver.Server) *script {
	t.Helper()
	nc, err := nats.Connect(server.URL())
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	s := &script{t: t, nats: nc, asks: make(chan *nats.Msg, 10)}
	_, err = nc.ChanSubscribe("chronicle.default._.demo.ask", s.asks)
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
	return s
}

func (s *script) publish(data []byte) {
	s.t.Helper()
	require.NoError(s.t, s.nats.Publish("chronicle.default._.demo.delta", data))
}

// asked waits until the subscription requests the text so far, and requires that it shows
// nothing in the meantime.
func (s *script) asked(sub *stream.Subscription) *nats.Msg {
	s.t.Helper()
	waited := within(s.t).Done()
	for {
		select {
		case msg := <-s.asks:
			require.JSONEq(s.t, `{}`, string(msg.Data))
			return msg
		case m := <-sub.Messages():
			d, ok := streamtest.Delta(sub, m)
			require.False(s.t, ok, "shown after a gap: %+v", d)
		case <-waited:
			s.t.Fatal("the text so far was not requested")
		}
	}
}

func encode(t *testing.T, d event.TextDelta) []byte {
	t.Helper()
	data, err := json.Marshal(event.New(d))
	require.NoError(t, err)
	return data
}

func TestGapRequestsTheText(t *testing.T) {
	server := startServer(t)
	s := newScript(t, server)
	sub := subscribe(t, connect(t, server, stream.Options{}), "demo")
	require.NoError(t, s.asked(sub).Respond([]byte(`what?`)), "a malformed response is ignored")

	s.publish([]byte(`neither does a delta`))
	s.publish(encode(t, delta(1, 1, 0, "a")))
	require.Equal(t, delta(1, 1, 0, "a"), next(t, sub))
	s.publish(encode(t, delta(1, 1, 2, "c")))
	require.NoError(t, s.asked(sub).Respond(encode(t, reset(delta(1, 1, 2, "abc")))))
	require.Equal(t, reset(delta(1, 1, 2, "abc")), next(t, sub))
	s.publish(encode(t, delta(1, 1, 1, "b")))
	s.publish(encode(t, delta(1, 1, 3, "d")))
	require.Equal(t, delta(1, 1, 3, "d"), next(t, sub), "a late delta is not shown twice")
	require.Empty(t, s.asks)
}

func TestStaleTextIsRequestedAgain(t *testing.T) {
	server := startServer(t)
	s := newScript(t, server)
	sub := subscribe(t, connect(t, server, stream.Options{}), "demo")
	ask := s.asked(sub)
	s.publish(encode(t, delta(1, 1, 1, "b")))
	require.NoError(t, s.nats.Flush())
	require.NoError(t, ask.Respond(encode(t, reset(delta(1, 1, 0, "a")))))
	whole := encode(t, reset(delta(1, 1, 1, "ab")))
	// In either order of the two messages, the subscription ends up with the whole text.
	go func() {
		select {
		case msg := <-s.asks:
			_ = msg.Respond(whole)
		case <-t.Context().Done():
		}
	}()
	new(screen).until(t, sub, "ab")
}

// Otherwise a viewer could make a worker publish on the subjects of deltas and stops.
func TestAWorkerRespondsOnlyToInboxes(t *testing.T) {
	server := startServer(t)
	b := broadcast(t, connect(t, server, stream.Options{}), first("demo", 1), neverStopped(t))
	b.Publish("Hello")
	viewer, err := nats.Connect(server.URL())
	require.NoError(t, err)
	t.Cleanup(viewer.Close)
	heard, err := viewer.SubscribeSync(">")
	require.NoError(t, err)
	const inbox = "_INBOX.mine"
	stop := `{"requestId":"demo:r0001","reason":"user"}`
	require.NoError(t, viewer.PublishRequest("chronicle.default._.demo.stop", "chronicle.default._.demo.delta", []byte(stop)))
	for _, reply := range []string{"chronicle.default._.demo.stop", "chronicle.default._.demo.delta", inbox} {
		require.NoError(t, viewer.PublishRequest("chronicle.default._.demo.ask", reply, []byte(`{}`)))
	}
	for {
		msg, err := heard.NextMsgWithContext(within(t))
		require.NoError(t, err)
		if msg.Subject == inbox {
			require.Contains(t, string(msg.Data), "Hello")
			return
		}
		require.NotContains(t, string(msg.Data), "Hello", msg.Subject)
	}
}
