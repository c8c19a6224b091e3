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
	tools, err := tool.NewSet(tool.Options{Store: w.archive.Store(), Sources: map[string]tool.Source{mcp.Prefix: servers}})
	require.NoError(t, err)
	w.worker(func(o *contexts.Options) { o.Tools = tools })
	c := w.open("mcp-http")
	w.setTools(c, "mcp:everything/echo")
	w.say(c, "Say hello")
	require.Equal(t, []string{"Echo: hello"}, w.model.Requests()[1].Results())
	w.replay(c, "")
}
