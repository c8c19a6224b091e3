package e2e

import (
	"context"
	"iter"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

// bodiesOf returns the bodies of one type in the log of a context.
func bodiesOf[B event.Body](w *world, c *client.Context) (bodies []B) {
	w.t.Helper()
	for e, err := range c.Events(w.ctx, "") {
		require.NoError(w.t, err)
		if body, ok := e.Body.(B); ok {
			bodies = append(bodies, body)
		}
	}
	return bodies
}

func (b *browser) accepts(body, key string) {
	b.w.t.Helper()
	status, answer := b.post(body, key)
	require.Equal(b.w.t, http.StatusAccepted, status, answer)
}

func TestApprovalsAreDecidedOnTheCommandLineAndOverHTTP(t *testing.T) {
	t.Parallel()
	p := newProbe(t, echoed)
	w := newWorldOn(t, environment{timeout: buildTimeout},
		llmtest.Calls(p.call("probe", "a"), p.call("probe", "b"), p.call("probe", "c"), p.call("probe", "d")), llmtest.Answer("Done."))
	w.worker()
	c := w.open("decided")
	w.requireApproval(c, time.Hour)
	turn := w.ask(c, "Look")
	turn.until(func(e event.Event) bool {
		requested, ok := e.Body.(event.ApprovalRequested)
		return ok && requested.ToolCallID == "call_d"
	})
	require.Contains(t, w.starter("", "approve", "-n", c.Name(), "call_a", "--by", "ann"), "approved: probe ")
	b := w.browser(c)
	b.accepts(`{"_tag":"ApprovalDecidedEvent","toolCallId":"call_b","decision":"approve","decidedBy":"bob"}`, "b")
	b.accepts(`{"_tag":"ApprovalDecidedEvent","toolCallId":"call_c","decision":"deny","reason":"too much","decidedBy":"bob"}`, "c")
	require.Contains(t, w.starter("", "deny", "-n", c.Name(), "--reason", "never", "--by", "eve"), "(call_d)", "the only call that waits")
	require.Equal(t, event.TagLLMRequestCompleted, turn.rest().Tag())
	require.Equal(t, []string{"result of a", "result of b", "denied: too much", "denied: never"}, w.model.Requests()[1].Results())
	require.ElementsMatch(t, []probeCall{{"call_a", "a"}, {"call_b", "b"}}, p.seen())
	require.Equal(t, []event.ApprovalDecided{
		{ToolCallID: "call_a", Decision: event.Approve, DecidedBy: "ann"},
		{ToolCallID: "call_b", Decision: event.Approve, DecidedBy: "bob"},
		{ToolCallID: "call_c", Decision: event.Deny, Reason: "too much", DecidedBy: "bob"},
		{ToolCallID: "call_d", Decision: event.Deny, Reason: "never", DecidedBy: "eve"},
	}, bodiesOf[event.ApprovalDecided](w, c))
	_, errOut, err := w.tryStarter("", "approve", "-n", c.Name(), "call_c")
	require.Error(t, err, "the call is denied")
	require.Contains(t, errOut, "no call waits for an approval")
	w.replay(c, "")
}

func TestAClientsToolIsAnsweredOnTheCommandLineAndOverHTTP(t *testing.T) {
	t.Parallel()
	question := func(id string) llmtest.Call {
		return llmtest.Call{ID: id, Name: askUser.Name, Arguments: `{"question":"` + id + `?"}`}
	}
	w := newWorldOn(t, environment{timeout: buildTimeout},
		llmtest.Calls(question("colour"), question("size"), question("price")), llmtest.Answer("Done."))
	w.worker()
	c := w.open("answered")
	w.send(c, event.New(event.SetTools{Tools: event.ToolList{askUser}}))
	turn := w.ask(c, "Paint it")
	turn.until(isTag(event.TagLLMAttemptEnded))
	require.Contains(t, w.starter("", "result", "-n", c.Name(), "colour", `{"name":"blue"}`), `tool result: {"name":"blue"}`)
	w.browser(c).accepts(`{"_tag":"ToolResultEvent","toolCallId":"size","value":"large"}`, "size")
	w.starter("", "result", "-n", c.Name(), "price", `"the shop is closed"`, "--error")
	require.Equal(t, event.TagLLMRequestCompleted, turn.rest().Tag())
	require.Equal(t, []string{`{"name":"blue"}`, "large", "the shop is closed"}, w.model.Requests()[1].Results())
	w.replay(c, "")
}

// The deadline is that of the server. No client answers until then.
func TestAQuestionToAClientExpires(t *testing.T) {
	t.Parallel()
	w := newWorldOn(t, environment{timeout: buildTimeout},
		llmtest.Calls(llmtest.Call{ID: "q", Name: askUser.Name, Arguments: `{"question":"Which?"}`}), llmtest.Answer("Nobody answered."))
	w.worker()
	c := w.open("unanswered")
	w.send(c, event.New(event.SetTools{Tools: event.ToolList{askUser}, ExpiryMs: new(int64(1000))}))
	require.Equal(t, "Nobody answered.", deltaText(w.say(c, "Paint it")))
	results := w.model.Requests()[1].Results()
	require.Len(t, results, 1)
	require.Contains(t, results[0], "expired: no result")
	_, errOut, err := w.tryStarter("", "result", "-n", c.Name(), "q", `"blue"`)
	require.Error(t, err, "the call no longer waits")
	require.Contains(t, errOut, "no call waits for a client's result")
	w.replay(c, "")
}

// reporting are probes that report progress before they send the call.
type reporting struct{ probes }

func (reporting) Call(ctx context.Context, r activities.ToolCallRequest) activities.ToolCallResult {
	r.Progress("about to ask")
	return probes{}.Call(ctx, r)
}

// The gates hold the turn until the follower has what precedes them.
func TestFollowYieldsTheProgressOfATool(t *testing.T) {
	t.Parallel()
	answer, result := llmtest.NewGate(), make(chan struct{})
	p := newProbe(t, held(result))
	w := newWorld(t, llmtest.Answer("Let me", " look.").HoldAfter(1, answer).Calls(p.call("probe", "a")), llmtest.Answer("Done."))
	w.worker(func(o *contexts.Options) { o.Tools = reporting{} })
	c := w.open("progress")
	w.setTools(c, "*")
	asked := w.ask(c, "Look")
	next, stop := iter.Pull2(c.Follow(w.ctx, client.FollowOptions{Deltas: true}))
	defer stop()
	follower := &turn{w: w, next: next}
	follower.until(isTag(event.TagTextDelta))
	answer.Open()
	follower.until(isTag(event.TagToolProgress))
	progress := follower.seen[len(follower.seen)-1].Body.(event.ToolProgress)
	require.Equal(t, event.ToolProgress{RequestID: progress.RequestID, ToolCallID: "call_a", Index: progress.Index, Text: "about to ask"}, progress)
	require.Equal(t, 1, event.RequestNumber(progress.RequestID))
	close(result)
	follower.until(isTag(event.TagLLMRequestCompleted))
	require.Equal(t, "Done.", deltaText(follower.seen))
	require.Equal(t, event.TagLLMRequestCompleted, asked.rest().Tag())
	require.Empty(t, bodiesOf[event.ToolProgress](w, c), "progress is not recorded")
	w.replay(c, "")
}
