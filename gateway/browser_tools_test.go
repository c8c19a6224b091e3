package gateway_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/browsertest"
)

const toolRequest = "demo:r0001"

func toolStarted(attempt, through int) event.Body {
	return event.LLMRequestStarted{RequestID: toolRequest, ProviderID: "openai", Model: "gpt-4o", Attempt: attempt, ThroughEventID: eventID(through)}
}

func toolCall(id, tool, parameters string) event.Body {
	return event.ToolCall{ToolCallID: id, ToolName: tool, Parameters: json.RawMessage(parameters), RequestID: toolRequest}
}

func stepEnded(attempt int, u event.Usage) event.Body {
	return event.LLMAttemptEnded{RequestID: toolRequest, Attempt: attempt, Outcome: event.AttemptToolCalls, DurationMs: 700, Usage: u}
}

// waiting is a turn whose call waits for an approval.
func waiting() []event.Body {
	return []event.Body{
		event.UserMessage{Content: "Pay the invoice"},
		toolStarted(1, 1),
		event.AssistantMessage{Content: "I'll pay it.", RequestID: toolRequest, ThroughEventID: eventID(1)},
		toolCall("call_1", "pay_invoice", `{"amount":12.5,"to":"<b>ACME</b>"}`),
		stepEnded(1, event.Usage{InputTokens: 100, OutputTokens: 10}),
		event.ApprovalRequested{ToolCallID: "call_1", RequestID: toolRequest, ExpiresAt: time.Date(2126, 1, 2, 15, 4, 5, 0, time.UTC)},
	}
}

func (l *log) decision(t *testing.T) event.ApprovalDecided {
	t.Helper()
	events, _, _ := l.Snapshot()
	var decisions []event.ApprovalDecided
	for _, e := range events {
		if body, ok := e.Body.(event.ApprovalDecided); ok {
			decisions = append(decisions, body)
		}
	}
	require.Len(t, decisions, 1)
	return decisions[0]
}

const decided = `document.querySelector(".tool-use") && !document.querySelector(".call-form")`

func TestAToolCardFillsWhileTheToolRuns(t *testing.T) {
	l := newLog(event.UserMessage{Content: "Weather?"}, toolStarted(1, 1))
	tab := show(t, l)
	l.record(
		event.AssistantMessage{Content: "Let me look.", RequestID: toolRequest, ThroughEventID: eventID(1)},
		toolCall("call_1", "weather", `{"city":"Oslo"}`), stepEnded(1, event.Usage{InputTokens: 1000, OutputTokens: 10}),
	)
	tab.Await(`document.querySelector(".tool-use")`)
	require.Equal(t, []string{"weather  running"}, cards(tab))
	require.NotContains(t, strings.Join(tab.Text(".tool-use"), ""), "Oslo", "arguments must be collapsed")
	require.Equal(t, []string{"answering"}, tab.Text("#status"))
	tab.Click(".card summary")
	tab.Await(`document.querySelector("details.card[open]").innerText.includes("Oslo")`)
	l.record(event.ToolProgress{RequestID: toolRequest, ToolCallID: "call_1", Text: "asking the station"})
	tab.Await(`document.querySelector("details.card[open] .progress")?.innerText === "asking the station" && document.activeElement.matches("summary")`)
	l.record(event.ToolResult{ToolCallID: "call_1", Value: toJSON("4 °C"), DurationMs: 1500})
	tab.Await(`document.querySelector("details.card[open] .status.success") && !document.querySelector(".progress")`)
	require.Equal(t, []string{"weather  1.5 s done"}, cards(tab))
	require.Contains(t, tab.Text(".card")[0], "4 °C")
	l.record(
		toolStarted(2, 5),
		event.TextDelta{RequestID: toolRequest, Attempt: 2, Delta: "It is", ThroughEventID: eventID(5)},
	)
	tab.Await(`document.querySelector(".streaming")?.innerText === "It is"`)
	l.record(
		event.AssistantMessage{Content: "It is 4 °C.", RequestID: toolRequest, ThroughEventID: eventID(5)},
		event.LLMRequestCompleted{RequestID: toolRequest, DurationMs: 300, Usage: event.Usage{InputTokens: 1100, OutputTokens: 20}, FinishReason: "stop"},
	)
	tab.Await(`document.querySelector(".token-usage-info")`)
	require.Equal(t, []string{"Let me look.", "It is 4 °C."}, tab.Text(".assistant-message .prose"))
	require.Equal(t, []string{"gpt-4o · 2,100 tokens in · 30 out · 1.0 s · 2 steps"}, tab.Text(".token-usage-info"))
	tab.Await(`document.querySelector("#status").innerText === "idle"`)
}

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
func TestACallIsApprovedByKeyboard(t *testing.T) {
	bodies := waiting()
	bodies[2] = event.AssistantMessage{
		Content: "I'll pay it.", Reasoning: "The invoice is due.", RequestID: toolRequest, ThroughEventID: eventID(1),
	}
	l := newLog(bodies...)
	tab := show(t, l)
	tab.Await(`document.querySelector("#waiting p").innerText === "pay_invoice waits for your approval"`)
	require.Equal(t, []string{"waiting for approval"}, tab.Text("#status"))
	tab.Await(`document.querySelector("#list a.waiting[href='#demo'] .details")?.textContent.startsWith("waiting")`)
	require.Contains(t, tab.Text(".waiting .card")[0], `"to": "<b>ACME</b>"`, "the arguments must be visible")
	var role string
	tab.Eval(`document.querySelector("#waiting p").role`, &role)
	require.Equal(t, "status", role)

	tab.Await(`document.activeElement.id === "text"`)
	tabTo(t, tab, kb.ModifierShift, ".thinking summary")
	require.Equal(t, "Thought", tab.Text(".thinking")[0])
	tab.Press(kb.Enter)
	tab.Await(`document.querySelector(".thinking").innerText.endsWith("The invoice is due.")`)
	tab.Press(" ")
	tab.Await(`document.querySelector(".thinking").innerText.trim() === "Thought"`)

	// From the review button to the buttons of the form in their order.
	tabTo(t, tab, kb.ModifierNone, "#waiting button")
	tab.Await(`document.activeElement.innerText === "Review"`)
	tab.Press(kb.Enter)
	for _, name := range []string{"Approve", "Deny…", "Edit…"} {
		tab.Await(fmt.Sprintf(`document.activeElement.innerText === %q`, name))
		var outline string
		tab.Eval(`getComputedStyle(document.activeElement).outlineStyle`, &outline)
		require.Equal(t, "solid", outline, "the focus must be visible on %s", name)
		tab.Press(kb.Tab)
	}
	for range 3 {
		tab.PressWith(kb.ModifierShift, kb.Tab)
	}
	tab.Await(`document.activeElement.innerText === "Approve"`)
	tab.Press(kb.Enter)
	tab.Await(decided)
	require.Equal(t, event.ApprovalDecided{ToolCallID: "call_1", Decision: event.Approve, DecidedBy: "page"}, l.decision(t))
	tab.Await(`document.querySelector("#waiting").hidden && document.activeElement.matches(".tool-use summary")`)
	require.Equal(t, []string{"pay_invoice  running"}, cards(tab))
	tab.Press(kb.Enter)
	tab.Await(`document.querySelector(".decision")?.innerText === "Approved by page"`)
	tab.Await(`!document.querySelector("#list a.waiting")`)
	tabTo(t, tab, kb.ModifierNone, "#attach")
}

func TestACallIsDeniedWithAReason(t *testing.T) {
	l := newLog(waiting()...)
	tab := show(t, l)
	tab.Type(`[data-key="deny"]`, " ")
	tab.Await(`document.activeElement.dataset.key === "reason"`)
	tab.Press(kb.Escape)
	tab.Await(`document.activeElement.dataset.key === "deny" && document.activeElement.innerText === "Deny…"`)
	require.Empty(t, l.calls, "Escape in the form must not stop the answer")
	tab.Press(kb.Enter)
	tab.Await(`document.activeElement.dataset.key === "reason"`)
	tab.Press("Too much\r")
	tab.Await(decided)
	require.Equal(t, event.ApprovalDecided{ToolCallID: "call_1", Decision: event.Deny, Reason: "Too much", DecidedBy: "page"}, l.decision(t))
	l.record(event.ToolResult{ToolCallID: "call_1", Error: toJSON("denied: Too much"), IsError: true})
	tab.Await(`document.querySelector(".status.denied")`)
	tab.Click(".card summary")
	tab.Await(`document.querySelector(".decision")?.innerText === "Denied by page: Too much"`)
}

func TestArgumentsAreEditedBeforeTheCall(t *testing.T) {
	l := newLog(waiting()...)
	tab := show(t, l)
	tab.Type(`[data-key="edit"]`, "\r")
	tab.Await(`document.activeElement.dataset.key === "text" && document.activeElement.value.includes("12.5")`)
	tab.Do(`document.activeElement.value = "{"; document.activeElement.dispatchEvent(new Event("input"))`)
	tab.PressWith(kb.ModifierCtrl, kb.Enter)
	tab.Await(`document.querySelector(".problem").innerText.startsWith("Not valid JSON") && document.activeElement.getAttribute("aria-invalid") === "true"`)
	tab.Do(`document.activeElement.value = '{"amount":1}'; document.activeElement.dispatchEvent(new Event("input")); document.activeElement.setSelectionRange(3, 5)`)
	// An update of the card keeps the text and the focus.
	l.record(event.ApprovalRequested{ToolCallID: "call_1", RequestID: toolRequest, ExpiresAt: time.Date(2126, 1, 3, 15, 4, 5, 0, time.UTC)})
	tab.Await(`document.querySelector(".tool-use") && document.activeElement.value === '{"amount":1}' && document.activeElement.selectionStart === 3`)
	tab.PressWith(kb.ModifierCtrl, kb.Enter)
	tab.Await(decided)
	require.Equal(t, event.ApprovalDecided{ToolCallID: "call_1", Decision: event.Approve, Parameters: json.RawMessage(`{"amount":1}`), DecidedBy: "page"}, l.decision(t))
	tab.Click(".card summary")
	tab.Await(`document.querySelector(".decision")?.innerText === "Approved with edited arguments by page"`)
	require.Contains(t, tab.Text(".card")[0], `"amount": 1`)
}

// JavaScript rounds these numbers, and the names look like others.
func TestArgumentsAreShownAndApprovedExactly(t *testing.T) {
	const exact = "{\"amount\":9007199254740993,\"rate\":0.1000000000000000055511151231257827,\"to\":\"bank\u202eknab\u202c\u200d\",\"weight\":1e999}"
	const shown = "{\n  \"amount\": 9007199254740993,\n  \"rate\": 0.1000000000000000055511151231257827,\n  \"to\": \"bank\\u202eknab\\u202c\\u200d\",\n  \"weight\": 1e999\n}"
	edit := strings.NewReplacer("0993", "0995")
	for name, isEdited := range map[string]bool{"unchanged": false, "edited": true} {
		t.Run(name, func(t *testing.T) {
			bodies := waiting()
			bodies[3] = toolCall("call_1", "pay\u200b", exact)
			l := newLog(bodies...)
			tab := show(t, l)
			tab.Await(`document.querySelector("#waiting p").innerText === "pay\\u200b waits for your approval"`)
			require.Contains(t, tab.Text(".waiting .card")[0], shown)
			require.Contains(t, tab.Text(".waiting .verb")[0], `pay\u200b`)
			tab.Type(`[data-key="edit"]`, "\r")
			tab.Await(`document.activeElement.dataset.key === "text"`)
			var text string
			tab.Eval(`document.activeElement.value`, &text)
			require.Equal(t, shown, text)
			if isEdited {
				tab.Do(`document.activeElement.value = document.activeElement.value.replace("0993", "0995"); document.activeElement.dispatchEvent(new Event("input"))`)
			}
			tab.PressWith(kb.ModifierCtrl, kb.Enter)
			tab.Await(decided)
			got := l.decision(t)
			if !isEdited {
				require.Equal(t, event.ApprovalDecided{ToolCallID: "call_1", Decision: event.Approve, DecidedBy: "page"}, got)
				return
			}
			require.Equal(t, edit.Replace(exact), string(got.Parameters))
			l.record(event.ToolResult{ToolCallID: "call_1", Value: json.RawMessage(`{"receipt":12345678901234567890,"paid":12.5}`)})
			tab.Await(`document.querySelector(".status.success")`)
			for range 2 { // after a patch, and in a document
				tab.Click(".card summary")
				tab.Await(`document.querySelector("details.card[open]")`)
				card := tab.Text(".card")[0]
				require.Contains(t, card, edit.Replace(shown))
				require.Contains(t, card, "{\n  \"receipt\": 12345678901234567890,\n  \"paid\": 12.5\n}")
				tab.Reload()
				tab.Await(`document.querySelector(".status.success")`)
			}
		})
	}
}

func TestADecisionThatIsNotSentCanBeRepeated(t *testing.T) {
	l := newLog(waiting()...)
	fails := true
	var keys []string
	record := func(events []event.Event) (client.Receipt, error) {
		l.mu.Lock()
		isDown := fails
		l.mu.Unlock()
		keys = append(keys, events[0].ClientEventID)
		if isDown {
			return client.Receipt{}, client.ErrUnreachable
		}
		l.record(events[0].Body)
		return client.Receipt{ClientEventIDs: []string{events[0].ClientEventID}}, nil
	}
	l.send = record
	tab := show(t, l)
	tab.Type(`[data-key="approve"]`, "\r")
	tab.Await(`document.querySelector(".problem").innerText === "Not sent: Temporal is unreachable" && document.activeElement.innerText === "Approve"`)
	l.mu.Lock()
	fails = false
	l.mu.Unlock()
	tab.Press(kb.Enter)
	tab.Await(decided)
	require.Len(t, keys, 2)
	require.Equal(t, keys[0], keys[1], "a repeat must have the same key")
}

func TestAnOpenFormSurvivesAReconnection(t *testing.T) {
	l := newLog(waiting()...)
	tab := show(t, l)
	tab.Type(`[data-key="edit"]`, "\r")
	tab.Await(`document.activeElement.dataset.key === "text"`)
	tab.Do(`document.activeElement.value = "half"; document.activeElement.dispatchEvent(new Event("input"))`)
	tab.Do(`location.hash = "#droid.parser"`)
	tab.Await(`document.querySelector("#name").textContent === "droid.parser" && document.querySelector("#waiting").hidden`)
	tab.Do(`location.hash = "#demo"`)
	tab.Await(`document.querySelector('[data-key="text"]')?.value === "half"`)
}
