package stream_test

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/natsserver"
	"github.com/seed-9ed7edd4/chronicle/stream"
)

// within is a generous limit for waits.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func startServer(t testing.TB) *natsserver.Server {
	t.Helper()
	server, err := natsserver.Start(natsserver.Options{})
	require.NoError(t, err)
	t.Cleanup(server.Shutdown)
	return server
}

func connect(t testing.TB, server *natsserver.Server, options stream.Options) *stream.Conn {
	t.Helper()
	conn, err := stream.Connect(server.URL(), options)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	require.NoError(t, conn.Flush(within(t)))
	return conn
}

func subscribe(t testing.TB, conn *stream.Conn, contextName string) *stream.Subscription {
	t.Helper()
	sub, err := conn.Subscribe(contextName)
	require.NoError(t, err)
	t.Cleanup(sub.Close)
	require.NoError(t, conn.Flush(within(t)), "from here on the server has the subscription")
	return sub
}

func broadcast(t testing.TB, conn *stream.Conn, attempt stream.Attempt, onStop func(stream.Stop)) *stream.Broadcast {
	t.Helper()
	b := conn.Broadcast(attempt, onStop)
	t.Cleanup(b.Close)
	require.NoError(t, conn.Flush(within(t)), "from here on it receives asks")
	return b
}

func first(contextName string, request int) stream.Attempt {
	return stream.Attempt{ContextName: contextName, RequestID: event.FormatRequestID(contextName, request), Number: 1}
}

func neverStopped(t testing.TB) func(stream.Stop) {
	return func(s stream.Stop) { t.Errorf("asked to stop: %+v", s) }
}

func next(t testing.TB, sub *stream.Subscription) event.TextDelta {
	t.Helper()
	waited := within(t).Done()
	for {
		select {
		case m := <-sub.Messages():
			if d, ok := sub.Delta(m); ok {
				require.Empty(t, d.Reasoning)
				return d.TextDelta
			}
		case <-waited:
			t.Fatal("no delta came")
		}
	}
}

// until applies deltas until the screen has the text.
func (s *screen) until(t testing.TB, sub *stream.Subscription, text string) {
	t.Helper()
	for s.text != text {
		s.show(next(t, sub))
		require.True(t, strings.HasPrefix(text, s.text), "%q is shown on the way to %q", s.text, text)
	}
}

func TestDeltasArriveInOrder(t *testing.T) {
	server := startServer(t)
	worker, reader := connect(t, server, stream.Options{}), connect(t, server, stream.Options{})
	sub := subscribe(t, reader, "demo")
	b := broadcast(t, worker, first("demo", 1), neverStopped(t))
	var text strings.Builder
	for i := range 1000 {
		piece := strconv.Itoa(i) + " "
		text.WriteString(piece)
		b.Publish(piece)
	}
	new(screen).until(t, sub, text.String())
}

func TestDeltaIdentifiesItsRequest(t *testing.T) {
	server := startServer(t)
	conn := connect(t, server, stream.Options{})
	sub := subscribe(t, conn, "demo")
	b := broadcast(t, conn, first("demo", 7), neverStopped(t))
	b.SetThrough("demo:0003")
	b.Publish("<Hello> & \"you\"")
	require.Equal(t, event.TextDelta{
		RequestID: "demo:r0007", Attempt: 1, Index: 0, Delta: "<Hello> & \"you\"", ThroughEventID: "demo:0003",
	}, next(t, sub))
}

func TestDeltaIsEncodedAsAnEvent(t *testing.T) {
	server := startServer(t)
	listener, err := nats.Connect(server.URL())
	require.NoError(t, err)
	t.Cleanup(listener.Close)
	heard, err := listener.SubscribeSync("chronicle.default.demo.delta")
	require.NoError(t, err)
	require.NoError(t, listener.Flush())
	b := broadcast(t, connect(t, server, stream.Options{}), first("demo", 7), neverStopped(t))
	b.SetThrough("demo:0003")
	b.Publish("<Hello> & \"you\"")
	msg, err := heard.NextMsgWithContext(within(t))
	require.NoError(t, err)
	var e event.Event
	require.NoError(t, json.Unmarshal(msg.Data, &e))
	require.Equal(t, event.New(event.TextDelta{
		RequestID: "demo:r0007", Attempt: 1, Index: 0, Delta: "<Hello> & \"you\"", ThroughEventID: "demo:0003",
	}), e)
}

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

func TestReasoningArrivesInOrderWithTheText(t *testing.T) {
	server := startServer(t)
	worker, reader := connect(t, server, stream.Options{}), connect(t, server, stream.Options{})
	sub := subscribe(t, reader, "demo")
	b := broadcast(t, worker, first("demo", 1), neverStopped(t))
	b.PublishReasoning("Hm, ")
	b.PublishReasoning("yes")
	b.Publish("Hello")
	position := event.TextDelta{RequestID: "demo:r0001", Attempt: 1}
	want := []stream.Delta{{TextDelta: position, Reasoning: "Hm, "}, {TextDelta: position, Reasoning: "yes"}, {TextDelta: position}}
	want[1].Index, want[2].Index, want[2].TextDelta.Delta = 1, 2, "Hello"
	for _, delta := range want {
		require.Equal(t, delta, nextOfAnyKind(t, sub))
	}
	late := subscribe(t, reader, "demo")
	position.Index, position.Delta, position.Reset = 2, "Hello", true
	require.Equal(t, stream.Delta{TextDelta: position, Reasoning: "Hm, yes"}, nextOfAnyKind(t, late), "a late subscriber gets both")
}

func nextOfAnyKind(t testing.TB, sub *stream.Subscription) stream.Delta {
	t.Helper()
	waited := within(t).Done()
	for {
		select {
		case m := <-sub.Messages():
			if d, ok := sub.Delta(m); ok {
				return d
			}
		case <-waited:
			t.Fatal("no delta came")
		}
	}
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

// The JSON of the text has 2.6 MiB, that of the reasoning 1.1 MiB, and a message at most 1 MiB.
func TestASubscriberGetsATextLargerThanAMessage(t *testing.T) {
	server := startServer(t)
	worker, reader := connect(t, server, stream.Options{}), connect(t, server, stream.Options{})
	early := subscribe(t, reader, "demo")
	b := broadcast(t, worker, first("demo", 1), neverStopped(t))
	reasoning, piece := strings.Repeat("x", 550<<10), strings.Repeat("<\u00e9>", 32<<10)
	for range 2 {
		b.PublishReasoning(reasoning)
		require.Equal(t, reasoning, nextOfAnyKind(t, early).Reasoning)
	}
	var s screen
	whole := strings.Repeat(piece, 6)
	for range 6 {
		b.Publish(piece)
	}
	s.until(t, early, whole)

	late := subscribe(t, reader, "demo")
	want := event.TextDelta{RequestID: "demo:r0001", Attempt: 1, Index: 7, Reset: true, Delta: whole}
	require.Equal(t, stream.Delta{TextDelta: want, Reasoning: reasoning + reasoning}, nextOfAnyKind(t, late))
	b.Publish("missed")
	want.Index, want.Reset, want.Delta = 8, false, "missed"
	require.Equal(t, want, next(t, late))

	for m := range early.Messages() {
		if strings.Contains(string(m.Data), `"missed"`) {
			break
		}
	}
	b.Publish(" and that is all")
	want.Index, want.Reset, want.Delta = 9, true, whole+"missed and that is all"
	require.Equal(t, stream.Delta{TextDelta: want, Reasoning: reasoning + reasoning}, nextOfAnyKind(t, early))
	b.Publish("!")
	want.Index, want.Reset, want.Delta = 10, false, "!"
	require.Equal(t, want, next(t, early))
}

func TestTheProgressOfAToolIsDelivered(t *testing.T) {
	server := startServer(t)
	conn := connect(t, server, stream.Options{})
	sub := subscribe(t, conn, "demo")
	progress := event.ToolProgress{RequestID: "demo:r0001", ToolCallID: "call_1", Index: 3, Text: "page 3"}
	conn.PublishProgress("demo", progress)
	d := nextOfAnyKind(t, sub)
	require.Equal(t, stream.Delta{Progress: &progress}, d)
	require.Equal(t, []event.Body{progress}, slices.Collect(d.Bodies()))
}

func TestDeltasNameTheEventBeforeTheirAttempt(t *testing.T) {
	server := startServer(t)
	conn := connect(t, server, stream.Options{})
	sub := subscribe(t, conn, "demo")
	attempt := stream.Attempt{ContextName: "demo", RequestID: "demo:r0001", Number: 2, After: "demo:0007"}
	b := broadcast(t, conn, attempt, neverStopped(t))
	want := stream.Delta{TextDelta: event.TextDelta{RequestID: "demo:r0001", Attempt: 2, Reset: true}, After: "demo:0007"}
	require.Equal(t, want, nextOfAnyKind(t, sub))
	for i, through := range []string{"demo:0003", "demo:0007", "demo:0008"} {
		b.SetThrough(through)
		b.Publish("Hi")
		d := nextOfAnyKind(t, sub)
		require.Equal(t, through, d.ThroughEventID)
		require.Equal(t, i == 0, d.After == "demo:0007", "After is set only while it is newer than the included event")
	}
}

func TestNextAttemptResetsTheText(t *testing.T) {
	server := startServer(t)
	conn := connect(t, server, stream.Options{})
	sub := subscribe(t, conn, "demo")
	attempt := first("demo", 1)
	b := broadcast(t, conn, attempt, neverStopped(t))
	b.Publish("Once upon")
	require.Equal(t, "Once upon", next(t, sub).Delta)
	b.Close()

	attempt.Number = 2
	b = broadcast(t, conn, attempt, neverStopped(t))
	require.Equal(t, event.TextDelta{RequestID: "demo:r0001", Attempt: 2, Index: 0, Reset: true}, next(t, sub),
		"at once, and not with the first word")
	b.Publish("Hello")
	require.Equal(t, event.TextDelta{RequestID: "demo:r0001", Attempt: 2, Index: 1, Delta: "Hello"}, next(t, sub))
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
	_, err = nc.ChanSubscribe("chronicle.default.demo.ask", s.asks)
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
	return s
}

func (s *script) publish(data []byte) {
	s.t.Helper()
	require.NoError(s.t, s.nats.Publish("chronicle.default.demo.delta", data))
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
			d, ok := sub.Delta(m)
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

func TestStopReachesItsRequest(t *testing.T) {
	server := startServer(t)
	worker, workflow := connect(t, server, stream.Options{}), connect(t, server, stream.Options{})
	received := make(chan stream.Stop, 1)
	broadcast(t, worker, first("demo", 1), neverStopped(t))
	broadcast(t, worker, first("other", 2), neverStopped(t))
	broadcast(t, worker, first("demo", 2), func(s stream.Stop) { received <- s })
	stop := stream.Stop{RequestID: "demo:r0002", Reason: event.ReasonNewUserInput, Through: "demo:0009"}
	require.NoError(t, workflow.Stop(within(t), "demo", stop))
	select {
	case got := <-received:
		require.Equal(t, stop, got)
	case <-within(t).Done():
		t.Fatal("the stop message was acknowledged without a call of onStop")
	}

	// No worker responds for another request. The time until that is known does not matter
	// here.
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, workflow.Stop(ctx, "demo", stream.Stop{RequestID: "demo:r0003"}), stream.ErrNoWorker)
}

func TestStopWithoutAWorker(t *testing.T) {
	server := startServer(t)
	conn := connect(t, server, stream.Options{})
	closed := connect(t, server, stream.Options{})
	closed.Close()
	over := conn.Broadcast(first("over", 1), neverStopped(t))
	over.Close()
	require.NoError(t, conn.Flush(within(t)))
	for name, of := range map[string]struct {
		conn        *stream.Conn
		contextName string
	}{
		"without NATS":                       {nil, "demo"},
		"in an idle context":                 {conn, "demo"},
		"after the broadcast was closed":     {conn, "over"},
		"on a closed connection":             {closed, "demo"},
		"in a context with dots in its name": {conn, "a.b.c"},
	} {
		t.Run(name, func(t *testing.T) {
			err := of.conn.Stop(within(t), of.contextName, stream.Stop{RequestID: "demo:r0001"})
			require.ErrorIs(t, err, stream.ErrNoWorker)
			require.NotErrorIs(t, err, context.DeadlineExceeded, "NATS reports missing responders at once")
		})
	}
}

func TestNilConnDiscardsEverything(t *testing.T) {
	var conn *stream.Conn
	require.False(t, conn.Connected())
	require.Error(t, conn.Flush(within(t)))
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
				ContextName: of.speaker.context, RequestID: "x:r0001", Number: 1,
			}, neverStopped(t))
			b.Publish("not for you")
			require.NoError(t, worker[of.speaker.namespace].Flush(within(t)))
			own := broadcast(t, worker[of.listener.namespace], stream.Attempt{
				ContextName: of.listener.context, RequestID: "x:r0001", Number: 1,
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

// BenchmarkDelta measures the time from Publish to the reader of a subscription, through a server
// on loopback.
func BenchmarkDelta(b *testing.B) {
	server := startServer(b)
	worker, reader := connect(b, server, stream.Options{}), connect(b, server, stream.Options{})
	sub := subscribe(b, reader, "demo")
	var broadcast *stream.Broadcast
	request := 0
	for i := 0; b.Loop(); i++ {
		// The typical number of deltas of an answer.
		if i%500 == 0 {
			request++
			broadcast = worker.Broadcast(first("demo", request), neverStopped(b))
			defer broadcast.Close()
		}
		broadcast.Publish(" token")
		for shown := false; !shown; {
			_, shown = sub.Delta(<-sub.Messages())
		}
	}
}
