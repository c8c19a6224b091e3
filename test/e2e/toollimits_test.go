package e2e

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/child"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/baseurl"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/tool"
	"github.com/seed-9ed7edd4/chronicle/tool/mcp"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

func TestALargeCallLeavesTheHistorySmall_Alone(t *testing.T) {
	large(t)
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

// priced are the models with a price: 2 microdollars per token of input, and 8 of output.
func (w *world) priced(o *contexts.Options) {
	o.Models = llm.New(llm.Options{
		Getenv:   func(string) string { return "" },
		Defaults: llm.Defaults{ProviderID: "openai", BaseURL: w.model.URL, Model: "scripted"},
		Providers: []llm.Provider{
			{ID: "openai", BaseURL: baseurl.MustParse(w.model.URL), Price: &llm.Price{Input: 2, CachedInput: 1, Output: 8}},
		},
	})
}

func TestAContextStaysWithinItsBudgetOfMoney(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llmtest.Answer("Here I am.").Usage(120, 30))
	w.worker(w.priced)
	c := w.open("money")
	w.send(c, event.New(event.SetRequestSettings{MaxTokens: new(50)}), event.New(event.BudgetSet{CostMicros: new(int64(800))}))
	w.say(c, "Hello?")
	b := exceededIn(t, w.say(c, "And now?"))
	require.Equal(t, event.BudgetOfContext, b.Budget)
	require.Equal(t, event.Budget{CostMicros: new(int64(800))}, b.Limit)
	require.Equal(t, event.Amount{Tokens: 150, CostMicros: 2*120 + 8*30}, b.Used)
	require.Greater(t, b.Wanted.CostMicros, int64(8*50), "the input costs, too")
	require.Len(t, w.model.Requests(), 1, "the attempt was not sent")
	w.replay(c, "")
}

// All contexts of a label spend the same money.
func TestALabelStaysWithinItsDailyBudgetOfMoney(t *testing.T) {
	t.Parallel()
	const limit = 900
	w := newWorld(t, llmtest.Answer("Here I am.").Usage(120, 30), llmtest.Answer("Not of this team.").Usage(120, 30))
	w.worker(w.priced, func(o *contexts.Options) {
		o.Budgets = []activities.LabelBudget{{Label: "team", Value: w.queue, Limit: event.Budget{CostMicros: new(int64(limit))}}}
	})
	first, second, other := w.open("money-first"), w.open("money-second"), w.open("money-other")
	w.send(first, w.labelled(60))
	w.say(first, "Hello?")
	spent := event.Amount{Tokens: 150, CostMicros: 2*120 + 8*30}
	require.Equal(t, spent, w.budgetOf("team", w.queue).Spent)

	w.send(second, w.labelled(60))
	b := exceededIn(t, w.say(second, "And now?"))
	require.Equal(t, "team="+w.queue, b.Budget)
	require.Equal(t, w.budgetOf("team", w.queue).Day, b.Day)
	require.Equal(t, event.Budget{CostMicros: new(int64(limit))}, b.Limit)
	require.Equal(t, spent, b.Used)
	require.Greater(t, spent.CostMicros+b.Wanted.CostMicros, int64(limit))
	require.Len(t, w.model.Requests(), 1, "the attempt was not sent")

	last := w.say(other, "And without the label?")
	require.Equal(t, event.TagLLMRequestCompleted, last[len(last)-1].Tag())
	state := w.budgetOf("team", w.queue)
	require.Equal(t, spent, state.Spent)
	require.Zero(t, state.Reserved)
	w.replayWorkflow(wire.BudgetID("team", w.queue), "", "")
}

func TestRepeatedCallsAndStepsAreLimited(t *testing.T) {
	t.Parallel()
	p := newProbe(t, echoed)
	call := func(id, q string) llmtest.Call {
		c := p.call("probe", q)
		c.ID = id
		return c
	}
	choice := func(want string) func(llmtest.Request) error {
		return func(r llmtest.Request) error {
			if got := fmt.Sprint(r.ToolChoice); got != want {
				return fmt.Errorf("the tool choice is %s, want %s", got, want)
			}
			return nil
		}
	}
	w := newWorld(t,
		llmtest.Calls(call("1", "a")),
		llmtest.Calls(call("2", "a"), call("3", "b")).Expect(choice("<nil>")),
		llmtest.Answer("I insist.").Calls(call("4", "c")).Expect(choice("none")),
		llmtest.Answer("Fine."),
	)
	w.worker()
	c := w.open("limited")
	w.send(c, event.New(event.SetTools{Tools: event.ToolList{{Pattern: "probe"}}, MaxSteps: new(2), MaxRepeats: new(2)}))
	w.say(c, "Look")
	require.Equal(t, []probeCall{{"1", "a"}, {"3", "b"}}, p.seen())
	require.Equal(t, []string{"not executed: the same call was made 1 times in this turn", "result of b"}, w.model.Requests()[2].Results())
	w.say(c, "Why?")
	last := contents(w.model.Requests()[3])
	require.Equal(t, []string{
		"assistant: I insist.", "tool: not executed: the turn has reached its limit of 2 steps", "user: Why?",
	}, last[len(last)-3:])
	w.replay(c, "")
}

func TestPolicyRejectRecordsARejectionWhileToolsRun(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	p := newProbe(t, held(gate))
	w := newWorld(t, llmtest.Calls(p.call("probe", "a")), llmtest.Answer("Done."))
	w.worker()
	c := w.open("tools-reject")
	w.send(c, event.New(event.SetDeliveryPolicy{Policy: event.PolicyReject}), event.New(event.SetTools{Tools: event.ToolList{{Pattern: "*"}}}))
	first := w.ask(c, "Look")
	p.awaitCall(w.ctx)
	second := w.say(c, "And b")
	require.Contains(t, second[len(second)-1].Body.(event.InputRejected).Reason, "policy is reject")
	close(gate)
	require.Equal(t, event.TagLLMRequestCompleted, first.rest().Tag())
	require.Equal(t, []string{"user: Look", "assistant: ", "tool: result of a"}, contents(w.model.Requests()[1]))
	w.replay(c, "")
}

func TestAContextCallsAnMCPServerOverHTTP(t *testing.T) {
	t.Parallel()
	everything := reference(t, "everything")
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := free.Addr().(*net.TCPAddr).Port
	require.NoError(t, free.Close())
	server := exec.Command(everything.Command, append(everything.Args, "streamableHttp")...)
	server.Env = append(os.Environ(), fmt.Sprintf("PORT=%d", port))
	output, err := server.StderrPipe()
	require.NoError(t, err)
	started, err := child.Start(server, child.Options{OwnGroup: true})
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Process.Kill(); <-started.Done() })
	lines := bufio.NewScanner(output)
	for lines.Scan() && !strings.Contains(lines.Text(), "listening on port") {
	}
	require.NoError(t, lines.Err())
	require.Contains(t, lines.Text(), "listening on port")
	w := newWorld(t,
		llmtest.Calls(llmtest.Call{ID: "echo", Name: "mcp__everything__echo", Arguments: `{"message":"hello"}`}).Offered("mcp__everything__echo", "read_result"),
		llmtest.Answer("Done.").Offered("mcp__everything__echo", "read_result"),
	)
	servers, err := mcp.New(mcp.Options{Servers: []mcp.Server{{Name: "everything", URL: fmt.Sprintf("http://127.0.0.1:%d/mcp", port)}}})
	require.NoError(t, err)
	t.Cleanup(servers.Close)
	tools, err := tool.NewSet(tool.Options{Sources: map[string]tool.Source{mcp.Prefix: servers}})
	require.NoError(t, err)
	w.worker(func(o *contexts.Options) { o.Tools = tools })
	c := w.open("mcp-http")
	w.setTools(c, "mcp:everything/echo")
	w.say(c, "Say hello")
	require.Equal(t, []string{"Echo: hello"}, w.model.Requests()[1].Results())
	w.replay(c, "")
}
