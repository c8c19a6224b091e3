package gateway_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway/page/browsertest"
)

// tabTo presses Tab, or Shift+Tab, until an element has the focus, which must be visible.
func tabTo(t *testing.T, tab *browsertest.Tab, held kb.Modifier, element string) {
	t.Helper()
	for range 40 {
		tab.PressWith(held, kb.Tab)
		var is bool
		if tab.Eval(`document.activeElement.matches(`+fmt.Sprintf("%q", element)+`)`, &is); is {
			var outline string
			tab.Eval(`getComputedStyle(document.activeElement).outlineStyle`, &outline)
			require.Equal(t, "solid", outline, "the focus must be visible on %s", element)
			return
		}
	}
	require.Fail(t, "the keyboard does not reach "+element)
}

// The test uses no mouse and sets no focus.
func TestATurnIsFollowedByKeyboardAlone(t *testing.T) {
	bodies := waiting()
	bodies[2] = event.AssistantMessage{
		Content: "I'll pay it.", Reasoning: "The invoice is due.", RequestID: toolRequest, ThroughEventID: eventID(1),
	}
	l := newLog(bodies...)
	tab := show(t, l)
	tab.Await(`document.querySelector(".waiting") && document.activeElement.id === "text"`)

	tabTo(t, tab, kb.ModifierShift, ".thinking summary")
	require.Equal(t, "Thought", tab.Text(".thinking")[0])
	tab.Press(kb.Enter)
	tab.Await(`document.querySelector(".thinking").innerText.endsWith("The invoice is due.")`)
	tab.Press(" ")
	tab.Await(`document.querySelector(".thinking").innerText.trim() === "Thought"`)

	tabTo(t, tab, kb.ModifierNone, `[data-key="edit"]`)
	tab.Press(kb.Enter)
	tab.Await(`document.activeElement.dataset.key === "text" && document.activeElement.value.includes("12.5")`)
	var text string
	tab.Eval(`document.activeElement.value`, &text)
	for range text {
		tab.Press(kb.Backspace)
	}
	tab.Press(`{"amount":1}`)
	tabTo(t, tab, kb.ModifierNone, ".call-form button")
	tab.Press(kb.Enter)
	tab.Await(decided)
	require.Equal(t, event.ApprovalDecided{
		ToolCallID: "call_1", Decision: event.Approve, Parameters: json.RawMessage(`{"amount":1}`), DecidedBy: "page",
	}, l.decision(t))

	tab.Await(`document.activeElement.matches(".tool-use summary")`)
	tab.Press(kb.Enter)
	tab.Await(`document.querySelector("details.card[open]").innerText.includes("Approved with edited arguments by page")`)
	l.record(event.ToolProgress{RequestID: toolRequest, ToolCallID: "call_1", Text: "asking the bank"})
	tab.Await(`document.querySelector("details.card[open] .progress")?.innerText === "asking the bank"`)
	l.record(
		event.ToolResult{ToolCallID: "call_1", Value: toJSON("paid"), DurationMs: 900}, toolStarted(2, 8),
		event.AssistantMessage{Content: "Paid.", RequestID: toolRequest, ThroughEventID: eventID(8)},
		event.LLMRequestCompleted{RequestID: toolRequest, DurationMs: 300, Usage: event.Usage{InputTokens: 120, OutputTokens: 5}, FinishReason: "stop"},
	)
	tab.Await(`document.querySelector(".token-usage-info")`)
	require.Contains(t, tab.Text("details.card[open]")[0], "paid")
	require.Equal(t, []string{"gpt-4o · 220 tokens in · 15 out · 1.0 s · 2 steps"}, tab.Text(".token-usage-info"))
	tab.Await(`document.activeElement.matches(".tool-use summary")`)
	tabTo(t, tab, kb.ModifierNone, "#attach")
}
