package gateway_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/browsertest"
)

func TestCodeIsColored(t *testing.T) {
	const program = "package main\n\n// main greets.\nfunc main() { println(\"<b>\", 42) }\n"
	answer := "```go\n" + program + "```\n\n```\nfunc plain() {}\n```\n\n```klingon\nfunc nuq() {}\n```\n"
	l := newLog(answering("Show me a program")...)
	tab := show(t, l)
	for i, part := range strings.SplitAfter(answer, "{") {
		l.record(delta(i, part))
	}
	tab.Await(`document.querySelectorAll(".streaming pre").length === 3 && document.querySelector(".streaming .token-keyword")`)
	want := []string{"keyword package", "comment // main greets.", "keyword func", "title main", "params ()", `string "<b>"`, "number 42"}
	var got []string
	tab.Eval(`[...document.querySelector("code.language-go").querySelectorAll("[class^=token]")].filter((e) => !e.firstElementChild).map((e) => e.className.slice(6) + " " + e.textContent)`, &got)
	require.Subset(t, got, want, "%q", got)

	tab.Do(`window.plain = 0; new MutationObserver(() => { window.plain += document.querySelector(".assistant-message code.language-go")?.children.length === 0 }).observe(document.querySelector("#entries"), { childList: true })`)
	l.record(event.AssistantMessage{RequestID: "demo:r0001", Content: answer, ThroughEventID: eventID(1)})
	tab.Await(`document.querySelector(".assistant-message:not(.streaming) code.language-go [class^=token]")`)
	var plain int
	tab.Eval(`window.plain`, &plain)
	require.Zero(t, plain, "the end of an answer must not show its code without colors")
	require.Equal(t, []string{program, "func plain() {}\n", "func nuq() {}\n"}, each(tab, "pre code", "e.textContent"))
	require.Equal(t, []string{"0", "0"}, each(tab, "pre:not(:has(.language-go)) code", "String(e.children.length)"))
}

func TestLibrariesAreLoadedWhenTheyAreNeeded(t *testing.T) {
	l := newLog(event.UserMessage{Content: "$$x$$ and ```go"}, event.AssistantMessage{Content: "It costs $5, and `$$` is the process. `\\(x\\)`\n\n```\nplain\n```"})
	tab := show(t, l)
	tab.Do(`
		window.workers = 0;
		const { Worker } = window;
		window.Worker = function (...args) { window.workers++; return new Worker(...args) }`)
	tab.Await(`document.querySelector("pre")`)
	isLoaded := func() (loaded []bool) {
		tab.Eval(`[document.querySelector("script[src*=temml]") !== null, workers > 0]`, &loaded)
		return loaded
	}
	require.Equal(t, []bool{false, false}, isLoaded())
	l.record(event.AssistantMessage{Content: "\\(x\\)"})
	tab.Await(`document.querySelector("math")`)
	require.Equal(t, []bool{true, false}, isLoaded())
	l.record(event.AssistantMessage{Content: "```json\n{\"a\": 1}\n```"})
	tab.Await(`document.querySelector("[class^=token]")`)
	require.Equal(t, []bool{true, true}, isLoaded())
}

// pauses begins to measure the times in which scripts block a page. The function returns the longest, in milliseconds.
func pauses(tab *browsertest.Tab) (longest func() float64) {
	tab.Do(`
		window.slowest = 0;
		window.last = performance.now();
		window.frames = setInterval(() => { window.slowest = Math.max(slowest, performance.now() - last); window.last = performance.now() }, 10)`)
	return func() (ms float64) {
		tab.Eval(`Math.max(slowest, performance.now() - last)`, &ms)
		return ms
	}
}

// A single regular expression of a language can take minutes.
func TestHostileCodeStaysPlainAndThePageResponsive(t *testing.T) {
	deep := ""
	for n := 500; n <= 16_000; n *= 2 {
		deep += "```js\n" + strings.Repeat("`${", n) + "\n```\n\n"
	}
	tab := show(t, newLog(event.AssistantMessage{Content: deep + "```ini\n" + strings.Repeat("a", 49_000) + "\n```\n\n```go\nvar x = 1\n```\n\n```json\n" + strings.Repeat("[", 60_000) + "\n```"}))
	longest := pauses(tab)
	tab.Await(`document.querySelector(".language-go .token-keyword")`)
	require.Less(t, longest(), 30_000.0, "the page was blocked for this many milliseconds") // catches a hang
	require.Equal(t, []string{"0", "1", "0"}, each(tab, "pre code:not(.language-js)", `String(Math.sign(e.querySelectorAll("[class^=token]").length))`))
}

func TestFormulasAreMathML(t *testing.T) {
	content := "The sum \\(\\sum_{i=1}^n i\\) is\n$$\n\\frac{n(n+1)}{2}\n= x\n- y\n$$\nand also\n\n\\[\n\\begin{aligned} a &= b \\\\ c &= d \\end{aligned}\n\\]\n\n" +
		"- in a list \\(x^2\\), and $$y$$ there\n\n" +
		"It costs $5 or $10, and \\[this\\](https://example.com) is no formula. `\\(code\\)`\n\n```\n\\(code\\)\n```\n\nInvalid: \\(\\frac{1\\)"
	l := newLog(event.AssistantMessage{Content: content})
	tab := show(t, l)
	tab.Await(`document.querySelectorAll("math").length === 5`)
	require.Equal(t, []string{"formula", "formula display", "formula display", "formula", "formula display"}, each(tab, ".formula", "e.className"))
	var text string
	tab.Eval(`document.querySelector(".prose").textContent`, &text)
	for _, source := range []string{"It costs $5 or $10", "[this](https://example.com) is no formula", `\(code\)`, `\(\frac{1\)`} {
		require.Contains(t, text, source)
	}
	require.Equal(t, []string{"MTABLE", "MFRAC"}, []string{strings.ToUpper(each(tab, ".display mtable", "e.localName")[0]), strings.ToUpper(each(tab, ".display mfrac", "e.localName")[0])})

	streamed := newLog(answering("And the sum?")...)
	tab = show(t, streamed)
	for i, part := range strings.SplitAfter(content+"\n\n", " ") {
		streamed.record(delta(i, part))
	}
	tab.Await(`document.querySelectorAll(".streaming math").length === 5`)
}

func TestHostileFormulasLeaveThePageResponsive(t *testing.T) {
	const bomb = `\(\def\a#1{#1#1#1#1#1#1#1#1#1}\a{\a{\a{\a{xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx}}}}\) `
	table := `\(\begin{matrix}` + strings.Repeat("&", 1900) + `\end{matrix}\) `
	l := newLog(event.AssistantMessage{Content: `\(x\)`})
	tab := show(t, l)
	tab.Await(`document.querySelector("math")`)
	longest := pauses(tab)
	l.record(event.AssistantMessage{Content: bomb + `\(2\) ` + strings.Repeat(table, 24)})
	tab.Await(`document.querySelectorAll(".assistant-message")[1]?.querySelector("math")?.textContent === "2"`)
	l.record(event.AssistantMessage{Content: strings.Repeat("\\[ a\n", 7_000) + strings.Repeat(" ", 14_000) + "b"}, event.AssistantMessage{Content: "end"})
	tab.Await(`document.querySelector("#entries").innerText.includes("end")`)
	require.Less(t, longest(), 30_000.0, "the page was blocked for this many milliseconds") // catches a hang
}

func TestHostileFormulasStayInert(t *testing.T) {
	formulas := []string{
		`\href{javascript:pwned}{x}`, `\url{javascript:pwned}`, `\includegraphics{https://example.com/a.png}`, `\class{pwned}{x}`, `\id{text}{x}`,
		`\style{position:fixed}{x}`, `\data{a=b}{x}`, `\htmlStyle{color:red}{x}`, `\unicode{x3c}script\unicode{x3e}`,
		`\text{<img src=x onerror="window.pwned = true">}`, `</span><script>window.pwned = true</script>`, `<img src=x onerror=pwned>`,
		`\color{red;background:url(https://example.com/a.png)} x`, `\rule{100000em}{100000em}`, `\kern{-99999em} x`, `\def\a{\a\a}\a`, `\gdef\sin{\text{stolen}} x`,
		strings.Repeat("{", 1900), strings.Repeat("x", 3000), `\colorbox{red}{x}`,
	}
	content := ""
	for _, formula := range formulas {
		content += `\(` + formula + `\) $$` + formula + "$$\n\n"
	}
	tab := show(t, newLog(event.AssistantMessage{Content: content + `\(\sin x\)` + "\n\n" + `\(done\)`}))
	tab.Await(`[...document.querySelectorAll("math")].at(-1)?.textContent === "done"`)
	var found []string
	tab.Eval(`[...document.querySelectorAll("#entries :is(script, img, svg, iframe, style, object, form, a)")].map((e) => e.outerHTML)`, &found)
	require.Empty(t, found)
	tab.Eval(`[...document.querySelectorAll(".prose *")].flatMap((e) => [...e.attributes]).map((a) => a.name).filter((name) => name.startsWith("on") || ["src", "href", "id"].includes(name))`, &found)
	require.Empty(t, found)
	tab.Eval(`[...document.querySelectorAll(".prose [style]")].map((e) => e.getAttribute("style")).filter((style) => /url|position|fixed/.test(style))`, &found)
	require.Empty(t, found)
	require.NotContains(t, strings.Join(tab.Text(".prose"), ""), "stolen x", "a macro of a formula must not outlive it")
	var size []float64
	tab.Eval(`(() => { const { width, height } = document.querySelector(".prose").getBoundingClientRect(); return [width, height] })()`, &size)
	require.Less(t, size[0], 1200.0)
	require.Less(t, size[1], 6000.0)
	var pwned bool
	tab.Eval(`window.pwned ?? false`, &pwned)
	require.False(t, pwned)
}
