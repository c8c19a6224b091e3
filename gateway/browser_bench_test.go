package gateway_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/page"
	"github.com/seed-9ed7edd4/chronicle/internal/browsertest"
)

// frames scrolls from the end of an element to its beginning, 400 pixels in each frame, and returns the percentiles
// 50, 95 and 100 of the milliseconds between two frames.
const frames = `(async (scroller) => {
	const frame = () => new Promise(requestAnimationFrame);
	scroller.scrollTop = scroller.scrollHeight;
	for (let i = 0; i < 30; i++) await frame();
	const times = [];
	for (let last = await frame(); scroller.scrollTop > 0; ) {
		scroller.scrollTop -= 400;
		const now = await frame();
		times.push(now - last);
		last = now;
	}
	times.sort((a, b) => a - b);
	return [0.5, 0.95, 1].map((p) => times[Math.ceil(p * times.length) - 1]);
})`

// BenchmarkScrolling scrolls through a conversation of 2,000 entries, and through a bare page with as many static blocks of
// the same text. It reports the time between two frames, and the first paint of the conversation.
func BenchmarkScrolling(b *testing.B) {
	l := newLog()
	for i := range 1000 {
		answer := fmt.Sprintf("Answer **%d**: %s", i, strings.Repeat("because `it` is so. ", 20))
		if i%5 == 0 {
			answer += "\n\n```go\nfunc main() {\n\tfor i := range 10 {\n\t\tfmt.Println(\"line\", i)\n\t}\n}\n```\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |"
		}
		if i%20 == 0 {
			answer += "\n\n$$\\sum_{i=1}^n i = \\frac{n(n+1)}{2}$$"
		}
		l.record(event.UserMessage{Content: fmt.Sprintf("Question %d: %s", i, strings.Repeat("why is it so? ", 8))}, event.AssistantMessage{Content: answer})
	}
	browser := browsertest.Start(b)
	w := serve(b, fakeClient{log: l, limits: inlineLimits}, gateway.Options{Page: page.Handler()})
	for b.Loop() {
		tab := browser.Open(w.server.URL + "/#demo")
		tab.Await(`[...document.querySelectorAll(".entry")].at(-1)?.innerText.startsWith("Answer 999")`)
		tab.Reload()
		tab.Await(`[...document.querySelectorAll(".entry")].at(-1)?.innerText.startsWith("Answer 999") && performance.getEntriesByName("first-contentful-paint").length > 0`)
		var paint float64
		tab.Eval(`performance.getEntriesByName("first-contentful-paint")[0].startTime`, &paint)
		var page, bare []float64
		tab.Eval(frames+`(document.querySelector("#scroller"))`, &page)
		var texts []string
		tab.Eval(`[...document.querySelectorAll(".entry")].map((e) => e.textContent)`, &texts)
		if len(texts) != 2000 {
			b.Fatalf("%d entries are shown (want 2000)", len(texts))
		}

		tab = browser.Open(w.server.URL + "/lib/marked/LICENSE")
		tab.Do(`
			document.body.replaceChildren(...` + string(toJSON(texts)) + `.map((text) => {
				const block = document.createElement("p");
				block.textContent = text;
				return block;
			}))`)
		tab.Eval(frames+`(document.documentElement)`, &bare)
		b.ReportMetric(paint, "first-paint-ms")
		for i, name := range []string{"p50", "p95", "max"} {
			b.ReportMetric(page[i], name+"-frame-ms")
			b.ReportMetric(bare[i], name+"-bare-frame-ms")
		}
	}
}
