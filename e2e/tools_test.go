package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"google.golang.org/protobuf/proto"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/wire"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

// probes are the tools of all workers: probe and probe_again, which is idempotent. Both send the
// call to the URL in their arguments and return the response.
type probes struct{}

var probeParameters = event.Object(`{"type":"object","properties":{"url":{"type":"string"},"q":{"type":"string"}},"required":["url"],"additionalProperties":false}`)

func (probes) Offer(_ context.Context, r activities.OfferRequest) (tools []activities.Tool, err error) {
	for _, tool := range []activities.Tool{{}, {Idempotent: true}} {
		tool.ToolDefinition = activities.ToolDefinition{Name: "probe", Description: "Ask a test", Parameters: probeParameters}
		if tool.Idempotent {
			tool.Name = "probe_again"
		}
		if slices.ContainsFunc(r.Config.Tools, func(t event.Tool) bool { return !t.IsClient() && event.MatchTool(t.Pattern, tool.Name) }) {
			tools = append(tools, tool)
		}
	}
	return tools, nil
}

func (probes) Call(ctx context.Context, r activities.ToolCallRequest) activities.ToolCallResult {
	fail := func(err error) activities.ToolCallResult {
		text, _ := json.Marshal(err.Error())
		return activities.ToolCallResult{Error: text, IsError: true}
	}
	var in struct{ URL, Q string }
	if err := json.Unmarshal(r.Arguments, &in); err != nil {
		return fail(err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, in.URL, strings.NewReader(in.Q))
	if err != nil {
		return fail(err)
	}
	request.Header.Set("Idempotency-Key", r.ToolCallID)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fail(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return fail(err)
	}
	value, _ := json.Marshal(string(body))
	return activities.ToolCallResult{Value: value}
}

// probe is the server that the probes call.
type probe struct {
	t      *testing.T
	url    string
	answer func(ctx context.Context, q string) string

	mu    sync.Mutex
	calls []probeCall
	new   chan struct{}
}

type probeCall struct{ id, q string }

// newProbe returns a server whose answers are computed from the argument q.
func newProbe(t *testing.T, answer func(ctx context.Context, q string) string) *probe {
	p := &probe{t: t, answer: answer, new: make(chan struct{}, 1000)}
	done := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q, err := io.ReadAll(r.Body)
		if err != nil {
			return // the caller was killed
		}
		p.mu.Lock()
		p.calls = append(p.calls, probeCall{r.Header.Get("Idempotency-Key"), string(q)})
		p.mu.Unlock()
		p.new <- struct{}{}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		go func() {
			select {
			case <-done:
				cancel()
			case <-ctx.Done():
			}
		}()
		_, _ = fmt.Fprint(w, answer(ctx, string(q)))
	}))
	t.Cleanup(func() {
		close(done)
		s.Close()
	})
	p.url = s.URL
	return p
}

// awaitCall waits until a further call has arrived.
func (p *probe) awaitCall(ctx context.Context) {
	p.t.Helper()
	select {
	case <-p.new:
	case <-ctx.Done():
		p.t.Fatal("the tool was not called")
	}
}

func (p *probe) seen() []probeCall {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.calls)
}

// call is a call of a probe with the argument q.
func (p *probe) call(tool, q string) llmtest.Call {
	arguments, err := json.Marshal(map[string]string{"url": p.url, "q": q})
	require.NoError(p.t, err)
	return llmtest.Call{ID: "call_" + q, Name: tool, Arguments: string(arguments)}
}

func echoed(_ context.Context, q string) string { return "result of " + q }

// held answers when the gate opens, and not if it is cancelled before.
func held(gate <-chan struct{}) func(context.Context, string) string {
	return func(ctx context.Context, q string) string {
		select {
		case <-gate:
			return "result of " + q
		case <-ctx.Done():
			panic(http.ErrAbortHandler)
		}
	}
}

// setTools allows tools of the worker.
func (w *world) setTools(c *client.Context, patterns ...string) {
	w.t.Helper()
	var set event.SetTools
	for _, pattern := range patterns {
		set.Tools = append(set.Tools, event.Tool{Pattern: pattern})
	}
	w.send(c, event.New(set))
}

// signal sends an event as any Temporal client can.
func (w *world) signal(c *client.Context, input map[string]any) {
	w.t.Helper()
	require.NoError(w.t, w.temporal.SignalWorkflow(w.ctx, wire.WorkflowID(c.Name()), "", wire.SignalEvent, input))
}

func TestAToolIsCalled(t *testing.T) {
	t.Parallel()
	p := newProbe(t, echoed)
	w := newWorld(t, llmtest.Answer("Let me look.").Calls(p.call("probe", "a")).Offered("probe"), llmtest.Answer("Done.").Offered("probe"))
	w.worker()
	c := w.open("tool")
	w.setTools(c, "probe")
	turn := w.say(c, "Look")
	require.Equal(t, "Done.", deltaText(turn), "the deltas of a step replace those of the one before")
	require.Equal(t, story(`
		SessionStarted after 0
		SetTools probe
		UserMessage "Look"
		LLMRequestStarted 1 scripted attempt 1
		AssistantMessage "Let me look."
		ToolCall call_a probe
		LLMAttemptEnded 1 tool_calls
		ToolResult call_a "result of a"
		LLMRequestStarted 1 scripted attempt 2
		AssistantMessage "Done."
		LLMRequestCompleted 1 stop
	`), withoutPositions(w.log(c)))
	require.Equal(t, []probeCall{{"call_a", "a"}}, p.seen())
	require.Equal(t, []string{"user: Look", "assistant: Let me look.", "tool: result of a"}, contents(w.model.Requests()[1]))
	w.usageOf(c)
	w.replay(c, "tool")
}

func TestMistakesOfTheModelAreResults(t *testing.T) {
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

func TestAKilledWorkerDuringACall(t *testing.T) {
	t.Parallel()
	for tool, want := range map[string]string{"probe": "tool: interrupted, outcome unknown", "probe_again": "tool: result of a"} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			gate := make(chan struct{})
			p := newProbe(t, held(gate))
			w := newWorldOn(t, environment{timeout: faultTimeout}, llmtest.Calls(p.call(tool, "a")), llmtest.Answer("Done."))
			first := w.process(contexts.Both)
			c := w.open("killed-" + tool)
			w.setTools(c, "*")
			turn := w.ask(c, "Look")
			p.awaitCall(w.ctx)
			first.kill()
			close(gate)
			w.process(contexts.Both)
			require.Equal(t, event.TagLLMRequestCompleted, turn.rest().Tag())
			require.Equal(t, want, contents(w.model.Requests()[1])[2])
			calls := []probeCall{{"call_a", "a"}}
			if tool == "probe_again" {
				calls = append(calls, calls[0])
			}
			require.Equal(t, calls, p.seen())
			require.Equal(t, 1, countOf(w, c, event.TagToolResult))
			w.replay(c, "killed-during-"+tool)
		})
	}
}

func TestAKilledWorkerBeforeAndAfterACall(t *testing.T) {
	t.Parallel()
	p := newProbe(t, echoed)
	w := newWorldOn(t, environment{timeout: faultTimeout},
		llmtest.Calls(p.call("probe", "a")),
		llmtest.Answer("Do", "ne.").HoldAfter(1, llmtest.NewGate()),
		llmtest.Answer("Done."),
	)
	first := w.process(contexts.Both)
	c := w.open("killed-around")
	w.requireApproval(c, time.Hour)
	turn := w.ask(c, "Look")
	turn.until(isTag(event.TagApprovalRequested))
	first.kill()
	_, err := c.Send(w.ctx, event.New(event.ApprovalDecided{Decision: event.Approve}))
	require.NoError(t, err)
	second := w.process(contexts.Both)
	turn.until(isTag(event.TagToolResult))
	_, err = w.model.Request(w.ctx, 2)
	require.NoError(t, err)
	second.kill()
	w.process(contexts.Both)
	require.Equal(t, event.TagLLMRequestCompleted, turn.rest().Tag())
	require.Equal(t, []string{"user: Look", "assistant: ", "tool: result of a"}, contents(w.model.Requests()[2]))
	require.Equal(t, []probeCall{{"call_a", "a"}}, p.seen())
	w.replay(c, "killed-around-call")
}

// A turn of many steps continues as new between them.
func TestATurnContinuesAsNewBetweenItsSteps(t *testing.T) {
	t.Parallel()
	p := newProbe(t, echoed)
	const steps = 20
	w := newWorld(t, llmtest.Func(func(r llmtest.Request) llmtest.Step {
		calls := 0
		for _, m := range r.Messages {
			calls += len(m.ToolCalls)
		}
		if calls == steps {
			return llmtest.Answer("Done.")
		}
		return llmtest.Calls(p.call("probe", fmt.Sprint(calls)))
	}))
	w.worker(shortRuns)
	c := w.open("many-steps")
	w.send(c, event.New(event.SetTools{Tools: event.ToolList{{Pattern: "*"}}, MaxSteps: new(100)}))
	turn := w.say(c, "Look")
	require.Equal(t, event.TagLLMRequestCompleted, turn[len(turn)-1].Tag())
	require.Equal(t, "Done.", deltaText(turn))
	require.Len(t, p.seen(), steps)
	require.Greater(t, len(w.runs(c)), 2)
	w.log(c)
	w.usageOf(c)
	stories := []string{"tools-continued", "tools-continued-between"}
	for _, run := range w.runs(c) {
		w.replayRun(c, run, append(stories, "")[0])
		stories = stories[min(1, len(stories)):]
	}
}

func TestAWaitingApprovalSurvivesContinueAsNew(t *testing.T) {
	t.Parallel()
	p := newProbe(t, echoed)
	w := newWorld(t, llmtest.Calls(p.call("probe", "a")), llmtest.Answer("Done."), llmtest.Calls(p.call("probe", "b")), llmtest.Answer("Expired."))
	w.worker(shortRuns)
	c := w.open("waiting")
	continueAsNew := func() {
		before := len(w.runs(c))
		for len(w.runs(c)) == before {
			w.send(c, note("", "x"))
		}
	}
	w.requireApproval(c, time.Hour)
	turn := w.ask(c, "Look")
	turn.until(isTag(event.TagApprovalRequested))
	continueAsNew()
	w.send(c, event.New(event.ApprovalDecided{Decision: event.Approve}))
	require.Equal(t, event.TagLLMRequestCompleted, turn.rest().Tag())
	require.Equal(t, []probeCall{{"call_a", "a"}}, p.seen())

	w.requireApproval(c, 5*time.Second)
	turn = w.ask(c, "Again")
	turn.until(isTag(event.TagApprovalRequested))
	continueAsNew()
	require.Equal(t, event.TagLLMRequestCompleted, turn.rest().Tag())
	require.Len(t, p.seen(), 1)
	stories := []string{"approval-expired-later", "approval-continued", "approval-given-later"}
	for _, run := range w.runs(c) {
		w.replayRun(c, run, append(stories, "")[0])
		stories = stories[min(1, len(stories)):]
	}
}

// The history of a step does not depend on the length of the conversation, nor on the number of
// steps before it. A loop that passes the messages to its activities would record each time what
// the model receives.
func TestEachToolCallAddsTheSameToTheHistory(t *testing.T) {
	large(t)
	const steps = 100
	p := newProbe(t, echoed)
	w := newWorldOn(t, environment{timeout: largeTimeout}, llmtest.Func(func(r llmtest.Request) llmtest.Step {
		calls := 0
		for _, m := range r.Messages {
			calls += len(m.ToolCalls)
		}
		if calls == steps {
			return llmtest.Answer("Done.")
		}
		return llmtest.Calls(p.call("probe", fmt.Sprint(100+calls)))
	}))
	w.worker()
	c := w.open("linear")
	w.send(c, event.New(event.SetTools{Tools: event.ToolList{{Pattern: "probe"}}, MaxSteps: new(steps)}))
	turn := w.say(c, strings.Repeat("word", 200_000))
	require.Equal(t, event.TagLLMRequestCompleted, turn[len(turn)-1].Tag())
	require.Len(t, p.seen(), steps)

	// A step begins with its call.
	type size struct{ entries, bytes int }
	var sizes []size
	history := w.temporal.GetWorkflowHistory(w.ctx, wire.WorkflowID(c.Name()), "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		h, err := history.Next()
		require.NoError(t, err)
		if h.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName() == "CallTool" {
			sizes = append(sizes, size{})
		}
		if n := len(sizes); n > 0 {
			sizes[n-1].entries++
			sizes[n-1].bytes += proto.Size(h)
		}
	}
	require.Len(t, sizes, steps)
	// On a busy machine, some requests take long enough to be announced by a signal.
	smallest := func(sizes []size) size {
		return slices.MinFunc(sizes, func(a, b size) int { return cmp.Compare(a.bytes, b.bytes) })
	}
	early, late := smallest(sizes[:steps/2]), smallest(sizes[steps/2:steps-1])
	requests := w.model.Requests()
	t.Logf("a call in the first half: %d entries, %d bytes; in the second half: %d entries, %d bytes; the last request: %d bytes",
		early.entries, early.bytes, late.entries, late.bytes, len(requests[steps].Body))
	require.Equal(t, early.entries, late.entries)
	require.InDelta(t, early.bytes, late.bytes, 200, "ids and numbers have more digits")
	w.replay(c, "")
}

// A run that the server would terminate does not wait for its calls.
func TestCallsOfARunThatMustEndAreLost(t *testing.T) {
	large(t)
	gate := make(chan struct{})
	p := newProbe(t, held(gate))
	w := newWorldOn(t, environment{timeout: largeTimeout}, llmtest.Calls(p.call("probe", "a"), p.call("probe_again", "b")), llmtest.Answer("Done."))
	w.worker()
	c := w.open("must-end")
	w.setTools(c, "*")
	turn := w.ask(c, "Look")
	p.awaitCall(w.ctx)
	p.awaitCall(w.ctx)
	plain := w.dial(nil)
	note := event.New(event.Note{Kind: event.NoteSystem, Content: strings.Repeat("x", 400_000)})
	for len(w.runs(c)) < 2 {
		err := plain.SignalWorkflow(w.ctx, wire.WorkflowID(c.Name()), "", wire.SignalEvent, note)
		require.True(t, err == nil || isDelayed(err), "%v", err)
	}
	p.awaitCall(w.ctx)
	close(gate)
	require.Equal(t, event.TagLLMRequestCompleted, turn.rest().Tag())
	require.Equal(t, []string{"user: Look", "assistant: ", "tool: interrupted, outcome unknown", "tool: result of b"}, contents(w.model.Requests()[1]))
	require.ElementsMatch(t, []probeCall{{"call_a", "a"}, {"call_b", "b"}, {"call_b", "b"}}, p.seen())
	w.log(c)
	for _, run := range w.runs(c) {
		w.replayRun(c, run, "")
	}
}
