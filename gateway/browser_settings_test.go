package gateway_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/browsertest"
)

func TestSettingsAreAForm(t *testing.T) {
	l := newLog(event.SystemPrompt{Content: "Be brief."}, event.UserMessage{Content: "Hi"})
	tab := show(t, l)
	open := func() {
		tab.Click("#menu-button")
		tab.Click("#usage-and-settings")
		tab.Await(`document.querySelector("#usage").textContent === "0 turns · 0 tokens in · 0 out" && document.querySelectorAll("#settings fieldset").length === 6`)
	}
	field := func(name string) string { return "#settings [name=" + name + "]" }
	open()
	require.Equal(t, []string{"Be brief."}, each(tab, field("content"), "e.value"))
	tab.Click("#settings [value=save]")
	tab.Await(`!settings.open`)
	l.mu.Lock()
	require.Empty(t, l.sent, "nothing changed")
	l.mu.Unlock()

	open()
	tab.Type(field("providerId"), "openai\r")
	tab.Await(`document.querySelector("#settings [role=alert]").textContent === "Model: empty" && document.activeElement.name === "model"`)
	tab.As(browsertest.Look{Width: 800, Height: 500})
	var places []string
	tab.Eval(`["[role=alert]", "[name=model]", "[value=save]"].map((part) => {
		const { x, y, width, height } = settings.querySelector(part).getBoundingClientRect();
		return document.elementFromPoint(x + width / 2, y + height / 2).closest(part) ? "shown" : part + " is hidden";
	})`, &places)
	require.Equal(t, []string{"shown", "shown", "shown"}, places)
	tab.As(browsertest.Look{Width: 1200, Height: 800})
	tab.Do(`document.querySelector("` + field("providerId") + `").value = ""`)
	tab.Type(field("tools"), `{"name":"a b","description":"Ask"}`)
	tab.Click("#settings [value=save]")
	tab.Await(`document.querySelector("#settings [role=alert]").textContent.startsWith("Tools, one per line: want 1 to 64 of ") && document.activeElement.name === "tools"`)
	tab.Do(`document.querySelector("` + field("tools") + `").value = ""`)
	tab.Type(field("tools"), "fetch\r{\"name\":\"ask\",\"description\":\"Ask\"}")
	tab.Type(field("approve"), "fetch")
	tab.Type(field("tokens"), "5000")
	tab.Type(field("dollars"), "0.5")
	tab.Do(`document.querySelector("` + field("policy") + `").value = "queue"; document.querySelector("` + field("strategy") + `").value = "off"; document.querySelector("` + field("content") + `").value = ""`)
	tab.Type(field("model"), "gpt-4o")
	tab.Type(field("temperature"), "9\r")
	tab.Await(`document.querySelector("` + field("temperature") + `").matches(":invalid")`)
	tab.Do(`document.querySelector("` + field("temperature") + `").value = "0.5"`)
	tab.Type(field("providerId"), "openai\r")
	tab.Await(`!settings.open`)
	l.mu.Lock()
	defer l.mu.Unlock()
	require.Len(t, l.sent, 1)
	require.Equal(t, []event.Body{
		event.SetProviderConfig{ProviderID: "openai", Model: "gpt-4o", Temperature: new(0.5)},
		event.SystemPrompt{},
		event.SetDeliveryPolicy{Policy: event.PolicyQueue, QuietPeriodMs: new(int64(10)), MaxWaitMs: new(int64(500))},
		event.SetTools{Tools: event.ToolList{{Pattern: "fetch"}, {Name: "ask", Description: "Ask"}}, Approve: event.ApprovalRules{{Tool: "fetch"}}},
		event.BudgetSet{Tokens: new(int64(5000)), CostMicros: new(int64(500_000))},
		event.SetCompaction{Strategies: []event.Strategy{}},
	}, bodiesOf(l.sent[0]))
}

func TestAConversationIsExported(t *testing.T) {
	l := newLog(
		event.FileAttachment{Source: event.Source{Type: event.SourceBlob, Data: []byte("Hello")}, MediaType: "text/plain", FileName: "a.txt", Size: 5},
		event.UserMessage{Content: "Read it"}, event.AssistantMessage{Content: "It says **Hello**."},
	)
	tab := show(t, l)
	tab.Do(`
		window.saved = {};
		URL.createObjectURL = (blob) => { window.blob = blob; return "blob:" };
		HTMLAnchorElement.prototype.click = function () { const file = this.download; window.blob.text().then((text) => { saved[file] = text }) }`)
	tab.Click("#menu-button")
	tab.Click("#export-markdown")
	tab.Click("#menu-button")
	tab.Click("#export-events")
	tab.Await(`Object.keys(saved).length === 2`)
	saved := map[string]string{}
	tab.Eval(`saved`, &saved)
	require.Equal(t, "# demo\n\n## You\n\n*a.txt*\n\nRead it\n\n## Answer\n\nIt says **Hello**.\n\n", saved["demo.md"])
	events, _, _ := l.Snapshot()
	lines := ""
	for _, e := range events {
		lines += string(toJSON(e)) + "\n"
	}
	require.Equal(t, lines, saved["demo.jsonl"])
}
