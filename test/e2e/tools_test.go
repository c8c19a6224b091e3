package e2e

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

// firstCall is the story of a turn up to the result of its first call.
const firstCall = `
		SessionStarted after 0
		SetTools probe
		UserMessage "Look"
		LLMRequestStarted 1 scripted attempt 1
		ToolsOffered 1 tool: probe
		AssistantMessage "Let me look."
		ToolCall call_a probe
		LLMAttemptEnded 1 tool_calls
		ToolResult call_a "result of a"`

func TestAToolIsCalled(t *testing.T) {
	t.Parallel()
	p := newProbe(t, echoed)
	w := newWorld(t, llmtest.Answer("Let me look.").Calls(p.call("probe", "a")).Offered("probe"), llmtest.Answer("Done.").Offered("probe"))
	w.worker()
	c := w.open("tool")
	w.setTools(c, "probe")
	turn := w.say(c, "Look")
	require.Equal(t, "Done.", deltaText(turn), "the deltas of a step replace those of the one before")
	require.Equal(t, story(firstCall+`
		LLMRequestStarted 1 scripted attempt 2
		AssistantMessage "Done."
		LLMRequestCompleted 1 stop
	`), withoutPositions(w.log(c)))
	require.Equal(t, []probeCall{{"call_a", "a"}}, p.seen())
	require.Equal(t, []string{"user: Look", "assistant: Let me look.", "tool: result of a"}, contents(w.model.Requests()[1]))
	w.usageOf(c)
	w.replay(c, "tool")
}

var askUser = event.Tool{Name: "ask_user", Description: "Ask the user", Parameters: event.Object(`{"type":"object","required":["question"]}`)}

// approval asks for approval of all tools, with an expiry.
func (w *world) requireApproval(c *client.Context, expiry time.Duration) {
	w.t.Helper()
	w.send(c, event.New(event.SetTools{
		Tools: event.ToolList{{Pattern: "*"}}, Approve: event.ApprovalRules{{Tool: "*"}}, ExpiryMs: new(expiry.Milliseconds()),
	}))
}

func TestNewInputInterruptsRunningTools(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	defer close(gate)
	aborted := make(chan struct{})
	p := newProbe(t, func(ctx context.Context, q string) string {
		defer close(aborted)
		return held(gate)(ctx, q)
	})
	w := newWorld(t, llmtest.Calls(p.call("probe", "a")), llmtest.Answer("Fine."))
	w.worker()
	c := w.open("interrupted")
	w.setTools(c, "*")
	turn := w.ask(c, "Look")
	p.awaitCall(w.ctx)
	require.Equal(t, "Fine.", deltaText(w.say(c, "Never mind")))
	require.Equal(t, event.TagLLMRequestInterrupted, turn.rest().Tag())
	require.Equal(t, []string{"user: Look", "assistant: ", "tool: interrupted, outcome unknown", "user: Never mind"}, contents(w.model.Requests()[1]))
	select {
	case <-aborted:
	case <-w.ctx.Done():
		t.Fatal("the tool was not cancelled")
	}
	w.replay(c, "tool-interrupted")
}

// The late result replaces the placeholder.
func TestALateResultCounts(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	p := newProbe(t, func(_ context.Context, q string) string {
		<-gate
		return "result of " + q
	})
	model := llmtest.NewGate()
	w := newWorld(t, llmtest.Calls(p.call("late", "a")), llmtest.Answer("Fine.").HoldAfter(0, model), llmtest.Answer("I see."))
	w.worker(func(o *contexts.Options) { o.Tools = late{} })
	c := w.open("late")
	w.setTools(c, "*")
	w.ask(c, "Look")
	p.awaitCall(w.ctx)
	second := w.ask(c, "Never mind")
	require.NoError(t, model.Reached(w.ctx))
	close(gate)
	w.await(c, func(e event.Event) bool {
		r, ok := e.Body.(event.ToolResult)
		return ok && string(r.Value) == `"result of a"`
	})
	model.Open()
	require.Equal(t, event.TagLLMRequestCompleted, second.rest().Tag())
	w.say(c, "And?")
	require.Equal(t, "tool: interrupted, outcome unknown", contents(w.model.Requests()[1])[2])
	require.Equal(t, "tool: result of a", contents(w.model.Requests()[2])[2])
	w.replay(c, "tool-late")
}

// late is a tool that ignores its cancellation.
type late struct{}

func (late) Offer(context.Context, activities.OfferRequest) ([]activities.Tool, error) {
	return []activities.Tool{{ToolDefinition: activities.ToolDefinition{Name: "late", Parameters: probeParameters}}}, nil
}

func (late) Call(ctx context.Context, r activities.ToolCallRequest) activities.ToolCallResult {
	return probes{}.Call(context.WithoutCancel(ctx), r)
}

func TestALargeCallLeavesTheHistorySmall(t *testing.T) {
	t.Parallel()
	const size = 200 << 10
	random := rand.New(rand.NewPCG(5, 6))
	q := strings.ReplaceAll(noise(random, size), `\`, "/")
	p := newProbe(t, echoed)
	call := p.call("probe", q)
	call.ID = "large"
	w := newWorld(t, llmtest.Calls(call), llmtest.Answer("Done."), llmtest.Answer("Still here."))
	w.worker()
	c := w.open("large-call")
	w.setTools(c, "probe")
	w.say(c, "Look")
	require.Equal(t, []probeCall{{"large", q}}, p.seen())
	require.Equal(t, []string{"result of " + q}, w.model.Requests()[1].Results())
	results := bodiesOf[event.ToolResult](w, c)
	require.Len(t, results, 1)
	require.Greater(t, len(results[0].Value), size)
	w.say(c, "And now?")
	d, err := w.temporal.DescribeWorkflowExecution(w.ctx, wire.WorkflowID(c.Name()), "")
	require.NoError(t, err)
	require.Less(t, d.GetWorkflowExecutionInfo().GetHistorySizeBytes(), int64(64<<10), "large payloads are references")
	w.replay(c, "")
}
