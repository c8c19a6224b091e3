package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
)

func TestBranchesAreATree(t *testing.T) {
	f := newFake(t)
	at := func(day int) time.Time { return time.Date(2026, 1, day, 15, 4, 5, 0, time.Local) }
	f.branches = client.Branches{
		Contexts: []client.Branch{
			{ContextName: "demo", Preview: "Hello"}, {ContextName: "long-name", ForkedFrom: "demo-2:0010", CreatedAt: at(4)},
			{ContextName: "demo-3", ForkedFrom: "demo:0012", CreatedAt: at(3), Title: "Shorter answers", Preview: "And?"}, {ContextName: "demo-2", ForkedFrom: "demo:0006", CreatedAt: at(2)},
		},
		Choices: []client.Choice{}, Incomplete: true,
	}
	require.Equal(t, outcome{0, `CONTEXT        FORKED FROM  CREATED              TITLE
demo                                             Hello
  demo-3       demo:0012    2026-01-03 15:04:05  Shorter answers
  demo-2       demo:0006    2026-01-02 15:04:05  
    long-name  demo-2:0010  2026-01-04 15:04:05  
`, "there are more contexts\n"}, starter(t, f, "", "branches", "-n", "demo"))
	f.branches = client.Branches{Contexts: f.branches.Contexts[:1], Choices: []client.Choice{}}
	require.Equal(t, outcome{0, `{"contexts":[{"contextName":"demo","preview":"Hello"}],"choices":[]}` + "\n", ""}, starter(t, f, "", "branches", "-n", "demo", "--json"))
	f.err = client.ErrNoContext
	require.Equal(t, exit.NoContext, starter(t, f, "", "branches", "-n", "demo").code)
}

func TestBranchesOfATenantAreATree(t *testing.T) {
	f := newFakeOf(t, "acme/demo")
	f.branches.Contexts = []client.Branch{{ContextName: "acme/demo"}, {ContextName: "acme/demo-2", ForkedFrom: "demo:0006"}}
	require.Equal(t, outcome{0, `CONTEXT        FORKED FROM  CREATED  TITLE
acme/demo                            
  acme/demo-2  demo:0006             
`, ""}, starter(t, f, "", "branches", "-n", "acme/demo"))
}

func TestBranchesAreComparedSideBySide(t *testing.T) {
	demo, fork, other := newFakeOf(t, "acme/demo"), newFakeOf(t, "acme/demo-2"), newFakeOf(t, "acme/other")
	for _, f := range []*fakeContext{demo, fork} {
		f.recordBodies(event.SessionStarted{}, event.UserMessage{Content: "Which?"})
	}
	demo.recordBodies(event.AssistantMessage{Content: "The red one, because it is the larger of the two."}, event.LLMRequestCompleted{RequestID: "demo:r0001"})
	fork.recordBodies(event.SessionStarted{ForkedFrom: "demo:0002"}, event.SetProviderConfig{ProviderID: "openai", Model: "gpt-4o"}, event.AssistantMessage{Content: "Blue."})
	other.recordBodies(event.UserMessage{Content: "Hello"})
	c := &fakeClient{context: demo, others: []*fakeContext{fork, other}}
	compare := func(args ...string) outcome {
		return starterWith(t, t.Context(), c, strings.NewReader(""), append([]string{"branches", "-n", "acme/demo", "--compare"}, args...)...)
	}
	require.Equal(t, outcome{0, `after demo:0002
acme/demo                              │ acme/demo-2
assistant: The red one, because it is  │ set provider: openai gpt-4o
the larger of the two.                 │
                                       │ assistant: Blue.
`, ""}, compare("acme/demo-2"))
	got := compare("acme/demo-2", "--json")
	require.Contains(t, got.out, `{"after":"demo:0002","contexts":[{"contextName":"acme/demo","events":[{"_tag":"AssistantMessageEvent","id":"demo:0003"`)
	require.Equal(t, 1, strings.Count(got.out, "\n"))

	got = compare("acme/other")
	require.Equal(t, exit.Failure, got.code)
	require.Contains(t, got.errOut, "compare contexts acme/demo and acme/other: they share no event")
	require.Equal(t, exit.Usage, compare("..").code)
}
