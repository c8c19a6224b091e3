package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

// described are probes with another description, and one more tool.
type described struct {
	probes
	text string
}

func (d described) Offer(ctx context.Context, r activities.OfferRequest) ([]activities.Tool, error) {
	tools, err := d.probes.Offer(ctx, r)
	for i := range tools {
		tools[i].Description = d.text
	}
	return append(tools, activities.Tool{ToolDefinition: activities.ToolDefinition{Name: "more"}}), err
}

func TestAChangedListOfToolsAppliesFromTheNextTurn(t *testing.T) {
	t.Parallel()
	p := newProbe(t, echoed)
	old := func(o *contexts.Options) { o.Tools = probes{} }
	w := newWorld(t,
		llmtest.Calls(p.call("probe", "a")).Offered("probe", "probe_again").Expect(describes("Ask a test")),
		llmtest.Calls(p.call("probe", "b")).Offered("probe", "probe_again").Expect(describes("Ask a test")),
		llmtest.Answer("Done.").Offered("probe", "more").Expect(describes("New")),
		llmtest.Answer("Done.").Offered("probe", "more").Expect(describes("New")),
	)
	stop := w.worker(old)
	c := w.open("changed-tools")
	w.send(c, event.New(event.SetTools{Tools: event.ToolList{{Pattern: "*"}}, Approve: event.ApprovalRules{{Tool: "*"}}}))
	turn := w.ask(c, "Look")
	turn.until(isTag(event.TagApprovalRequested))
	stop()
	w.worker(func(o *contexts.Options) { o.Tools = described{text: "New"} })
	w.send(c, event.New(event.ApprovalDecided{Decision: event.Approve}))
	turn.until(func(e event.Event) bool {
		approval, ok := e.Body.(event.ApprovalRequested)
		return ok && approval.ToolCallID == "call_b"
	})
	// A SetToolsEvent applies at once.
	w.setTools(c, "probe", "more")
	w.send(c, event.New(event.ApprovalDecided{Decision: event.Approve}))
	require.Equal(t, event.TagLLMRequestCompleted, turn.rest().Tag())
	w.say(c, "And now?")
	require.Equal(t, story(`
		SessionStarted after 0
		SetTools *; approve *
		UserMessage "Look"
		LLMRequestStarted 1 scripted attempt 1
		ToolsOffered 2 tools: probe, probe_again
		AssistantMessage ""
		ToolCall call_a probe
		LLMAttemptEnded 1 tool_calls
		ApprovalRequested call_a
		ApprovalDecided  approve
		ToolResult call_a "result of a"
		LLMRequestStarted 1 scripted attempt 2
		AssistantMessage ""
		ToolCall call_b probe
		LLMAttemptEnded 1 tool_calls
		ApprovalRequested call_b
		SetTools probe, more
		ApprovalDecided  approve
		ToolResult call_b "result of b"
		LLMRequestStarted 1 scripted attempt 3
		ToolsOffered 2 tools: probe, more
		AssistantMessage "Done."
		LLMRequestCompleted 1 stop
		UserMessage "And now?"
		LLMRequestStarted 2 scripted attempt 1
		AssistantMessage "Done."
		LLMRequestCompleted 2 stop
	`), withoutPositions(w.log(c)))
	w.replay(c, "tools-offered")
}

// describes requires the description of the first tool.
func describes(want string) func(llmtest.Request) error {
	return func(r llmtest.Request) error {
		if got := r.Tools[0].Function.Description; got != want {
			return fmt.Errorf("the first tool is described as %q, not %q", got, want)
		}
		return nil
	}
}

// many are tools with 160 KB of descriptions.
type many struct{ probes }

func (many) Offer(context.Context, activities.OfferRequest) (tools []activities.Tool, err error) {
	for i := range 40 {
		tools = append(tools, activities.Tool{ToolDefinition: activities.ToolDefinition{Name: fmt.Sprintf("tool_%d", i), Description: strings.Repeat("x", 4000)}})
	}
	return tools, nil
}

func TestALargeListOfToolsIsAReferenceInTheHistory(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llmtest.Answer("Hi."), llmtest.Answer("Hi again."))
	w.worker(func(o *contexts.Options) { o.Tools = many{} })
	c := w.open("many-tools")
	w.setTools(c, "*")
	w.say(c, "Hello")
	w.say(c, "Hello again")
	require.Equal(t, 1, countOf(w, c, event.TagToolsOffered))
	require.Len(t, w.model.Requests()[1].ToolNames(), 40)
	require.Less(t, w.historySize(c), int64(20_000))
	w.replay(c, "")
}
