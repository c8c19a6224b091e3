package chat_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
)

func called(id, parameters string) event.Body {
	return event.ToolCall{ToolCallID: id, ToolName: "pay", Parameters: json.RawMessage(parameters), RequestID: request}
}

func approvalRequested(id string) event.Body {
	return event.ApprovalRequested{ToolCallID: id, RequestID: request, ExpiresAt: time.Date(2026, 1, 3, 15, 4, 0, 0, time.Local)}
}

// asking is a screen with a call that waits for an approval, whose prompt accepts keys.
func asking(t *testing.T) *screen {
	s := askingWith(t, `{"amount":1}`)
	s.untilPrinted("? pay {\"amount\":1} · waits for approval\nuntil 2026-01-03 15:04\n")
	return s
}

func askingWith(t *testing.T, arguments string) *screen {
	s := open(t)
	s.record(event.UserMessage{Content: "Pay"}, started(1),
		event.AssistantMessage{RequestID: request, Content: "Paying.", ThroughEventID: "demo:0001"},
		called("call_1", arguments), approvalRequested("call_1"))
	s.untilViewed("approve pay? y yes · n no")
	return s
}

func (s *screen) decision() event.ApprovalDecided {
	s.t.Helper()
	return s.takeSent()[0].Body.(event.ApprovalDecided)
}

// untilReady presses a key without a meaning until the prompt accepts keys.
func (s *screen) untilReady() {
	s.t.Helper()
	s.until("ready", func() bool {
		s.typed("x")
		return strings.Contains(s.view(), "y approves, n denies")
	})
}

func TestToolCallsAreLines(t *testing.T) {
	s := open(t)
	s.record(event.UserMessage{Content: "Pay"}, started(1), delta(0, "Pay"),
		event.AssistantMessage{RequestID: request, Content: "Paying.", ThroughEventID: "demo:0001"},
		called("call_1", `{"amount":1}`), called("call_2", `{"amount":2}`),
		event.LLMAttemptEnded{RequestID: request, Attempt: 1, Outcome: event.AttemptToolCalls})
	s.untilPrinted("Paying.\n")
	s.untilViewed("▸ pay {\"amount\":1}\n▸ pay {\"amount\":2}\n")
	s.untilViewed("calling tools · Ctrl-C interrupts")
	s.record(event.ToolProgress{RequestID: request, ToolCallID: "call_2", Text: "page 3\x1b[2J"})
	s.untilViewed("▸ pay {\"amount\":2} · page 3\\u001b[2J")
	s.record(event.ToolResult{ToolCallID: "call_1", Value: json.RawMessage(`"ok"`), DurationMs: 1500},
		event.ToolResult{ToolCallID: "call_2", Error: json.RawMessage(`"no funds"`), IsError: true},
		event.LLMRequestStarted{RequestID: request, Attempt: 2, ThroughEventID: "demo:0007"},
		event.TextDelta{RequestID: request, Attempt: 2, Delta: "Half"})
	s.untilPrinted("✓ pay {\"amount\":1} · 1.5s\n✗ pay {\"amount\":2}: no funds\n")
	s.untilViewed("Half")
	s.record(event.AssistantMessage{RequestID: request, Content: "Half is paid.", ThroughEventID: "demo:0007"},
		event.LLMRequestCompleted{RequestID: request})
	s.untilPrinted("Half is paid.\n")
	require.NotContains(t, s.printed(), "restarts")
	require.NotContains(t, s.view(), "▸")
}

func TestAWaitingCallIsShownOnce(t *testing.T) {
	s := asking(t)
	require.NotContains(t, s.view(), "▸")
	require.Equal(t, 1, strings.Count(s.printed()+s.view(), "waits for approval"))
}

func TestAnApprovalIsAnsweredWithKeys(t *testing.T) {
	t.Run("y approves", func(t *testing.T) {
		s := asking(t)
		s.untilReady()
		s.typed("y")
		require.Equal(t, event.ApprovalDecided{ToolCallID: "call_1", Decision: event.Approve, DecidedBy: "cleo"}, s.decision())
		s.untilViewed("sending the decision")
		s.record(event.ApprovalDecided{ToolCallID: "call_1", Decision: event.Approve, DecidedBy: "ann"})
		s.untilPrinted("approved pay by ann\n")
		require.NotContains(t, s.view(), "approve pay")
	})
	t.Run("n denies with a reason", func(t *testing.T) {
		s := asking(t)
		s.untilReady()
		s.typed("n")
		s.untilViewed("deny pay: reason, or Enter for none")
		s.enter("Too much.")
		require.Equal(t, event.ApprovalDecided{ToolCallID: "call_1", Decision: event.Deny, DecidedBy: "cleo", Reason: "Too much."}, s.decision())
	})
	t.Run("e edits the arguments", func(t *testing.T) {
		s := asking(t)
		s.untilReady()
		s.typed("e")
		s.untilViewed("› {\"amount\":1}")
		s.press(tea.KeyBackspace, 0)
		s.press(tea.KeyEnter, 0)
		require.Contains(t, s.view(), "the arguments are not a JSON object")
		s.enter(`,"to":"x"}`)
		require.Equal(t, event.ApprovalDecided{ToolCallID: "call_1", Decision: event.Approve, DecidedBy: "cleo", Parameters: json.RawMessage(`{"amount":1,"to":"x"}`)}, s.decision())
	})
	t.Run("e shows hidden characters, and keeps them", func(t *testing.T) {
		const exact, shown = "{\"to\":\"bank\u202eknab\u202c\u200d\"}", `{"to":"bank\u202eknab\u202c\u200d"}`
		s := askingWith(t, exact)
		s.resize(80, 30)
		require.Contains(t, strings.ReplaceAll(s.printed(), "\n", ""), shown)
		s.untilReady()
		s.typed("e")
		s.untilViewed("› " + shown)
		s.press(tea.KeyEnter, 0)
		require.Equal(t, event.ApprovalDecided{ToolCallID: "call_1", Decision: event.Approve, DecidedBy: "cleo"}, s.decision())

		s = askingWith(t, exact)
		s.resize(80, 30)
		s.untilReady()
		s.typed("e")
		s.press(tea.KeyBackspace, 0)
		s.enter(`,"amount":2}`)
		require.JSONEq(t, strings.TrimSuffix(exact, "}")+`,"amount":2}`, string(s.decision().Parameters))
	})
	t.Run("Esc postpones the decision, and messages can be sent before it", func(t *testing.T) {
		s := asking(t)
		s.untilReady()
		s.press(tea.KeyEscape, 0)
		require.Contains(t, s.view(), "/answer asks again")
		s.enter("yes, but how?")
		require.Equal(t, event.UserMessage{Content: "yes, but how?"}, s.takeSent()[0].Body)
		s.enter("/answer")
		s.untilViewed("approve pay? y yes · n no")
	})
	t.Run("other keys decide nothing", func(t *testing.T) {
		s := asking(t)
		s.untilReady()
		require.Empty(t, s.fake.sent)
	})
	t.Run("a line that is being typed is finished first", func(t *testing.T) {
		s := open(t)
		s.typed("yes")
		s.record(event.UserMessage{Content: "Pay"}, started(1), called("call_1", `{}`), approvalRequested("call_1"))
		s.untilViewed("waiting for your approval")
		s.press(tea.KeyEnter, 0)
		require.Equal(t, event.UserMessage{Content: "yes"}, s.takeSent()[0].Body)
		s.untilViewed("approve pay? y yes · n no")
	})
	t.Run("a decision that is not sent is asked for again", func(t *testing.T) {
		s := asking(t)
		s.fake.sendErr.set(client.ErrUnreachable)
		s.untilReady()
		s.typed("y")
		s.decision()
		s.untilPrinted("✗ decision not sent: temporal is\nunreachable\n")
		s.untilViewed("approve pay? y yes · n no")
	})
	t.Run("another client's decision ends the prompt", func(t *testing.T) {
		s := asking(t)
		s.record(event.ApprovalDecided{Decision: event.Deny, DecidedBy: "bob", Reason: "No."})
		s.untilPrinted("denied pay by bob: No.\n")
		require.NotContains(t, s.view(), "approve pay?")
	})
}

func TestJoiningAContextThatWaitsForAnApproval(t *testing.T) {
	s := open(t, event.UserMessage{Content: "Pay"}, started(1),
		event.AssistantMessage{RequestID: request, ThroughEventID: "demo:0001"}, called("call_1", `{"amount":1}`),
		event.LLMAttemptEnded{RequestID: request, Attempt: 1, Outcome: event.AttemptToolCalls}, approvalRequested("call_1"))
	s.untilViewed("approve pay? y yes · n no")
	s.untilPrinted("? pay {\"amount\":1} · waits for approval")
}
