package chat_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
	"github.com/seed-9ed7edd4/chronicle/internal/formats/chat"
)

// turnWithTools is the log of a turn with an approved call with edited arguments, and a denied one.
func turnWithTools() []event.Event {
	const request = "demo:r0001"
	call := func(id, parameters string) event.Body {
		return event.ToolCall{ToolCallID: id, MessageID: "demo:0004", ToolName: "pay", Parameters: json.RawMessage(parameters), RequestID: request}
	}
	asked := func(id string) event.Body {
		return event.ApprovalRequested{ToolCallID: id, RequestID: request, ExpiresAt: eventtest.Epoch.Add(time.Hour)}
	}
	bodies := []event.Body{
		event.SetTools{Tools: event.ToolList{{Pattern: "pay"}, {Name: "ask", Parameters: event.Object(`{"type":"object"}`)}},
			Approve: event.ApprovalRules{{Tool: "pay", When: event.Object(`{"required":["amount"]}`)}}, MaxSteps: new(3)},
		event.UserMessage{Content: "Pay"},
		event.LLMRequestStarted{RequestID: request, ProviderID: "p", Model: "m", Attempt: 1, ThroughEventID: "demo:0002"},
		event.AssistantMessage{Content: "Paying.", RequestID: request, ThroughEventID: "demo:0002"},
		call("call_1", `{"amount":1}`), call("call_2", `{"amount":2}`),
		event.LLMAttemptEnded{RequestID: request, Attempt: 1, Outcome: event.AttemptToolCalls, DurationMs: 7, Usage: event.Usage{InputTokens: 3}},
		asked("call_1"), asked("call_2"),
		event.ApprovalDecided{ToolCallID: "call_1", Decision: event.Approve, Parameters: json.RawMessage(`{"amount":3}`), DecidedBy: "ann"},
		event.ToolResult{ToolCallID: "call_1", Value: json.RawMessage(`"paid"`), DurationMs: 12},
		event.ApprovalDecided{ToolCallID: "call_2", Decision: event.Deny, Reason: "Too much."},
		event.ToolResult{ToolCallID: "call_2", Error: json.RawMessage(`"denied: Too much."`), IsError: true},
		event.LLMRequestStarted{RequestID: request, ProviderID: "p", Model: "m", Attempt: 2, ThroughEventID: "demo:0013"},
		event.AssistantMessage{Content: "One is paid.", RequestID: request, ThroughEventID: "demo:0013"},
		event.LLMRequestCompleted{RequestID: request, FinishReason: "stop"},
	}
	var events []event.Event
	for i, body := range bodies {
		e := event.New(body)
		e.ID, e.ContextName, e.Timestamp = event.FormatID("demo", i+1), "demo", eventtest.Epoch
		if i > 0 {
			e.ParentID = event.FormatID("demo", i)
		}
		events = append(events, e)
	}
	return events
}

func TestATurnWithToolsSurvivesARoundTrip(t *testing.T) {
	log := turnWithTools()
	text := write(t, chat.JSONL, log...)
	require.Equal(t, text, write(t, chat.JSONL, read(t, text, "demo")...))
	require.Equal(t, log, read(t, text, "demo"))

	copied := read(t, text, "copy")
	require.Equal(t, strings.ReplaceAll(strings.ReplaceAll(text, `"demo:`, `"copy:`), `"contextName":"demo"`, `"contextName":"copy"`), write(t, chat.JSONL, copied...))
	require.Equal(t, "copy:r0001", copied[4].Body.(event.ToolCall).RequestID)
	require.Equal(t, "copy:r0001", copied[7].Body.(event.ApprovalRequested).RequestID)
}

func TestTheMessagesOfATurnWithToolsSurviveARoundTrip(t *testing.T) {
	text := write(t, chat.OpenAI, turnWithTools()...)
	require.Equal(t, conversation(
		`{"role":"user","content":"Pay"}`,
		`{"role":"assistant","content":"Paying.","tool_calls":[`+
			`{"id":"call_1","type":"function","function":{"name":"pay","arguments":"{\"amount\":3}"}},`+
			`{"id":"call_2","type":"function","function":{"name":"pay","arguments":"{\"amount\":2}"}}]}`,
		`{"role":"tool","content":"paid","tool_call_id":"call_1"}`,
		`{"role":"tool","content":"denied: Too much.","tool_call_id":"call_2"}`,
		`{"role":"assistant","content":"One is paid."}`,
	), text)
	require.Equal(t, text, write(t, chat.OpenAI, read(t, text, "copy")...))
}
