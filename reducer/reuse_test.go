package reducer_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

func TestAReusedIdempotencyKeyIsRejected(t *testing.T) {
	keyed := func(body string, texts ...string) reducer.Received {
		in := reducer.Received{At: time.Unix(1, 0)}
		for i, text := range texts {
			e := event.New(event.SystemPrompt{Content: text})
			e.ClientEventID = event.KeyedIDs("key", []byte(body))(i)
			in.Events = append(in.Events, e)
		}
		return in
	}
	s := reducer.NewSession("demo")
	send := func(in reducer.Received) (recorded []event.Event) {
		var effects []reducer.Effect
		s, effects = reducer.Step(s, in)
		for _, effect := range effects {
			if record, ok := effect.(reducer.Record); ok {
				recorded = append(recorded, record.Events...)
			}
		}
		return recorded
	}
	s, _ = reducer.Step(s, reducer.Opened{At: time.Unix(1, 0)})
	require.Len(t, send(keyed("one", "a", "b")), 2)
	require.Empty(t, send(keyed("one", "a", "b")), "a repeat is deduplicated")
	for _, other := range []reducer.Received{keyed("two", "a"), keyed("three", "a", "b", "c"), keyed("four", "x", "b")} {
		recorded := send(other)
		require.Len(t, recorded, 1, "only the rejection is recorded")
		require.Equal(t, event.KeyReused, recorded[0].Body.(event.InputRejected).Reason)
		require.Equal(t, other.Events[0].ClientEventID, recorded[0].ClientEventID)
	}
	require.Empty(t, send(keyed("one", "a", "b")))
}

func TestAnIDOfADifferentEventIsRejected(t *testing.T) {
	session, _ := reducer.Step(reducer.NewSession("demo"), reducer.Opened{})
	send := func(texts ...string) (reasons []string) {
		in := reducer.Received{}
		for _, text := range texts {
			e := event.New(event.UserMessage{Content: text, TriggersTurn: new(false)})
			e.ClientEventID = "client-1"
			in.Events = append(in.Events, e)
		}
		var effects []reducer.Effect
		session, effects = reducer.Step(session, in)
		for _, effect := range effects {
			for _, e := range effect.(reducer.Record).Events {
				if rejected, ok := e.Body.(event.InputRejected); ok {
					reasons = append(reasons, rejected.Reason)
				}
			}
		}
		return reasons
	}
	require.Equal(t, []string{event.KeyReused}, send("one", "two"), "in one input")
	require.Empty(t, send("one"))
	require.Empty(t, send("one"), "a repeat is dropped")
	require.Equal(t, []string{event.KeyReused}, send("two"))
	data, err := json.Marshal(session)
	require.NoError(t, err)
	session = reducer.Session{}
	require.NoError(t, json.Unmarshal(data, &session))
	require.Equal(t, []string{event.KeyReused}, send("two"), "after a round trip")
	require.Len(t, session.Reduced.Messages, 1)
}
