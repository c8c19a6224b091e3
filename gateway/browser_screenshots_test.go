package gateway_test

import (
	"flag"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/browsertest"
)

var screenshots = flag.Bool("screenshots", false, "write docs/images/page-*.png")

// codeAndFormulas is a conversation with code in two languages and with formulas.
func codeAndFormulas() []event.Body {
	return []event.Body{
		event.UserMessage{Content: "How do I estimate π with random points?"},
		event.AssistantMessage{Content: "Draw points in the unit square. The share inside the quarter circle tends to its area:\n\n" +
			"$$\n\\frac{\\pi}{4} = \\int_0^1 \\sqrt{1-x^2}\\,dx \\approx \\frac{1}{n}\\sum_{i=1}^{n} \\mathbf{1}\\{x_i^2 + y_i^2 \\le 1\\}\n$$\n\n" +
			"The standard error is \\(4\\sqrt{p(1-p)/n}\\) with \\(p = \\pi/4\\): a hundred times the points give one more digit.\n\n" +
			"```go\n// estimate returns an estimate of π from n points.\nfunc estimate(n int, r *rand.Rand) float64 {\n\tinside := 0\n\tfor range n {\n" +
			"\t\tx, y := r.Float64(), r.Float64()\n\t\tif x*x+y*y <= 1 {\n\t\t\tinside++\n\t\t}\n\t}\n\treturn 4 * float64(inside) / float64(n)\n}\n```\n\n" +
			"The parameters are in a file:\n\n```yaml\npoints: 1000000\nseed: 7 # of the generator\noutput: { format: \"json\", digits: 4 }\n```"},
	}
}

// screenshot writes docs/images/page-NAME.png.
func screenshot(tab *browsertest.Tab, name string) {
	tab.Screenshot(filepath.Join("..", "docs", "images", "page-"+name+".png"))
}

func TestScreenshots(t *testing.T) {
	if !*screenshots {
		t.Skip("screenshot tests, run with -screenshots")
	}
	const first, second = "demo:r0001", "demo:r0002"
	started := func(id string, attempt, through int) event.Body {
		return event.LLMRequestStarted{RequestID: id, ProviderID: "openai", Model: "gpt-4o-mini", Attempt: attempt, ThroughEventID: eventID(through)}
	}
	stepEnded := func(id string, u event.Usage) event.Body {
		return event.LLMAttemptEnded{RequestID: id, Attempt: 1, Outcome: event.AttemptToolCalls, DurationMs: 1400, Usage: u}
	}
	toolCall := func(id, request, tool string, parameters map[string]any) event.Body {
		return event.ToolCall{ToolCallID: id, ToolName: tool, Parameters: toJSON(parameters), RequestID: request}
	}

	l := newLog(event.UserMessage{Content: "Why did the nightly backup fail?"}, started(first, 1, 1))
	tab := show(t, l)
	l.record(
		event.AssistantMessage{
			Content: "I'll search the log of last night.", Reasoning: "The log has the exit status of each step.",
			RequestID: first, ThroughEventID: eventID(1),
		},
		toolCall("call_1", first, "search_log", map[string]any{"query": "backup"}),
		stepEnded(first, event.Usage{InputTokens: 1850, OutputTokens: 120, ReasoningTokens: 64, CostMicros: new(int64(5_800))}),
		event.ToolResult{ToolCallID: "call_1", Value: toJSON("02:14 pg_dump: No space left on device"), DurationMs: 480},
		started(first, 2, 6),
		event.AssistantMessage{
			Content:   "The volume was **full**: `pg_dump` copied `orders` and stopped in `events`, which needs 96 GB.",
			RequestID: first, ThroughEventID: eventID(6),
		},
		event.LLMRequestCompleted{RequestID: first, DurationMs: 2100, FinishReason: "stop", Usage: event.Usage{
			InputTokens: 2360, CachedTokens: 1792, OutputTokens: 266, CostMicros: new(int64(6_200)),
		}},
	)
	tab.Await(`document.querySelector(".token-usage-info")`)
	l.record(
		event.UserMessage{Content: "Check the dumps and delete those older than 30 days."}, started(second, 1, 10),
		event.AssistantMessage{
			Content: "I'll verify the recent dumps and remove the old ones.", Reasoning: "Verify before anything is deleted.",
			RequestID: second, ThroughEventID: eventID(10),
		},
		toolCall("call_2", second, "verify_dumps", map[string]any{"days": 30}),
		toolCall("call_3", second, "delete_files", map[string]any{"path": "/backup/dumps", "olderThanDays": 30}),
		stepEnded(second, event.Usage{InputTokens: 2710, OutputTokens: 140}),
		event.ApprovalRequested{ToolCallID: "call_3", RequestID: second, ExpiresAt: time.Date(2126, 1, 3, 15, 4, 5, 0, time.UTC)},
		event.ToolProgress{RequestID: second, ToolCallID: "call_2", Text: "dump 12 of 30"},
	)
	tab.Await(`document.querySelector(".progress") && document.querySelector(".call-form") && !document.querySelector("#waiting").hidden`)
	require.Equal(t, []string{"Search backup 480 ms done", "verify_dumps  dump 12 of 30 running", "delete_files  waiting for approval"}, cards(tab))
	require.Equal(t, []string{"waiting for approval"}, tab.Text("#status"))
	require.Len(t, tab.Text(".thinking:not([open])"), 2)
	tab.Await(`document.querySelectorAll("#list a").length === 4 && document.querySelector("#address").textContent === "demo"`)
	tab.Do(`document.activeElement.blur()`)
	shoot := func(tab *browsertest.Tab, name string, look browsertest.Look) {
		tab.As(look)
		tab.Do(`
			const scroller = document.querySelector("#scroller");
			for (let still = 0, top = -1; still < 10; still = scroller.scrollTop === top ? still + 1 : 0) {
				top = scroller.scrollTop;
				await new Promise(requestAnimationFrame);
			}`)
		screenshot(tab, name)
	}
	shoot(tab, "light", browsertest.Look{Width: 1200, Height: 1020})
	shoot(tab, "dark", browsertest.Look{Width: 1200, Height: 1020, Dark: true})
	shoot(tab, "phone", browsertest.Look{Width: 390, Height: 844})

	l = newLog(codeAndFormulas()...)
	tab = show(t, l)
	tab.Await(`document.querySelectorAll("math").length === 3 && document.querySelectorAll(".code-block:has([class^=token])").length === 2 && document.querySelectorAll("#list a").length === 4 && document.querySelector("#address").textContent === "demo"`)
	tab.Do(`document.activeElement.blur()`)
	shoot(tab, "code", browsertest.Look{Width: 1200, Height: 1000})
	l.record(event.SystemPrompt{Content: "Answer briefly."}, event.BudgetSet{Tokens: new(int64(50_000))})
	tab.Do(`document.querySelector("#usage-and-settings").click()`)
	tab.Await(`document.querySelectorAll("#settings fieldset").length === 6`)
	tab.Do(`document.activeElement.blur()`)
	shoot(tab, "settings", browsertest.Look{Width: 1200, Height: 1100})
}
