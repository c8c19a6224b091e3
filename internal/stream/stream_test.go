package stream_test

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/natsserver"
	"github.com/seed-9ed7edd4/chronicle/internal/stream"
	"github.com/seed-9ed7edd4/chronicle/internal/stream/streamtest"
)

// within is a generous limit for waits.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
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
			if d, ok := streamtest.Delta(sub, m); ok {
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
	heard, err := listener.SubscribeSync("chronicle.default._.demo.delta")
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
			if d, ok := streamtest.Delta(sub, m); ok {
				return d
			}
		case <-waited:
			t.Fatal("no delta came")
		}
	}
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

func TestStopReachesItsAttempt(t *testing.T) {
	server := startServer(t)
	worker, workflow := connect(t, server, stream.Options{}), connect(t, server, stream.Options{})
	received := make(chan stream.Stop, 1)
	broadcast(t, worker, first("demo", 1), neverStopped(t))
	broadcast(t, worker, first("other", 2), neverStopped(t))
	earlier := first("demo", 2)
	broadcast(t, worker, earlier, neverStopped(t))
	attempt := earlier
	attempt.Number = 2
	broadcast(t, worker, attempt, func(s stream.Stop) { received <- s })
	stop := stream.Stop{RequestID: "demo:r0002", Attempt: 2, Reason: event.ReasonNewUserInput, Unsent: true}
	require.NoError(t, workflow.Stop(within(t), "demo", stop))
	select {
	case got := <-received:
		require.Equal(t, stop, got)
	case <-within(t).Done():
		t.Fatal("the stop message was acknowledged without a call of onStop")
	}

	// No worker responds for another attempt. The time until that is known does not matter
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
