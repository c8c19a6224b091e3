package reducer_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

func said(clientEventID string) reducer.Received {
	no := false
	e := event.New(event.UserMessage{Content: "Hello", TriggersTurn: &no})
	e.ClientEventID = clientEventID
	return reducer.Received{At: eventtest.Epoch, Events: []event.Event{e}}
}

func TestASessionDeduplicatesTheNewestEvents(t *testing.T) {
	s, _ := reducer.Step(reducer.NewSession("demo"), reducer.Opened{At: eventtest.Epoch})
	for i := range 2*reducer.MaxRecent + 1 {
		s, _ = reducer.Step(s, said(fmt.Sprintf("c%d", i)))
		require.LessOrEqual(t, len(s.Recent), reducer.MaxRecent)
	}
	oldest := reducer.MaxRecent + 1
	for i := range 2*reducer.MaxRecent + 1 {
		id, ok := s.Find(fmt.Sprintf("c%d", i))
		require.Equal(t, i >= oldest, ok, "c%d", i)
		if ok {
			require.Equal(t, event.FormatID("demo", i+2), id)
		}
	}

	again, effects := reducer.Step(s, said(fmt.Sprintf("c%d", oldest)))
	require.Empty(t, effects)
	require.Equal(t, s, again)
	forgotten, effects := reducer.Step(s, said(fmt.Sprintf("c%d", oldest-1)))
	require.Len(t, effects, 1)
	require.Equal(t, s.EventCount+1, forgotten.EventCount)
}

func TestSuccessorsOfASessionDeduplicateIndependently(t *testing.T) {
	s, _ := reducer.Step(reducer.NewSession("demo"), reducer.Opened{At: eventtest.Epoch})
	s, _ = reducer.Step(s, said("before"))
	one, _ := reducer.Step(s, said("one"))
	other, _ := reducer.Step(s, said("other"))
	_, ok := one.Find("other")
	require.False(t, ok)
	_, ok = other.Find("one")
	require.False(t, ok)
	_, ok = s.Find("one")
	require.False(t, ok)
	_, ok = one.Find("one")
	require.True(t, ok)
}
