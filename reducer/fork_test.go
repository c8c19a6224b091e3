package reducer_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// A fork at any event of any log calls no tool and no model until it is asked to.
func TestAForkRepeatsNoSideEffect(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		log := eventtest.Log("demo").Draw(r, "log")
		at := rapid.IntRange(1, len(log)).Draw(r, "at")
		s := reducer.Load("demo", reducer.Reduce, log[:at]...)
		newest := ""
		if n := len(s.Reduced.Messages); n > 0 {
			newest = string(s.Reduced.Messages[n-1].Role)
		}
		now := log[at-1].Timestamp.Add(time.Second)
		s, effects := reducer.Step(s, reducer.Opened{At: now, ForkedFrom: event.FormatID("origin", at)})
		require.Equal(r, reducer.PhaseIdle, s.Phase())
		require.Equal(r, []string{"Record"}, effectNames(effects))
		for _, e := range effects[0].(reducer.Record).Events[1:] {
			require.Contains(r, []event.Tag{event.TagToolResult, event.TagLLMRequestInterrupted}, e.Tag(), "what ran at the event is closed")
		}

		s, effects = reducer.Step(s, reducer.Received{At: now, Events: []event.Event{event.New(event.AnswerRequested{})}})
		if tag := effects[0].(reducer.Record).Events[0].Tag(); tag == event.TagInputRejected {
			require.NotContains(r, []string{"user", "tool"}, newest)
			return
		}
		require.Equal(r, []string{"Record", "StartAttempt"}, effectNames(effects))
		require.Equal(r, reducer.PhaseRunning, s.Phase())
		require.Empty(r, s.OpenToolCalls)
	})
}
