package reducer_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// inputs returns a session after inputs of one event each, and the reasons of the rejected ones.
func inputs(s reducer.Session, bodies ...event.Body) (_ reducer.Session, reasons []string) {
	for _, body := range bodies {
		var effects []reducer.Effect
		s, effects = reducer.Step(s, reducer.Received{Events: []event.Event{event.New(body)}})
		for _, effect := range effects {
			if record, ok := effect.(reducer.Record); ok {
				for _, e := range record.Events {
					if rejected, ok := e.Body.(event.InputRejected); ok {
						reasons = append(reasons, rejected.Reason)
					}
				}
			}
		}
	}
	return s, reasons
}

// A client that could place messages anywhere would make the fold move all messages for each of them.
func TestAClientPlacesOnlyAmongTheNewestMessages(t *testing.T) {
	session, _ := reducer.Step(reducer.NewSession("demo"), reducer.Opened{})
	session, reasons := inputs(session,
		event.AssistantMessage{Content: "calls"}, event.ToolCall{ToolCallID: "early", ToolName: "clock"},
		event.ToolResult{ToolCallID: "early", Value: []byte(`1`)})
	require.Empty(t, reasons)
	for i := range reducer.MaxPlaceBack {
		session, reasons = inputs(session, event.AssistantMessage{Content: fmt.Sprint(i)})
		require.Empty(t, reasons)
	}
	newest, oldest := session.LastEventID(), event.FormatID("demo", session.EventCount-reducer.MaxPlaceBack+1)
	placed := func(through string) (string, []string) {
		after, reasons := inputs(session, event.AssistantMessage{Content: "placed", ThroughEventID: through})
		for i, m := range after.Reduced.Messages {
			if m.Content == "placed" {
				return after.Reduced.Messages[i-1].EventID, reasons
			}
		}
		return "", reasons
	}
	for _, through := range []string{newest, oldest} {
		before, reasons := placed(through)
		require.Empty(t, reasons)
		require.Equal(t, through, before)
	}
	_, reasons = placed(event.FormatID("demo", 2))
	require.Equal(t, []string{
		"AssistantMessageEvent.throughEventId: more than 1000 messages follow event demo:0002 (name a later event, or leave throughEventId out)",
	}, reasons)
	_, reasons = inputs(session, event.ToolResult{ToolCallID: "early", Value: []byte(`2`)})
	require.Equal(t, []string{
		"ToolResultEvent.toolCallId: no tool call of the newest 1000 messages has the id, and providers reject such a result",
	}, reasons)
}
