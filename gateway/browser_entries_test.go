package gateway_test

import (
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/browsertest"
)

const (
	pixel = "GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff!\xf9\x04\x00\x00\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x01D\x00;"
	// 8 samples of silence, 8 bits each, at 8 kHz.
	silence = "RIFF\x2c\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x40\x1f\x00\x00\x01\x00\x08\x00data\x08\x00\x00\x00" +
		"\x80\x80\x80\x80\x80\x80\x80\x80"
)

// each evaluates an expression of e, each element that matches a selector.
func each(tab *browsertest.Tab, selector, expression string) (values []string) {
	tab.Eval(`[...document.querySelectorAll("`+selector+`")].map((e) => `+expression+`)`, &values)
	return values
}

func TestEntries(t *testing.T) {
	failures := []event.LLMRequestFailed{
		{Error: "openai: no API key", Kind: event.FailureConfiguration},
		{Error: "openai: unauthorized (401): no", Kind: event.FailureUnauthorized},
		{Error: "openai: rate limited (429): slow down", Kind: event.FailureRateLimited, Retryable: true},
		{Error: "openai: bad request (400): no", Kind: event.FailureBadRequest},
		{Error: "an error of release 0.1.0"},
		{Error: "budget exceeded: context: limit 5 tokens, used 0, wanted 9", Kind: event.FailureBudgetExceeded},
		{Error: "hook guard: off topic", Kind: event.FailureRefusedByHook},
		{Error: "hook guard: connection failed", Kind: event.FailureHookFailed, Retryable: true},
	}
	retried := func(attempt int, model string) event.Body {
		return event.LLMRequestStarted{RequestID: "demo:r0003", ProviderID: "p", Model: model, Attempt: attempt, ThroughEventID: "demo:0006"}
	}
	bodies := []event.Body{
		attachment("audio/wav", "silence.wav", silence),
		attachment("application/pdf", "a.pdf", "%PDF-1.7"),
		attachment("image/gif", "pixel.gif", pixel),
		attachment("image/png", "none.png", "this is no image"),
		attachment("text/plain", "a.txt", "Hello"),
		event.UserMessage{Content: "I am Ann"},
		event.AssistantMessage{Content: "3. three\n4. four\n\n- [x] done\n- [ ] open\n\n" +
			"| a | b | c |\n|---|--:|:-:|\n| 1 | 2 | 3 |\n\n> quoted\n\n```go\nx := 1\n```"},
		event.AssistantMessage{Content: "- [x] tight\n\n1. another list\n\n- [ ] loose\n\n- [ ] too"},
		event.LLMRequestCompleted{RequestID: "demo:r0001", DurationMs: 8200, FinishReason: "stop", Usage: event.Usage{
			InputTokens: 4210, CachedTokens: 4000, OutputTokens: 386, ReasoningTokens: 300, CostMicros: new(int64(1_204_200)), PriceVersion: "1",
		}},
		event.LLMRequestCompleted{RequestID: "demo:r0002", FinishReason: "stop", Usage: event.Usage{
			InputTokens: 7, OutputTokens: 2, Estimated: true, CostMicros: new(int64(0)), PriceVersion: "1",
		}},
		retried(1, "a"),
		event.LLMAttemptEnded{RequestID: "demo:r0003", Attempt: 1, Outcome: event.AttemptFailed, Usage: event.Usage{InputTokens: 1000, CostMicros: new(int64(10_000))}},
		retried(2, "a"),
		event.LLMRequestFellBack{RequestID: "demo:r0003", FromProvider: "p", ToProvider: "q", Usage: event.Usage{InputTokens: 1000, CostMicros: new(int64(10_000))}},
		retried(3, "b"),
		event.LLMRequestCompleted{RequestID: "demo:r0003", DurationMs: 500, Usage: event.Usage{InputTokens: 900, OutputTokens: 20, CostMicros: new(int64(5_000))}},
		event.LLMRequestStarted{RequestID: "demo:r0004", Attempt: 1},
		event.HookApplied{
			RequestID: "demo:r0004", Attempt: 1, Hook: "pii", Stage: event.HookBefore, Outcome: event.HookChanged, Reason: "a name",
			Change: &event.HookChange{Messages: []event.ReplacedMessage{{EventID: "demo:0006", Content: "I am <b>[name]</b>"}}},
		},
		event.HookApplied{RequestID: "demo:r0004", Attempt: 1, Hook: "guard", Stage: event.HookAfter, Outcome: event.HookRefused, Reason: "off topic"},
	}
	for i, failure := range failures {
		failure.RequestID = event.FormatRequestID("demo", 4+i)
		bodies = append(bodies, failure)
	}
	tab := show(t, newLog(bodies...))
	tab.Await(`document.querySelectorAll(".error-message").length === 8`)

	tab.Run("images are shown, audio is played, and other files are links", func(t *testing.T) {
		tab.Await(`document.querySelectorAll(".attachments img").length === 1 && document.querySelector(".attachments img").naturalWidth === 1`)
		var duration float64
		tab.Eval(`new Promise((resolve, reject) => {
			const [audio] = document.querySelectorAll(".attachments audio");
			audio.onloadedmetadata = () => resolve(audio.duration);
			audio.onerror = () => reject(new Error(audio.error.message));
			audio.preload = "auto";
			audio.load();
		})`, &duration)
		require.InDelta(t, 0.001, duration, 1e-6)
		require.Equal(t, []string{
			"contexts/demo/events/demo:0001/attachment silence.wav · audio/wav · 52 B",
			"contexts/demo/events/demo:0002/attachment a.pdf · application/pdf · 8 B",
			"contexts/demo/events/demo:0003/attachment pixel.gif · image/gif · 42 B",
			"contexts/demo/events/demo:0004/attachment none.png · image/png · 16 B",
			"contexts/demo/events/demo:0005/attachment a.txt · text/plain · 5 B",
		}, each(tab, ".attachments a", `e.getAttribute("href") + " " + e.textContent`))
	})
	tab.Run("a picture is enlarged", func(t *testing.T) {
		require.Equal(t, []string{"Enlarge pixel.gif"}, each(tab, ".attachments button", "e.ariaLabel"))
		tab.Type(".enlarge", "\r")
		tab.Await(`picture.open && document.querySelector("#picture img").naturalWidth === 1 && document.activeElement.ariaLabel === "Close the picture"`)
		tab.Press(kb.Escape)
		tab.Await(`!picture.open`)
		tab.Click(".enlarge")
		tab.Click("#picture button")
		tab.Await(`!picture.open && document.activeElement.className === "enlarge"`)
	})
	tab.Run("Markdown has lists, tables and tasks without bullets", func(t *testing.T) {
		var missing []string
		tab.Eval(`[
			"ol[start='3'] > li", "input[type='checkbox'][disabled]:checked", "input[type='checkbox'][disabled]:not(:checked)",
			".wide > table td[align='right']", "blockquote > p", "pre > code.language-go",
		].filter((selector) => !document.querySelector(".prose " + selector))`, &missing)
		require.Empty(t, missing, "selectors without a match")
		require.Equal(t, []string{"start", "right", "center"}, each(tab, ".prose td", `getComputedStyle(e).textAlign.replace("-webkit-", "")`))
		require.Equal(t, []string{"none", "none", "none", "none", "none"}, each(tab, ".prose li:has(input)", "getComputedStyle(e).listStyleType"))
	})
	tab.Run("usage is that of all attempts", func(t *testing.T) {
		require.Equal(t, []string{
			"b · 2,900 tokens in · 20 out · $0.025 · 500 ms · with 2 failed attempts",
			"4,210 tokens in (4,000 cached) · 386 out (300 reasoning) · $1.2042 · 8.2 s",
			"~7 tokens in · ~2 out · $0.00",
		}, each(tab, ".token-usage-info p", "e.textContent"))
	})
	tab.Run("a hook shows what it changed", func(t *testing.T) {
		require.Equal(t, []string{"Hook pii changed the request (demo:0006): a name"}, each(tab, ".system-message summary", "e.textContent"))
		require.Equal(t, []string{"Replaced the content of demo:0006: I am <b>[name]</b>"}, each(tab, ".system-message details .plain", "e.textContent"))
		require.Contains(t, each(tab, ".system-message.warning p", "e.textContent"), "Hook guard refused the answer: off topic")
	})
	tab.Run("a failed request says what to do", func(t *testing.T) {
		require.Equal(t, []string{
			"Add a key or change the settings: the error says which.",
			"Add a valid key for the provider: the error says whether one was sent.",
			"Try again later: the same request may succeed.",
			"", "",
			"Raise the budget, lower maxTokens, or wait for the next day if the budget is daily.",
			"Change the message: a hook of the operator refuses it or its answer.",
			"Try again later. If it fails again, the operator of the worker must repair the hook.",
		}, each(tab, ".error-message", `e.querySelector(".advice")?.textContent ?? ""`))
	})
}
