package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
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

func TestInvalidCallsReturnErrorsToTheModel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llmtest.Calls(
		llmtest.Call{ID: "1", Name: "missing", Arguments: `{}`},
		llmtest.Call{ID: "2", Name: "probe", Arguments: `{"url":`},
		llmtest.Call{ID: "3", Name: "probe", Arguments: `{"q":"a"}`},
		llmtest.Call{ID: "4", Name: "probe", Arguments: `["a"]`},
	), llmtest.Answer("Sorry."))
	w.worker()
	c := w.open("mistakes")
	w.setTools(c, "probe")
	require.Equal(t, "Sorry.", deltaText(w.say(c, "Look")))
	require.Equal(t, []string{
		`user: Look`, `assistant: `,
		`tool: unknown tool "missing" (available: probe)`,
		`tool: invalid arguments: not JSON: unexpected EOF (you wrote: {"url":)`,
		`tool: invalid arguments: root: missing property 'url'`,
		`tool: invalid arguments: want a JSON object (you wrote: ["a"])`,
	}, contents(w.model.Requests()[1]))
	w.replay(c, "tool-mistakes")
}

func TestCallsRunInParallelUpToTheLimit(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	p := newProbe(t, held(gate))
	w := newWorld(t, llmtest.Calls(p.call("probe", "a"), p.call("probe", "b"), p.call("probe", "c")), llmtest.Answer("Done."))
	w.worker()
	c := w.open("parallel")
	w.send(c, event.New(event.SetTools{Tools: event.ToolList{{Pattern: "*"}}, Parallel: new(2)}))
	turn := w.ask(c, "Look")
	p.awaitCall(w.ctx)
	p.awaitCall(w.ctx)
	state, err := c.State(w.ctx)
	require.NoError(t, err)
	require.Len(t, state.Request.Calls, 3)
	require.Len(t, p.seen(), 2, "the third call waits")
	close(gate)
	require.Equal(t, event.TagLLMRequestCompleted, turn.rest().Tag())
	require.Equal(t, []string{"user: Look", "assistant: ", "tool: result of a", "tool: result of b", "tool: result of c"}, contents(w.model.Requests()[1]))
	require.Len(t, p.seen(), 3)
	w.replay(c, "tools-parallel")
}

var askUser = event.Tool{Name: "ask_user", Description: "Ask the user", Parameters: event.Object(`{"type":"object","required":["question"]}`)}

func TestAClientAnswersItsToolByASignal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llmtest.Calls(llmtest.Call{ID: "q", Name: "ask_user", Arguments: `{"question":"Which?"}`}).Offered("ask_user"), llmtest.Answer("Blue it is."))
	w.worker()
	c := w.open("client-tool")
	w.send(c, event.New(event.SetTools{Tools: event.ToolList{askUser}}))
	turn := w.ask(c, "Paint it")
	turn.until(isTag(event.TagLLMAttemptEnded))
	w.signal(c, map[string]any{"_tag": "ToolResult", "toolCallId": "q", "value": "blue"})
	require.Equal(t, event.TagLLMRequestCompleted, turn.rest().Tag())
	require.Equal(t, []string{"user: Paint it", "assistant: ", "tool: blue"}, contents(w.model.Requests()[1]))
	w.replay(c, "tool-of-client")
}

// approval asks for approval of all tools, with an expiry.
func (w *world) requireApproval(c *client.Context, expiry time.Duration) {
	w.t.Helper()
	w.send(c, event.New(event.SetTools{
		Tools: event.ToolList{{Pattern: "*"}}, Approve: event.ApprovalRules{{Tool: "*"}}, ExpiryMs: new(expiry.Milliseconds()),
	}))
}

func TestAnApprovedCallIsMade(t *testing.T) {
	t.Parallel()
	p := newProbe(t, echoed)
	w := newWorld(t, llmtest.Calls(p.call("probe", "a"), p.call("probe", "b")), llmtest.Answer("Done."))
	w.worker()
	c := w.open("approved")
	w.requireApproval(c, time.Hour)
	turn := w.ask(c, "Look")
	turn.until(isTag(event.TagApprovalRequested))
	require.Empty(t, p.seen())
	edited := fmt.Sprintf(`{"url":%q,"q":"edited"}`, p.url)
	w.send(c, event.New(event.ApprovalDecided{ToolCallID: "call_a", Decision: event.Approve, Parameters: json.RawMessage(edited), DecidedBy: "ann"}))
	w.signal(c, map[string]any{"_tag": "ApprovalDecided", "decision": "deny", "reason": "too much"})
	require.Equal(t, event.TagLLMRequestCompleted, turn.rest().Tag())
	require.Equal(t, []string{"user: Look", "assistant: ", "tool: result of edited", "tool: denied: too much"}, contents(w.model.Requests()[1]))
	require.Equal(t, []probeCall{{"call_a", "edited"}}, p.seen())
	require.Contains(t, w.model.Requests()[1].Messages[1].ToolCalls[0].Function.Arguments, `"edited"`, "the model reads the edited arguments")
	w.replay(c, "tool-approved")
}

// The deadline is that of the server; nothing runs until then.
func TestAnApprovalExpires(t *testing.T) {
	t.Parallel()
	p := newProbe(t, echoed)
	w := newWorld(t, llmtest.Calls(p.call("probe", "a")), llmtest.Answer("Nobody answered."))
	w.worker()
	c := w.open("expired")
	w.requireApproval(c, time.Second)
	turn := w.say(c, "Look")
	require.Equal(t, "Nobody answered.", deltaText(turn))
	require.Empty(t, p.seen())
	require.Contains(t, contents(w.model.Requests()[1])[2], "tool: expired")
	w.replay(c, "tool-expired")
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

func TestAPersonInterruptsRunningTools(t *testing.T) {
	t.Parallel()
	p := newProbe(t, held(nil))
	w := newWorld(t, llmtest.Calls(p.call("probe", "a")))
	w.worker()
	c := w.open("stopped")
	w.setTools(c, "*")
	turn := w.ask(c, "Look")
	p.awaitCall(w.ctx)
	require.NoError(t, c.Interrupt(w.ctx))
	require.Equal(t, event.ReasonCancelled, turn.rest().Body.(event.LLMRequestInterrupted).Reason)
	w.replay(c, "tool-stopped")
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

func TestPoliciesWhileToolsRun(t *testing.T) {
	t.Parallel()
	for policy, want := range map[event.Policy][]string{
		event.PolicySteer: {
			"user: Look|assistant: |tool: result of a|user: And b",
		},
		event.PolicyQueue: {
			"user: Look|assistant: |tool: result of a",
			"user: Look|assistant: |tool: result of a|assistant: Done.|user: And b",
		},
	} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			gate := make(chan struct{})
			p := newProbe(t, held(gate))
			steps := []llmtest.Step{llmtest.Calls(p.call("probe", "a"))}
			for range want {
				steps = append(steps, llmtest.Answer("Done."))
			}
			w := newWorld(t, steps...)
			w.worker()
			c := w.open("policy-" + string(policy))
			w.send(c, event.New(event.SetDeliveryPolicy{Policy: policy}), event.New(event.SetTools{Tools: event.ToolList{{Pattern: "*"}}}))
			w.ask(c, "Look")
			p.awaitCall(w.ctx)
			second := w.ask(c, "And b")
			close(gate)
			require.Equal(t, event.TagLLMRequestCompleted, second.rest().Tag())
			var got []string
			for _, r := range w.model.Requests()[1:] {
				got = append(got, strings.Join(contents(r), "|"))
			}
			require.Equal(t, want, got)
			w.replay(c, "tool-policy-"+string(policy))
		})
	}
}
