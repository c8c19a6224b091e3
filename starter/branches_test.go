package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
)

func TestBranchesAreATree(t *testing.T) {
	f := newFake(t)
	at := func(day int) time.Time { return time.Date(2026, 1, day, 15, 4, 5, 0, time.Local) }
	f.branches = client.Branches{
		Contexts: []client.Branch{
			{ContextName: "demo"}, {ContextName: "long-name", ForkedFrom: "demo-2:0010", CreatedAt: at(4)},
			{ContextName: "demo-3", ForkedFrom: "demo:0012", CreatedAt: at(3)}, {ContextName: "demo-2", ForkedFrom: "demo:0006", CreatedAt: at(2)},
		},
		Choices: []client.Choice{}, Incomplete: true,
	}
	require.Equal(t, outcome{0, `CONTEXT        FORKED FROM  CREATED
demo                        
  demo-3       demo:0012    2026-01-03 15:04:05
  demo-2       demo:0006    2026-01-02 15:04:05
    long-name  demo-2:0010  2026-01-04 15:04:05
`, "there are more contexts\n"}, starter(t, f, "", "branches", "-n", "demo"))
	f.branches = client.Branches{Contexts: f.branches.Contexts[:1], Choices: []client.Choice{}}
	require.Equal(t, outcome{0, `{"contexts":[{"contextName":"demo"}],"choices":[]}` + "\n", ""}, starter(t, f, "", "branches", "-n", "demo", "--json"))
	f.err = client.ErrNoContext
	require.Equal(t, exit.NoContext, starter(t, f, "", "branches", "-n", "demo").code)
}

func TestBranchesOfATenantAreATree(t *testing.T) {
	f := newFakeOf(t, "acme/demo")
	f.branches.Contexts = []client.Branch{{ContextName: "acme/demo"}, {ContextName: "acme/demo-2", ForkedFrom: "demo:0006"}}
	require.Equal(t, outcome{0, `CONTEXT        FORKED FROM  CREATED
acme/demo                   
  acme/demo-2  demo:0006    
`, ""}, starter(t, f, "", "branches", "-n", "acme/demo"))
}
