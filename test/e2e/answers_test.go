package e2e

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

// bodiesOf returns the bodies of one type in the log of a context.
func bodiesOf[B event.Body](w *world, c *client.Context) (bodies []B) {
	w.t.Helper()
	for _, e := range w.from(c, "") {
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
	w := newWorld(t, llmtest.Calls(p.call("probe", "a"), p.call("probe", "b"), p.call("probe", "c"), p.call("probe", "d")), llmtest.Answer("Done."))
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
	w := newWorld(t, llmtest.Calls(question("colour"), question("size"), question("price")), llmtest.Answer("Done."))
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
