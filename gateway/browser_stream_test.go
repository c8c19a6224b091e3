package gateway_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
)

func TestStreamingLeavesOtherEntriesUnchanged(t *testing.T) {
	l := newLog(event.UserMessage{Content: "Count"})
	for i := range 20 {
		l.record(event.Note{Kind: event.NoteWarning, Content: fmt.Sprintf("warning %d", i)})
	}
	tab := show(t, l)
	tab.Await(`document.querySelectorAll(".entry").length === 21`)
	tab.Do(`document.querySelectorAll(".entry").forEach((e) => { e.isOld = true })`)
	for i := range 200 {
		piece := delta(i, fmt.Sprintf("%d ", i))
		piece.ThroughEventID = eventID(21)
		l.record(piece)
	}
	tab.Await(`document.querySelector(".assistant-message.streaming")?.innerText.trim().endsWith(" 198 199")`)
	var old int
	tab.Eval(`[...document.querySelectorAll(".entry")].filter((e) => e.isOld).length`, &old)
	require.Equal(t, 21, old)
}

func TestReasoningIsFoldedBeforeItsAnswer(t *testing.T) {
	l := newLog(answering("Why is the sky blue?")...)
	tab := show(t, l)
	const reasoning = "They ask about *Rayleigh* scattering.\n\nShort wavelengths scatter more."
	words := strings.SplitAfter(reasoning, " ")
	for i, word := range words {
		l.record(event.ReasoningDelta(delta(i, word)))
	}
	tab.Await(`document.querySelector(".thinking.streaming")`)
	require.Equal(t, []string{"Thinking…"}, tab.Text(".thinking"))
	tab.Click(".thinking summary")
	tab.Await(`document.querySelector(".thinking").innerText.endsWith("scatter more.")`)
	l.record(delta(len(words), "Because of "))
	tab.Await(`document.querySelector(".assistant-message.streaming")`)
	l.record(event.AssistantMessage{
		RequestID: "demo:r0001", Content: "Because of scattering.", Reasoning: reasoning, ThroughEventID: eventID(1),
	})
	tab.Await(`!document.querySelector(".streaming") && document.querySelector(".assistant-message")`)
	var order []string
	tab.Eval(`[...document.querySelectorAll(".entry")].map((e) => e.className)`, &order)
	require.Equal(t, []string{"entry user-message", "entry thinking", "entry assistant-message"}, order)
	require.Contains(t, tab.Text(".thinking")[0], "Rayleigh", "stays open")
	var announced string
	tab.Eval(`document.querySelector("#announcer").textContent.trim()`, &announced)
	require.Equal(t, "Because of scattering.", announced, "screen readers read the answer only")

	l.record(
		event.LLMRequestCompleted{RequestID: "demo:r0001"},
		event.UserMessage{Content: "And now?"},
		event.LLMRequestStarted{RequestID: "demo:r0002", Attempt: 1, ThroughEventID: eventID(5)},
		event.ReasoningDelta{RequestID: "demo:r0002", Attempt: 1, Delta: "Hm", ThroughEventID: eventID(5)},
		event.AssistantMessage{RequestID: "demo:r0002", Reasoning: "Hm", ThroughEventID: eventID(5), Partial: true},
	)
	tab.Await(`document.querySelector(".thinking .partial")`)
	require.Equal(t, "Thought\n\ninterrupted", tab.Text(".thinking")[1])
}

func TestAStreamedPageEqualsALoadedPage(t *testing.T) {
	l := newLog()
	tab := show(t, l)
	bodies := append(agentConversation(),
		event.UserMessage{Content: "And now count to 100"},
		event.LLMRequestStarted{RequestID: "demo:r0002", ProviderID: "openai", Model: "gpt-4o-mini", Attempt: 1, ThroughEventID: eventID(15)},
	)
	for i, text := range []string{"one, ", "two, ", "three\n\n", "```\ncode\n"} {
		bodies = append(bodies, event.TextDelta{RequestID: "demo:r0002", Attempt: 1, Index: i, Delta: text, ThroughEventID: eventID(15)})
	}
	bodies = append(bodies,
		event.UserMessage{Content: "Never mind"},
		event.AssistantMessage{Content: "one, two, three\n\n```\ncode\n```", RequestID: "demo:r0002", ThroughEventID: eventID(15), Partial: true},
		event.LLMRequestInterrupted{RequestID: "demo:r0002", Reason: event.ReasonNewUserInput, PartialResponse: "one, two, three"},
	)
	for i, body := range bodies {
		l.record(body)
		if i%3 == 0 {
			tab.Do(`await new Promise(requestAnimationFrame)`)
		}
	}
	const complete = `document.querySelector(".partial") && document.querySelector("#entries").innerText.includes("Interrupted")`
	tab.Await(complete)
	followed := tab.Text(".entry")
	tab.Reload()
	tab.Await(complete)
	require.Equal(t, tab.Text(".entry"), followed)
}
