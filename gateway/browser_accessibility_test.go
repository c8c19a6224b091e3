package gateway_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/browsertest"
)

func TestThePageIsAccessible(t *testing.T) {
	axe, err := os.ReadFile("../bin/axe/node_modules/axe-core/axe.min.js")
	if err != nil {
		t.Skip("accessibility checks, run make bin/axe: ", err)
	}
	s := &shelf{logs: map[string]*log{}}
	s.add("chat-1", time.Hour, append(agentConversation(), waiting()...)...)
	s.add("chat-2", time.Minute, event.UserMessage{Content: "Is the parser slow?"}, event.LLMRequestFailed{RequestID: "chat-2:r0001", Error: "unavailable", Retryable: true},
		event.InputRejected{Reason: "busy", Input: `{"_tag":"UserMessageEvent","content":"And now?"}`})
	s.add("chat-3", time.Second, codeAndFormulas()...)
	s.logs["chat-3"].record(event.SetDetails{Labels: map[string]string{"team": "ops"}})
	tab := s.show(t, "#chat-1")
	tab.Do(string(axe))
	looks := map[string]browsertest.Look{
		"light": {Width: 1200, Height: 900}, "dark": {Width: 1200, Height: 900, Dark: true}, "phone": {Width: 390, Height: 844},
	}
	var violations []string
	for _, state := range []struct{ name, enter, shown string }{
		{"a conversation with a call that waits", ``, `document.querySelector(".call-form") && document.querySelector("#list a")`},
		{"the menu", `document.querySelector("#menu").showPopover()`, `true`},
		{"an error", `document.querySelector("#menu").hidePopover(); location.hash = "#chat-2"`, `document.querySelector("[data-key=retry]") && document.querySelector("[data-key=resend]")`},
		{"code and formulas", `location.hash = "#chat-3"`, `document.querySelector("[class^=token]") && document.querySelector("math") && !label.hidden`},
		{"a file to send", `
			const files = new DataTransfer();
			files.items.add(new File(["x"], "a.pdf", { type: "application/pdf" }));
			dispatchEvent(new DragEvent("drop", { dataTransfer: files, cancelable: true }))`, `document.querySelector("#files .thumbnail")`},
		{"the settings", `document.querySelector("#usage-and-settings").click()`, `document.querySelector("#settings fieldset")`},
		{"the details", `settings.close(); document.querySelector("#rename").click()`, `details.open`},
		{"the keys", `details.close(); keys.showModal()`, `keys.open`},
		{"a search", `keys.close(); location.hash = ""; search.value = "parser"; search.dispatchEvent(new Event("input"))`, `document.querySelector("#hits a")`},
		{"the empty page", `search.value = ""; search.dispatchEvent(new Event("input"))`, `document.querySelector("#list a")`},
	} {
		tab.Do(state.enter)
		tab.Await(state.shown)
		for name, look := range looks {
			tab.As(look)
			var found []string
			tab.Eval(`axe.run({ resultTypes: ["violations"] }).then(({ violations }) =>
				violations.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => id + ": " + html + failureSummary)))`, &found)
			for _, violation := range found {
				violations = append(violations, state.name+", "+name+": "+violation)
			}
		}
	}
	require.Empty(t, violations)
}
