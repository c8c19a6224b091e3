package workflows_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/workflows"
)

// recordSize returns the size of the payload of a record.
func recordSize(t require.TestingT, events []event.Event) int {
	raw, err := wire.JSON(wire.Record{Events: events})
	require.NoError(t, err)
	return len(raw.Payload().GetData())
}

const envelopeOfARecord = len(`{"events":[]}`)

func TestSizeIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := eventtest.Log("demo").Draw(t, "log")
		size := 0
		for _, e := range log {
			size += workflows.SizeOf(e)
		}
		if len(log) > 0 {
			require.Equal(t, recordSize(t, log), size-1+envelopeOfARecord)
		}
	})
}

func TestARecordExceedsItsLimitOnlyForOneLargeEvent(t *testing.T) {
	many := func(n int, contextName string, body event.Body) (events []event.Event) {
		for i := range n {
			e := event.New(body)
			e.ID, e.ContextName = event.FormatID(contextName, i+2), contextName
			e.ParentID, e.Timestamp = event.FormatID(contextName, i+1), time.Unix(0, 123456789)
			events = append(events, e)
		}
		return events
	}
	longName := strings.Repeat("x", event.MaxContextName)
	for name, events := range map[string][]event.Event{
		"nothing but quotes":            many(3, "demo", event.UserMessage{Content: strings.Repeat(`"`, 500_000)}),
		"nothing but escape characters": many(8, "demo", event.UserMessage{Content: strings.Repeat("\x1b", 60_000)}),
		"thousands of small events":     many(2500, longName, event.LLMRequestCompleted{RequestID: longName + ":r0001"}),
		"thousands of rejections": many(1000, longName, event.InputRejected{
			Reason: strings.Repeat("r", 1000), Input: strings.Repeat("i", event.MaxRejectedInput),
		}),
		"one event that is larger than a record": many(1, "demo", event.UserMessage{Content: strings.Repeat("x", wire.MaxEventBytes-200)}),
	} {
		t.Run(name, func(t *testing.T) {
			for left := events; len(left) > 0; {
				n := workflows.Fitting(left)
				require.Positive(t, n)
				if n > 1 {
					require.LessOrEqual(t, recordSize(t, left[:n]), wire.MaxRecordBytes-1+envelopeOfARecord)
				}
				if n < len(left) {
					more := recordSize(t, left[:n+1])
					require.Greater(t, more, wire.MaxRecordBytes-1+envelopeOfARecord, "a record takes all that fits")
				}
				left = left[n:]
			}
		})
	}
}

func TestDetailsShowTheEndOfTheConversation(t *testing.T) {
	message := func(role reducer.Role, content string) reducer.Message {
		return reducer.Message{Role: role, Content: content}
	}
	tests := map[string]struct {
		session reducer.Session
		want    string
	}{
		"a new context": {reducer.NewSession("demo"), "**idle** · 0 events · 0 turns"},
		"one of each":   {reducer.Session{EventCount: 1, Turns: 1, Model: "gpt-4o-mini"}, "**idle** · 1 event · 1 turn · gpt-4o-mini"},
		"a conversation": {
			reducer.Session{EventCount: 9, Turns: 1, Request: &reducer.Request{}, Reduced: reducer.ReducedContext{Messages: []reducer.Message{
				{Role: reducer.RoleUser, Content: "Look", Attachments: []reducer.Attachment{{FileName: "dot.png"}}},
				{Role: reducer.RoleAssistant, Content: "I see", Partial: true, ToolCalls: []reducer.ToolCall{{Name: "zoom", Arguments: `{"by":2}`}}},
			}}},
			"**answering** · 9 events · 1 turn\n\n**user**: Look _[dot.png]_\n\n**assistant** _(partial)_: I see `zoom({\"by\":2})`",
		},
		"the bytes of an attachment are not in it": {
			reducer.Session{Reduced: reducer.ReducedContext{Messages: []reducer.Message{
				{Role: reducer.RoleUser, Attachments: []reducer.Attachment{
					{Source: event.Source{Type: event.SourceURL, URL: "data:image/png;base64,Ynl0ZXM="}},
				}},
			}}},
			"**idle** · 0 events · 0 turns\n\n**user**:  _[data:image/png;base64,…]_",
		},
		"long text is cut between characters": {
			reducer.Session{Reduced: reducer.ReducedContext{Messages: []reducer.Message{message(reducer.RoleUser, strings.Repeat("ü", 601))}}},
			"**idle** · 0 events · 0 turns\n\n**user**: " + strings.Repeat("ü", 600) + "…",
		},
		"only the newest messages are shown": {
			reducer.Session{Reduced: reducer.ReducedContext{Messages: append(
				[]reducer.Message{message(reducer.RoleUser, "first"), message(reducer.RoleAssistant, "second")}, tenTimes(message(reducer.RoleUser, "x"))...)}},
			"**idle** · 0 events · 0 turns\n\n_2 earlier messages_" + strings.Repeat("\n\n**user**: x", 10),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.want, workflows.Details(test.session)) })
	}
}

func tenTimes(m reducer.Message) (out []reducer.Message) {
	for range 10 {
		out = append(out, m)
	}
	return out
}
