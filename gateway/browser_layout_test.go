package gateway_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/browsertest"
)

// The page is shown in several sizes and themes.
func TestLayout(t *testing.T) {
	tab := show(t, newLog(append(agentConversation(),
		event.UserMessage{Content: "`code` and [a link](https://example.com)"},
		event.LLMRequestStarted{RequestID: "demo:r0002", ProviderID: "a", Model: "a-provider/a-model-with-a-long-name", ThroughEventID: eventID(16), Attempt: 1},
		event.LLMRequestFellBack{RequestID: "demo:r0002", FromProvider: "a", ToProvider: "b", Error: "401"},
		event.AssistantMessage{RequestID: "demo:r0002", Content: "> quoted\n\n`code` and [a link](https://example.com)", Partial: true},
		event.LLMRequestInterrupted{RequestID: "demo:r0002", Reason: event.ReasonCancelled},
		event.LLMRequestFailed{RequestID: "demo:r0003", Error: "401"},
		event.LLMRequestStarted{RequestID: "demo:r0004", ProviderID: "p", Model: "a-provider/a-model-with-a-long-name", ThroughEventID: eventID(16), Attempt: 1},
		event.LLMRequestCompleted{RequestID: "demo:r0004", DurationMs: 12_345, Usage: event.Usage{
			InputTokens: 123_456, CachedTokens: 100_000, OutputTokens: 12_345, ReasoningTokens: 10_000, CostMicros: new(int64(123_456)),
		}},
		event.AssistantMessage{Content: codeAndFormulas()[1].(event.AssistantMessage).Content})...))
	tab.Await(`document.querySelectorAll("#list a").length === 4`)
	tab.Run("notices are centered", func(t *testing.T) {
		for _, width := range []int64{1200, 390} {
			tab.As(browsertest.Look{Width: width, Height: 800})
			var off float64
			tab.Eval(`(() => {
				const middle = ({ left, right }) => (left + right) / 2;
				const text = document.createRange();
				text.selectNodeContents(document.querySelector(".system-message p"));
				return middle(text.getBoundingClientRect()) - middle(document.querySelector("#composer").getBoundingClientRect());
			})()`, &off)
			require.InDelta(t, 0, off, 1, "in a window of %d pixels", width)
		}
	})
	tab.Run("only the conversation scrolls", func(t *testing.T) {
		for _, width := range []int64{1200, 420, 360} {
			tab.As(browsertest.Look{Width: width, Height: 740})
			var page, conversation int
			tab.Eval(`document.documentElement.scrollHeight - innerHeight`, &page)
			tab.Eval(`document.querySelector("#scroller").scrollHeight - document.querySelector("#scroller").clientHeight`, &conversation)
			require.LessOrEqual(t, page, 0, "in a window of %d pixels", width)
			require.Positive(t, conversation)
		}
	})
	tab.Run("the lines of usage begin at the left", func(t *testing.T) {
		tab.As(browsertest.Look{Width: 320, Height: 740})
		var lines, edges int
		const rects = `(() => {
			const text = document.createRange();
			text.selectNodeContents([...document.querySelectorAll(".token-usage-info p")].at(-1));
			const first = new Map();
			for (const { top, left } of text.getClientRects()) first.set(Math.round(top / 8), Math.min(left, first.get(Math.round(top / 8)) ?? left));
			return [...first.values()].map(Math.round);
		})()`
		tab.Eval(rects+".length", &lines)
		tab.Eval("new Set("+rects+").size", &edges)
		require.Greater(t, lines, 1)
		require.Equal(t, 1, edges)
	})
	tab.Run("a phone shows the list or the conversation", func(t *testing.T) {
		tab.As(browsertest.Look{Width: 360, Height: 740})
		tab.Await(`document.documentElement.scrollWidth <= 360 && document.querySelector("#contexts").offsetParent === null`)
		tab.Click("#back")
		tab.Await(`document.querySelector("main").offsetParent === null && document.querySelector("#list a").offsetParent !== null`)
		tab.Click("#list a")
		tab.Await(`document.querySelector(".entry")?.offsetParent`)
	})
	tab.Run("text has enough contrast in both themes", func(t *testing.T) {
		// The ratio is that of WCAG 2.2, success criterion 1.4.3, level AA.
		tab.Do(`document.querySelectorAll("details").forEach((details) => { details.open = true; })`)
		tab.Await(`document.querySelectorAll(".prose :is(.token-keyword, .token-string, .token-number, .token-comment, .token-title, .token-attr)").length > 9`)
		for _, dark := range []bool{false, true} {
			tab.As(browsertest.Look{Width: 1200, Height: 3000, Dark: dark})
			var low []string
			tab.Eval(`(() => {
				const rgba = (color) => { const [r, g, b, a = 1] = color.match(/[\d.]+/g).map(Number); return [r, g, b, a]; };
				const over = ([r, g, b, a], below) => [r, g, b].map((v, i) => v * a + below[i] * (1 - a));
				const luminance = (color) => {
					const [r, g, b] = color.map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
					return 0.2126 * r + 0.7152 * g + 0.0722 * b;
				};
				const low = [];
				const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
				while (texts.nextNode()) {
					const element = texts.currentNode.parentElement;
					if (!texts.currentNode.data.trim() || !element.checkVisibility({ opacityProperty: true }) || element.closest(":disabled")) continue;
					let below = [255, 255, 255], opacity = 1;
					const ancestors = [];
					for (let e = element; e; e = e.parentElement) ancestors.unshift(getComputedStyle(e));
					for (const style of ancestors) { below = over(rgba(style.backgroundColor), below); opacity *= style.opacity; }
					const [r, g, b, a] = rgba(getComputedStyle(element).color);
					const [dark, light] = [luminance(below), luminance(over([r, g, b, a * opacity], below))].sort((x, y) => x - y);
					const ratio = (light + 0.05) / (dark + 0.05);
					if (ratio < 4.5) low.push(texts.currentNode.data.trim() + ": " + ratio.toFixed(2));
				}
				return low;
			})()`, &low)
			require.Empty(t, low, "dark: %t", dark)
		}
	})
	tab.Run("the theme follows the system or the choice", func(t *testing.T) {
		const isDark = `getComputedStyle(document.body).backgroundColor === "rgb(23, 22, 20)"`
		tab.As(browsertest.Look{Width: 1200, Height: 800, Dark: true})
		tab.Await(isDark)
		tab.Click("#theme")
		tab.Await("!(" + isDark + ")")
		tab.Reload()
		tab.Await(`document.querySelector(".entry") && !(` + isDark + ")")
	})
	tab.Run("the page works without browser storage", func(t *testing.T) {
		tab.Before(`for (const storage of ["localStorage", "sessionStorage"]) {
			Object.defineProperty(window, storage, { get() { throw new DOMException("storage is blocked", "SecurityError") } });
		}`)
		tab.Reload()
		tab.Await(`document.querySelectorAll(".user-message").length === 2`)
		tab.Click("#theme")
		tab.Await(`document.documentElement.dataset.theme`)
		tab.Type("#text", "Still there?\r")
		tab.Await(`document.querySelectorAll(".user-message").length === 3 && !document.querySelector("#outbox li")`)
	})
}

func TestRightToLeftTextIsLaidOutFromTheRight(t *testing.T) {
	const hebrew, mixed = "שלום לכולם", "שלום (hello) לכולם"
	bodies := append([]event.Body{
		event.UserMessage{Content: hebrew + "\nhello"},
		event.AssistantMessage{Content: "# " + hebrew + "\n\n" + mixed + "\n\n- " + hebrew + "\n- hello\n\n> " + hebrew + "\n\n| " + hebrew + " | b |\n|---|---|\n| " + hebrew + " | hello |\n\nhello\n\n```\nhello\n```"},
		event.Note{Kind: event.NoteError, Content: hebrew},
		event.Note{Kind: event.NoteSystem, Content: hebrew},
	}, asking(question, `{"question":"`+hebrew+`"}`)...)
	tab := show(t, newLogOf("demo", bodies...))
	tab.Await(`document.querySelector(".call-form") && document.querySelector("#address").textContent === "demo"`)
	tab.Type("#text", hebrew)
	tab.Type(".call-form textarea", hebrew)
	var directions []string
	tab.Eval(`[
		".bubble .plain", ".prose h1", ".prose > p", ".prose ul", ".prose li", ".prose li + li", ".prose blockquote", ".prose blockquote p", ".prose table",
		".prose td", ".prose td + td", ".prose pre + *, .prose > p ~ p", ".prose pre", ".error-message .plain", ".asked p", ".call-form textarea", "#text", "#name", "#address",
	].map((selector) => selector + " " + getComputedStyle(document.querySelector(selector)).direction)`, &directions)
	require.Equal(t, []string{
		".bubble .plain rtl", ".prose h1 rtl", ".prose > p rtl", ".prose ul rtl", ".prose li rtl", ".prose li + li rtl", ".prose blockquote rtl", ".prose blockquote p rtl", ".prose table rtl",
		".prose td rtl", ".prose td + td rtl", ".prose pre + *, .prose > p ~ p ltr", ".prose pre ltr", ".error-message .plain rtl", ".asked p rtl", ".call-form textarea rtl", "#text rtl", "#name rtl", "#address ltr",
	}, directions)
	var gap float64 // of the first line to the right edge of its paragraph
	tab.Eval(`(() => {
		const p = document.querySelector(".prose > p"), range = document.createRange();
		range.selectNodeContents(p);
		return p.getBoundingClientRect().right - range.getBoundingClientRect().right;
	})()`, &gap)
	require.InDelta(t, 0, gap, 1)
}
