package reducer_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

func TestTheHeartbeatOfAnEarlierAttemptStartsNoAttempt(t *testing.T) {
	at := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	s, _ := reducer.Step(reducer.NewSession("demo"), reducer.Opened{At: at})
	s, _ = reducer.Step(s, reducer.Received{At: at, Events: []event.Event{event.New(event.UserMessage{Content: "Hello"})}})
	attempt := func(n int) reducer.Attempted {
		return reducer.Attempted{RequestID: "demo:r0001", Attempt: n, Through: s.LastEventID(), ProviderID: "openai", Model: "m"}
	}
	first := attempt(1)
	s, _ = reducer.Step(s, reducer.RequestStarted{At: at, Attempted: first})
	s, _ = reducer.Step(s, reducer.RequestStarted{At: at, Attempted: attempt(2)})
	_, effects := reducer.Step(s, reducer.RequestEnded{At: at, Attempted: first, Outcome: reducer.Lost})
	var tags []event.Tag
	for _, e := range effects[0].(reducer.Record).Events {
		tags = append(tags, e.Tag())
	}
	require.Equal(t, []event.Tag{event.TagLLMAttemptEnded}, tags)
}
