package e2e

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

func TestAForkIsIndependentOfItsOrigin(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llmtest.Func(echo))
	w.worker(shortRuns)
	c := w.open("origin")
	for w.say(c, "Hello"); len(w.runs(c)) < 2; {
		w.say(c, "Hello again")
	}
	said := w.say(c, "Is this in the history alone?")
	at := said[len(said)-1].ID
	archived := archivedThrough(w, w.archive, c)
	require.Less(t, archived, event.Counter(at))
	shared := w.starter("", "export", "-n", c.Name())
	w.say(c, "This is the origin's")

	fork := w.open("fork")
	w.starter("", "fork", "-n", c.Name(), "--at", at, "--as", fork.Name())
	w.say(fork, "This is the fork's")
	log := w.starter("", "export", "-n", fork.Name())
	require.True(t, strings.HasPrefix(log, strings.ReplaceAll(shared, c.Name(), fork.Name())), log)
	own := w.from(fork, event.FormatID(fork.Name(), event.Counter(at)))
	require.Equal(t, event.SessionStarted{LoadedEventCount: event.Counter(at), ForkedFrom: at}, own[0].Body)
	require.Equal(t, "This is the fork's", own[1].Body.(event.UserMessage).Content)
	require.Contains(t, w.log(c), "This is the origin's")
	require.NotContains(t, w.log(c), "This is the fork's")

	// A new session of the fork must not change where it begins.
	w.close(fork, "for today")
	w.say(fork, "And on")
	require.Equal(t, 1, strings.Count(w.starter("", "export", "-n", fork.Name()), `"forkedFrom":"`+at+`"`))
	require.Contains(t, w.starter("", "verify", "-n", fork.Name()), "ok: ")
	require.Contains(t, w.starter("", "verify", "-n", c.Name()), "ok: ")
	_, errOut, err := w.tryStarter("", "fork", "-n", c.Name(), "--at", at, "--as", fork.Name())
	require.Error(t, err)
	require.Contains(t, errOut, "context already exists (choose another name)")
}

func TestAForkWithinARequestInterruptsIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llmtest.Func(echo))
	w.worker()
	c := w.open("whole")
	said := w.say(c, "Hello", event.New(event.SetDeliveryPolicy{Policy: event.PolicyQueue}))
	var started event.Event
	for _, e := range said {
		if e.Tag() == event.TagLLMRequestStarted {
			started = e
		}
	}
	fork := w.open("cut")
	require.NoError(t, c.Fork(w.ctx, started.ID, fork.Name()))
	w.await(fork, func(e event.Event) bool { return e.Tag() == event.TagLLMRequestInterrupted })
	own := w.from(fork, event.FormatID(fork.Name(), event.Counter(started.ID)))
	require.Len(t, own, 2)
	require.Equal(t, started.ID, own[0].Body.(event.SessionStarted).ForkedFrom)
	require.Equal(t, started.MovedTo(fork.Name()).Body.(event.LLMRequestStarted).RequestID, own[1].Body.(event.LLMRequestInterrupted).RequestID)
	again := w.say(fork, "Hello again")
	require.Equal(t, event.TagLLMRequestCompleted, again[len(again)-1].Tag())
	require.Equal(t, 1, w.usageOf(fork).Attempts, "the other attempt is that of the original")
}

// A conversation is branched after a tool has been called, and while one runs, in a context of several runs.
func TestABranchRepeatsNoSideEffect(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	p := newProbe(t, func(ctx context.Context, q string) string {
		if q == "Hold" {
			return held(gate)(ctx, q)
		}
		return "found"
	})
	w := newWorld(t, llmtest.Func(func(r llmtest.Request) llmtest.Step {
		last := r.Messages[len(r.Messages)-1]
		if last.Role == "user" && (last.Content == "Look" || last.Content == "Hold") {
			return llmtest.Calls(p.call("probe", last.Content))
		}
		return llmtest.Answer(r.Model, " read ", last.Content)
	}))
	w.worker(shortRuns)
	c := w.open("branched")
	w.setTools(c, "*")
	look := w.say(c, "Look")
	for len(w.runs(c)) < 2 {
		w.say(c, "Hello")
	}
	var question, answer event.Event
	for _, e := range look {
		switch body := e.Body.(type) {
		case event.UserMessage:
			question = e
		case event.AssistantMessage:
			if body.Content != "" {
				answer = e
			}
		}
	}
	before := w.model.Requests()
	open := func(name string) *client.Context {
		opened, err := w.client.Open(name)
		require.NoError(t, err)
		return opened
	}
	ended := func(e event.Event) bool {
		return e.Tag() == event.TagLLMRequestCompleted || e.Tag() == event.TagLLMRequestFailed
	}

	other := event.New(event.SetProviderConfig{ProviderID: "other", Model: "other", BaseURL: w.model.URL})
	again, err := c.Branch(w.ctx, client.BranchOptions{Regenerate: answer.ID, Events: []event.Event{other}})
	require.NoError(t, err)
	require.Equal(t, c.Name()+"-2", again.ContextName)
	fork := open(again.ContextName)
	w.await(fork, ended)
	require.Contains(t, w.log(fork), `AssistantMessage "other read found"`)
	require.Equal(t, contents(before[1]), contents(w.model.Requests()[len(before)]), "the model has the same messages")
	require.Len(t, p.seen(), 1, "the tool is not called again")

	edited, err := c.Branch(w.ctx, client.BranchOptions{Before: question.ID, Events: []event.Event{event.New(event.UserMessage{Content: "Say hi"})}})
	require.NoError(t, err)
	w.await(open(edited.ContextName), ended)
	require.Equal(t, []string{"user: Say hi"}, contents(w.model.Requests()[len(before)+1]))

	turn := w.ask(c, "Hold")
	turn.until(isTag(event.TagToolCall))
	p.awaitCall(w.ctx)
	p.awaitCall(w.ctx)
	call := turn.seen[len(turn.seen)-1]
	require.Equal(t, event.TagToolCall, call.Tag())
	running, err := c.Branch(w.ctx, client.BranchOptions{At: call.ID})
	require.NoError(t, err)
	cut := open(running.ContextName)
	w.await(cut, isTag(event.TagLLMRequestInterrupted))
	require.Contains(t, w.log(cut), event.OutcomeUnknown)
	w.say(cut, "And?")
	close(gate)
	require.Equal(t, event.TagLLMRequestCompleted, turn.rest().Tag())
	require.Len(t, p.seen(), 2, "a fork calls no tool that ran in its origin")

	branches, err := cut.Branches(w.ctx)
	require.NoError(t, err)
	require.Len(t, branches.Contexts, 4)
	require.Equal(t, []client.Choice{
		{After: event.FormatID(cut.Name(), event.Counter(edited.ForkedFrom)), Contexts: []string{cut.Name(), edited.ContextName}},
		{After: event.FormatID(cut.Name(), event.Counter(again.ForkedFrom)), Contexts: []string{cut.Name(), again.ContextName}},
		{After: event.FormatID(cut.Name(), event.Counter(call.ID)), Contexts: []string{c.Name(), cut.Name()}},
	}, branches.Choices)

	w.close(cut, "for today")
	w.say(cut, "And on")
	described, err := w.temporal.DescribeWorkflowExecution(w.ctx, wire.WorkflowID(cut.Name()), "")
	require.NoError(t, err)
	require.Equal(t, c.Name(), wire.RootOf(described.GetWorkflowExecutionInfo().GetMemo()), "lists show a fork under its root")
	require.Contains(t, w.starter("", "verify", "-n", cut.Name()), "ok: ")
}

func (w *world) from(c *client.Context, id string) (events []event.Event) {
	w.t.Helper()
	for e, err := range c.Events(w.ctx, id) {
		require.NoError(w.t, err)
		events = append(events, e)
	}
	return events
}
