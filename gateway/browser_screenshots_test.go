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
	tab.Await(`document.querySelectorAll("#list a").length === 4`)
	tab.Do(`document.activeElement.blur()`)
	for name, look := range map[string]browsertest.Look{
		"light": {Width: 1200, Height: 1020},
		"dark":  {Width: 1200, Height: 1020, Dark: true},
		"phone": {Width: 390, Height: 844},
	} {
		tab.As(look)
		tab.Do(`
			const scroller = document.querySelector("#scroller");
			for (let still = 0, top = -1; still < 10; still = scroller.scrollTop === top ? still + 1 : 0) {
				top = scroller.scrollTop;
				await new Promise(requestAnimationFrame);
			}`)
		screenshot(tab, name)
	}
}
