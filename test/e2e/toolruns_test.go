package e2e

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"google.golang.org/protobuf/proto"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

// A turn of many steps continues as new between them.
func TestATurnContinuesAsNewBetweenItsSteps(t *testing.T) {
	t.Parallel()
	p := newProbe(t, echoed)
	const steps = 20
	var w *world
	var c *client.Context
	w = newWorld(t, llmtest.Func(func(r llmtest.Request) llmtest.Step {
		w.awaitArchive(c) // without which a run does not continue as new
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
	c = w.open("many-steps")
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
	w.requireApproval(c, time.Hour)
	turn := w.ask(c, "Look")
	turn.until(isTag(event.TagApprovalRequested))
	w.continueAsNew(c)
	w.send(c, event.New(event.ApprovalDecided{Decision: event.Approve}))
	require.Equal(t, event.TagLLMRequestCompleted, turn.rest().Tag())
	require.Equal(t, []probeCall{{"call_a", "a"}}, p.seen())

	w.requireApproval(c, 5*time.Second)
	turn = w.ask(c, "Again")
	turn.until(isTag(event.TagApprovalRequested))
	w.continueAsNew(c)
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
func TestEachToolCallAddsTheSameToTheHistory_Alone(t *testing.T) {
	large(t)
	const steps = 60
	p := newProbe(t, echoed)
	w := newWorld(t, llmtest.Func(func(r llmtest.Request) llmtest.Step {
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
	turn := w.say(c, strings.Repeat("word", 50_000))
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
func TestCallsOfARunThatMustEndAreLost_Alone(t *testing.T) {
	large(t)
	gate := make(chan struct{})
	p := newProbe(t, held(gate))
	w := newWorld(t, llmtest.Calls(p.call("probe", "a"), p.call("probe_again", "b")), llmtest.Answer("Done."))
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
	w.log(c)
	runs, executed := w.runs(c), map[probeCall]int{}
	for _, call := range p.seen() {
		executed[call]++
	}
	require.Equal(t, 1, executed[probeCall{"call_a", "a"}])
	require.GreaterOrEqual(t, executed[probeCall{"call_b", "b"}], 2)
	require.LessOrEqual(t, executed[probeCall{"call_b", "b"}], len(runs), "once in each run")
	for _, run := range runs {
		w.replayRun(c, run, "")
	}
}
