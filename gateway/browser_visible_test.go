package gateway_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/terminal"
)

func TestThePageAndTheTerminalShowTheSameHiddenCharacters(t *testing.T) {
	tab := show(t, newLog(event.UserMessage{Content: "Hi"}))
	data, err := os.ReadFile("../internal/terminal/testdata/visible.json")
	require.NoError(t, err)
	var table []struct{ Text, Want string }
	require.NoError(t, json.Unmarshal(data, &table))
	var got []string
	tab.Eval(`import("./visible.js").then(({ visible }) => `+string(data)+`.map(({ text }) => visible(text)))`, &got)
	for i, test := range table {
		require.Equal(t, test.Want, got[i], "%q", test.Text)
	}
	var hidden []bool
	tab.Eval(`import("./visible.js").then(({ visible }) => Array.from({ length: 0x110000 }, (_, i) => String.fromCodePoint(i)).map((c) => visible(c) !== c))`, &hidden)
	for r := range rune(unicode.MaxRune + 1) {
		if !unicode.In(r, unicode.Cs, unicode.Cn) && hidden[r] != (terminal.Value(string(r)) != string(r)) {
			t.Errorf("%U: hidden on the page: %t", r, hidden[r])
		}
	}
}

// exactCall has arguments that look like others.
const (
	exactCall = "{\"amount\":1,\"to\":\"bank\u202eknab\u202c\u200d\"}"
	shownCall = "{\n  \"amount\": 1,\n  \"to\": \"bank\\u202eknab\\u202c\\u200d\"\n}"
)

func deceiving() *log {
	bodies := waiting()
	bodies[3] = toolCall("call_1", "pay\u200b", exactCall)
	return newLog(bodies...)
}

func TestAnApprovalShowsHiddenCharactersAndKeepsThem(t *testing.T) {
	l := deceiving()
	tab := show(t, l)
	tab.Await(`document.querySelector("#waiting p").innerText === "pay\\u200b waits for your approval"`)
	require.Contains(t, tab.Text(".waiting .card")[0], shownCall)
	require.Contains(t, tab.Text(".waiting .verb")[0], `pay\u200b`)
	tab.Type(`[data-key="edit"]`, "\r")
	tab.Await(`document.activeElement.dataset.key === "text"`)
	var text string
	tab.Eval(`document.activeElement.value`, &text)
	require.Equal(t, shownCall, text)
	tab.PressWith(kb.ModifierCtrl, kb.Enter)
	tab.Await(decided)
	require.Equal(t, event.ApprovalDecided{ToolCallID: "call_1", Decision: event.Approve, DecidedBy: "page"}, l.decision(t), "nothing was edited")

	l = deceiving()
	tab = show(t, l)
	tab.Type(`[data-key="edit"]`, "\r")
	tab.Await(`document.activeElement.dataset.key === "text"`)
	tab.Do(`document.activeElement.value = document.activeElement.value.replace("1", "2"); document.activeElement.dispatchEvent(new Event("input"))`)
	tab.PressWith(kb.ModifierCtrl, kb.Enter)
	tab.Await(decided)
	require.JSONEq(t, strings.Replace(exactCall, "1", "2", 1), string(l.decision(t).Parameters))
}

func TestAQuestionShowsHiddenCharactersAndKeepsThem(t *testing.T) {
	l := newLog(asking(question, "{\"question\":\"Who\u2067?\",\"options\":[\"bank\u202eknab\u202c \"]}")...)
	tab := show(t, l)
	require.Equal(t, []string{`Who\u2067?`}, tab.Text(".asked"))
	require.Equal(t, []string{`bank\u202eknab\u202c`}, tab.Text(`[data-key="choice0"]`))
	tab.Type(`[data-key="choice0"]`, "\r")
	tab.Await(`document.activeElement.matches("textarea")`)
	var text string
	tab.Eval(`document.activeElement.value`, &text)
	require.Equal(t, `bank\u202eknab\u202c `, text)
	tab.Press("\r")
	tab.Await(answered)
	require.JSONEq(t, "\"bank\u202eknab\u202c \"", string(l.results()[0].Value))
}

func TestNamesShowHiddenCharactersAndMessagesKeepThem(t *testing.T) {
	const message, name = "Hi \u200e\u202eereht\u202c 👩‍💻", "a\u202eb"
	l := newLog(
		event.FileAttachment{Source: event.Source{Type: event.SourceURL, URL: "https://example.com/x"}, MediaType: "text/html", FileName: name},
		event.UserMessage{Content: message},
		call("t1", "Read", map[string]any{"file_path": name}),
		toolCall("call_1", "pay", `{}`),
		event.ApprovalDecided{ToolCallID: "call_1", Decision: event.Deny, DecidedBy: name},
		event.LLMRequestStarted{RequestID: toolRequest, ProviderID: "p", Model: name, Attempt: 1},
		event.LLMRequestCompleted{RequestID: toolRequest, Usage: event.Usage{InputTokens: 1}, DurationMs: int64(time.Second / time.Millisecond)},
	)
	tab := show(t, l)
	tab.Await(`document.querySelector(".token-usage-info")`)
	require.Equal(t, []string{message}, tab.Text(".user-message .plain"))
	var direction string
	tab.Eval(`getComputedStyle(document.querySelector(".user-message .plain")).unicodeBidi`, &direction)
	require.Equal(t, "isolate", direction)
	tab.Do(`document.querySelectorAll("details").forEach((d) => { d.open = true })`)
	for _, selector := range []string{".attachments a", ".target", ".token-usage-info"} {
		require.Contains(t, strings.Join(tab.Text(selector), " "), `a\u202eb`, selector)
	}
}
