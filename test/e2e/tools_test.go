package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/tool"
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
	w.wait(aborted)
	w.replay(c, "tool-interrupted")
}

func TestALargeCallLeavesTheHistorySmall(t *testing.T) {
	t.Parallel()
	const size = 80 << 10
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
	d := w.described(c, "")
	require.Less(t, d.GetWorkflowExecutionInfo().GetHistorySizeBytes(), int64(64<<10), "large payloads are references")
	w.replay(c, "")
}

// withTools replaces the probes by Go functions.
func (w *world) withTools(tools ...tool.Tool) func(*contexts.Options) {
	w.t.Helper()
	set, err := tool.NewSet(tool.Options{}, tools...)
	require.NoError(w.t, err)
	return func(o *contexts.Options) { o.Tools = set }
}

type namedLog struct {
	Name string `json:"name"`
}

var (
	leftOut  = regexp.MustCompile(`\n\n\[The result has \d+ bytes\. Bytes (\d+) to (\d+) are left out: read them with the tool read_result, ref "([0-9a-f]+)" and an offset\.\]\n\n`)
	partRead = regexp.MustCompile(`\n\n\[bytes (\d+) to (\d+) of \d+\]$`)
)

// The model reads what the first result leaves out, one part in each step, until it has everything.
func TestTheModelReadsALargeResultInParts(t *testing.T) {
	t.Parallel()
	var lines []string
	for i := range 20_000 {
		lines = append(lines, fmt.Sprintf("line %d", i))
	}
	whole := strings.Join(lines, "\n")
	require.Greater(t, len(whole), 200_000)
	var head, tail, ref string // head grows
	var left int               // offset of tail
	w := newWorld(t, llmtest.Func(func(r llmtest.Request) llmtest.Step {
		results := r.Results()
		if len(results) == 0 {
			return llmtest.Calls(llmtest.Call{ID: "log", Name: "read_log", Arguments: `{"name":"nightly"}`}).Offered("read_log", tool.ReadResult)
		}
		var from int
		if note := leftOut.FindStringSubmatch(results[0]); note != nil {
			head, tail, _ = strings.Cut(results[0], note[0])
			from, _ = strconv.Atoi(note[1])
			left, _ = strconv.Atoi(note[2])
			ref = note[3]
		} else if part := partRead.FindStringSubmatch(results[0]); part != nil {
			head += strings.TrimSuffix(results[0], part[0])
			from, _ = strconv.Atoi(part[2])
		}
		if from == left {
			return llmtest.Answer("Read.")
		}
		return llmtest.Calls(llmtest.Call{
			ID: fmt.Sprint("part-", from), Name: tool.ReadResult,
			Arguments: fmt.Sprintf(`{"ref":%q,"offset":%d,"limit":%d}`, ref, from, min(24_000, left-from)),
		})
	}))
	readLog := func(context.Context, namedLog) (string, error) { return whole, nil }
	w.worker(w.withTools(tool.Must(tool.New("read_log", "Read a log", readLog))))
	c := w.open("large-result")
	w.setTools(c, "read_log")
	require.Equal(t, "Read.", deltaText(w.say(c, "What does the log say?")))
	require.True(t, head+tail == whole, "the parts are the result")
	results := bodiesOf[event.ToolResult](w, c)
	require.Greater(t, len(results), 5)
	for _, r := range results {
		require.False(t, r.IsError, string(r.Error))
		require.LessOrEqual(t, len(r.Value), tool.DefaultMaxResult*5/4, "the log has what the model receives, as JSON")
	}
	w.replay(c, "")
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
