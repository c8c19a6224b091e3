package event_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
)

func TestAMovedEventDiffersInTheNameOfItsContextAlone(t *testing.T) {
	rename := strings.NewReplacer(`"demo:`, `"other.1:`, `"contextName":"demo"`, `"contextName":"other.1"`)
	rapid.Check(t, func(t *rapid.T) {
		e := eventtest.Event().Draw(t, "event")
		before, err := e.MarshalJSON()
		require.NoError(t, err)
		moved, err := e.MovedTo("other.1").MarshalJSON()
		require.NoError(t, err)
		require.Equal(t, rename.Replace(string(before)), string(moved))
		back, err := e.MovedTo("other.1").MovedTo("demo").MarshalJSON()
		require.NoError(t, err)
		require.Equal(t, string(before), string(back))
	})
}

func TestIdsOfOtherContextsStay(t *testing.T) {
	for _, id := range []string{"", "msg_foreign", "demo2:0001", "de:0001", "demo:1", "demo:first", "demo:"} {
		moved := event.Event{ContextName: "demo", Body: event.ToolCall{ToolCallID: "c", MessageID: id}}.MovedTo("other")
		require.Equal(t, event.ToolCall{ToolCallID: "c", MessageID: id}, moved.Body)
	}
}
