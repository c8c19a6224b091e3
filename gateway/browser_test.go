package gateway_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/page"
	"github.com/seed-9ed7edd4/chronicle/internal/browsertest"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

func show(t testing.TB, l *log) *browsertest.Tab {
	t.Helper()
	return showWith(t, l, inlineLimits)
}

func showWith(t testing.TB, l *log, limits client.Limits) *browsertest.Tab {
	t.Helper()
	browser := browsertest.Start(t)
	tab := browser.Open(pageOf(t, l, limits) + "#" + l.Name())
	events, _, _ := l.Snapshot()
	tab.Await(fmt.Sprintf("%t || document.querySelector('.entry')", len(events) == 0))
	return tab
}

const mib = 1 << 20

// inlineLimits are the limits without a blob store.
var inlineLimits = client.Limits{Attachment: mib, OtherAttachment: mib, Attachments: mib + 10_000}

func pageOf(t testing.TB, l *log, limits client.Limits) string {
	t.Helper()
	list := []client.Summary{
		{ContextName: l.Name(), StartedAt: eventtest.Epoch, Status: wire.StatusIdle, Model: "gpt-4o-mini"},
		{ContextName: "release-notes", StartedAt: eventtest.Epoch.Add(-3 * time.Hour), Status: wire.StatusAnswering, Model: "gpt-4o"},
		{ContextName: "droid.parser", StartedAt: eventtest.Epoch.Add(-time.Hour), Status: wire.StatusIdle, Model: "gpt-4o"},
		{ContextName: "onboarding", StartedAt: eventtest.Epoch.Add(-2 * time.Hour), Status: wire.StatusClosed, Model: "gpt-4o"},
	}
	return serve(t, fakeClient{log: l, list: list, limits: limits}, gateway.Options{Page: page.Handler()}).server.URL + "/"
}

func toJSON(value any) json.RawMessage {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return data
}

func call(id, tool string, parameters map[string]any) event.ToolCall {
	return event.ToolCall{ToolCallID: id, ToolName: tool, Parameters: toJSON(parameters)}
}

func result(id, value string) event.ToolResult {
	return event.ToolResult{ToolCallID: id, Value: toJSON(value)}
}

func agentConversation() []event.Body {
	return []event.Body{
		event.SessionStarted{},
		event.UserMessage{Content: "The parser drops the last line of a log when it has no newline. Can you fix that?"},
		event.Note{Kind: event.NoteThinking, Content: "Reading keeps a last line without newline, so it must be what comes behind it."},
		event.AssistantMessage{Content: "I'll look at how lines are split, and at the test that should have caught it."},
		call("t1", "Read", map[string]any{"file_path": "parser/lines.go"}),
		result("t1", "package parser"),
		call("t2", "Execute", map[string]any{"command": "go test ./parser -run TestLines"}),
		result("t2", "--- FAIL: TestLines/no_newline_at_the_end\n    got 1 line, want 2\nFAIL\n[Process exited with code 1]"),
		call("t3", "Edit", map[string]any{
			"file_path": "parser/lines.go",
			"old_str":   "for {\n\tline, err := r.ReadBytes('\\n')\n\tif err != nil {\n\t\treturn err\n\t}\n\tyield(bytes.TrimSuffix(line, newline))\n}\n",
			"new_str":   "for {\n\tline, err := r.ReadBytes('\\n')\n\tif len(line) > 0 {\n\t\tyield(bytes.TrimSuffix(line, newline))\n\t}\n\tif err != nil {\n\t\treturn err\n\t}\n}\n",
		}),
		result("t3", "ok"),
		call("t4", "Execute", map[string]any{"command": "go test ./parser"}),
		result("t4", "ok  \tparser\t0.412s\n[Process exited with code 0]"),
		event.AssistantMessage{Content: "Fixed. `ReadBytes` returns what it has **together with** `io.EOF`, and the loop returned before it was used.\n\n" +
			"| log | before | now |\n|---|---|---|\n| `a\\nb\\n` | 2 lines | 2 lines |\n| `a\\nb` | 1 line | 2 lines |"},
		event.LLMRequestCompleted{RequestID: "demo:r0001", DurationMs: 8200, Usage: event.Usage{InputTokens: 4210, OutputTokens: 386}, FinishReason: "stop"},
	}
}

func TestToolsAreCardsWithDiffsAndExitCodes(t *testing.T) {
	tab := show(t, newLog(agentConversation()...))
	require.Equal(t, []string{
		"Read parser/lines.go done", "Run go test ./parser -run TestLines exit 1 failed",
		"Edit parser/lines.go done", "Run go test ./parser exit 0 done",
	}, cards(tab))
	var added, deleted string
	tab.Eval(`[...document.querySelectorAll(".diff .add")].map((e) => e.textContent).join("")`, &added)
	tab.Eval(`[...document.querySelectorAll(".diff .del")].map((e) => e.textContent).join("")`, &deleted)
	require.Contains(t, added, "+\tif len(line) > 0 {\n")
	require.Contains(t, deleted, "-\tyield(bytes.TrimSuffix(line, newline))\n")

	require.NotContains(t, strings.Join(tab.Text(".tool-use"), ""), "want 2", "output must be collapsed")
	const card = ".tool-use:has(.exit.bad)"
	place := func() (top float64) {
		tab.Do(`await new Promise(requestAnimationFrame); await new Promise(requestAnimationFrame)`)
		tab.Eval(`document.querySelector("`+card+` summary").getBoundingClientRect().top`, &top)
		return top
	}
	before := place()
	tab.Click(card + " summary")
	tab.Await(`document.querySelector("` + card + `").innerText.includes("got 1 line, want 2")`)
	require.InDelta(t, before, place(), 1)
	tab.Await(`!document.querySelector("#newest").hidden`)
	tab.Click("#newest")
	tab.Await(`document.querySelector("#newest").hidden`)
}

func TestToolCallsAreHiddenAfterAReload(t *testing.T) {
	const shown = `[...document.querySelectorAll(".tool-use")].filter((e) => e.checkVisibility()).length`
	tab := show(t, newLog(append(agentConversation(), waiting()...)...))
	tab.Await(`document.querySelector(".call-form") && ` + shown + ` === 5`)
	tab.Click("#menu-button")
	tab.Click("#tools")
	tab.Await(shown + ` === 1`) // the call that waits
	tab.Reload()
	tab.Await(`document.querySelector(".call-form") && ` + shown + ` === 1`)
	tab.Click("#menu-button")
	tab.Await(`document.querySelector("#tools").textContent === "Show tool calls"`)
	tab.Click("#tools")
	tab.Await(shown + ` === 5`)
}

// cards are the lines of the cards as a screen reader reads them.
func cards(tab *browsertest.Tab) []string {
	var lines []string
	tab.Eval(`[...document.querySelectorAll(".card .line")].map((line) =>
		[...line.children].map((e) => e.getAttribute("aria-label") ?? e.textContent).join(" "))`, &lines)
	return lines
}

func TestMetadataAndMalformedLinesAreInDetails(t *testing.T) {
	const line = `{"type":"weather","text":"<b>rain</b>"}`
	warning := event.New(event.Note{Kind: event.NoteWarning, Content: `line 3: unknown droid line type "weather"`})
	warning.Extra = map[string]json.RawMessage{"line": toJSON(line)}
	read := call("t1", "Read", map[string]any{"file_path": "a.txt"})
	read.MessageID = "m-1"
	answer := event.New(result("t1", "text"))
	answer.Extra = map[string]json.RawMessage{"sourceTimestamp": toJSON("2026-01-02T15:04:06.5Z")}
	l := newLog(read)
	l.Record(answer, warning)
	l.record(
		call("t2", "TodoWrite", map[string]any{"todos": []any{map[string]any{"content": "Test", "status": "pending", "priority": "high"}}}),
		call("t3", "ExitSpecMode", map[string]any{"plan": "1. Do it", "reason": "The spec is complete."}),
	)
	tab := show(t, l)
	tab.Await(`document.querySelector(".system-message.warning details")`)
	require.NotContains(t, strings.Join(tab.Text("#entries"), ""), line)
	tab.Do(`document.querySelectorAll("details").forEach((d) => { d.open = true })`)
	require.Equal(t, []string{line}, tab.Text(".system-message.warning .output"))
	require.Equal(t, []string{"{\n  \"messageId\": \"m-1\"\n}"}, tab.Text(".card .metadata .output"))
	require.Equal(t, []string{"high"}, tab.Text(".todos .priority"))
	require.Equal(t, []string{"Read a.txt 1.5 s done", "To do 0 of 1 running", "Plan The spec is complete. running"}, cards(tab))
	var title string
	tab.Eval(`document.querySelector(".status.success").title`, &title)
	require.Equal(t, "done · 1.5 s", title)
}

func TestForeignContentStaysText(t *testing.T) {
	const script = `<script>window.pwned = true</script><img src=x onerror="window.pwned = true">`
	l := newLog(
		event.UserMessage{Content: script},
		event.AssistantMessage{Content: script + "\n\ninline " + script + "\n\n[link](javascript:pwned) [data](data:text/html,x) [mail](mailto:a@example.com) " +
			"[web](https://example.com/?a=1&b=2) <javascript:pwned> ![image](https://example.com/a.png) ![](javascript:pwned) [ref]\n\n[ref]: javascript:pwned\n\n" +
			"<a href=\"javascript:pwned\">anchor</a><svg onload=pwned></svg>\n\n```\n" + script + "\n```"},
		event.Note{Kind: event.NoteThinking, Content: script},
		call("t1", "Execute", map[string]any{"command": script}),
		result("t1", script),
		call("t2", script, map[string]any{script: script}),
		event.FileAttachment{Source: event.Source{Type: event.SourceURL, URL: "https://example.com/x"}, MediaType: "text/html", FileName: script},
		event.UserMessage{Content: "[plain](javascript:pwned)"},
	)
	tab := show(t, l)
	tab.Do(`document.querySelectorAll("details").forEach((d) => { d.open = true })`)
	var found []string
	tab.Eval(`[...document.querySelectorAll("#entries :is(script, img, svg, iframe, style, object, form)")].map((e) => e.outerHTML)`, &found)
	require.Empty(t, found)
	tab.Eval(`[...document.querySelectorAll("#entries a")].map((a) => [a.getAttribute("href"), a.rel, a.target].join(" "))`, &found)
	require.Equal(t, []string{
		"mailto:a@example.com noopener noreferrer _blank",
		"https://example.com/?a=1&b=2 noopener noreferrer _blank",
		"https://example.com/a.png noopener noreferrer _blank",
		"https://example.com/x noopener noreferrer _blank",
	}, found)
	tab.Eval(`[...document.querySelectorAll("#entries *")].flatMap((e) => [...e.attributes]).map((a) => a.name).filter((name) => name.startsWith("on") || name === "style" || name === "src")`, &found)
	require.Empty(t, found)
	seen := strings.Join(tab.Text("#entries"), "")
	require.GreaterOrEqual(t, strings.Count(seen, "<script>window.pwned = true</script>"), 8)
	for _, text := range []string{"[link](javascript:pwned)", "[data](data:text/html,x)", "![](javascript:pwned)", `<a href="javascript:pwned">anchor</a>`, "[plain](javascript:pwned)"} {
		require.Contains(t, seen, text)
	}
	var pwned bool
	tab.Eval(`window.pwned ?? false`, &pwned)
	require.False(t, pwned)
}

func TestBidirectionalTextIsIsolated(t *testing.T) {
	const turned = "x\u202efdp"
	tab := show(t, newLog(
		event.FileAttachment{Source: event.Source{Type: event.SourceBlob, Data: []byte("x")}, MediaType: "text/after", FileName: turned},
		event.FileAttachment{Source: event.Source{Type: event.SourceURL, URL: "https://example.com"}, MediaType: "text/after", FileName: turned},
		event.UserMessage{Content: turned},
		event.LLMRequestStarted{RequestID: "demo:r0001", ProviderID: "openai", Model: turned, Attempt: 1, ThroughEventID: eventID(3)},
		event.AssistantMessage{Content: "after", RequestID: "demo:r0001", ThroughEventID: eventID(3)},
		event.LLMRequestCompleted{RequestID: "demo:r0001", DurationMs: 8200, Usage: event.Usage{InputTokens: 4210}, FinishReason: "stop"},
		event.AssistantMessage{Content: "`" + turned + "` after **" + turned + "** after *" + turned + "* after ~~" + turned + "~~ after [" + turned + "](https://example.com) after"},
	))
	tab.Await(`document.querySelector(".token-usage-info")`)
	var ways []string
	tab.Eval(`(() => {
		const ways = [];
		const texts = document.createTreeWalker(document.querySelector("#entries"), NodeFilter.SHOW_TEXT);
		for (let text; (text = texts.nextNode()); ) {
			const word = /after|tokens in/.exec(text.data);
			if (!word) continue;
			const range = document.createRange();
			const left = (at) => {
				range.setStart(text, at);
				range.setEnd(text, at + 1);
				return range.getBoundingClientRect().left;
			};
			ways.push(word[0] + (left(word.index) < left(word.index + word[0].length - 1) ? " →" : " ←"));
		}
		return ways;
	})()`, &ways)
	require.Equal(t, []string{"after →", "after →", "after →", "tokens in →", "after →", "after →", "after →", "after →", "after →"}, ways)
}

// long is a log whose transcript has 20,000 entries and 5 MB.
func long() *log {
	l := newLog()
	for i := range 10_000 {
		l.record(
			event.UserMessage{Content: fmt.Sprintf("Question %d: %s", i, strings.Repeat("why is it so? ", 8))},
			event.AssistantMessage{Content: fmt.Sprintf("Answer **%d**: %s", i, strings.Repeat("because `it` is. ", 9))},
		)
	}
	return l
}

// loaded is an expression that is true when the newest entry of long is shown.
const loaded = `[...document.querySelectorAll(".entry")].at(-1)?.innerText.startsWith("Answer 9999")`

func TestTwentyThousandEntriesLoad(t *testing.T) {
	tab := show(t, long())
	tab.Await(loaded)
	tab.Reload()
	tab.Await(loaded)

	var shown int
	tab.Eval(`document.querySelectorAll(".entry").length`, &shown)
	require.Less(t, shown, 1000, "old entries must load on scrolling")
	tab.Do(`
		const entries = document.querySelectorAll(".entry");
		window.seen = entries[3];
		document.querySelector("#scroller").scrollTop = seen.offsetTop - document.querySelector("#scroller").offsetTop - 100`)
	tab.Await(fmt.Sprintf(`document.querySelectorAll(".entry").length > %d`, shown))
	var top float64
	tab.Eval(`seen.getBoundingClientRect().top`, &top)
	require.InDelta(t, 300, top, 300, "the visible entry must keep its place")
	tab.Click("#newest")
	tab.Await(`document.querySelector("#newest").hidden`)
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
		event.LLMRequestCompleted{RequestID: toolRequest, Usage: event.Usage{InputTokens: 1}, DurationMs: 1000},
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
