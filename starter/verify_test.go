package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
)

func TestVerifyReportsProblems(t *testing.T) {
	f := newFake(t)
	f.verification = client.Verification{ContextName: "demo", Events: 7, Segments: 2, InHistory: 3, Problems: []client.Problem{}}
	require.Equal(t, outcome{0, "ok: 7 events in 2 segments, 3 in the history of the current run\n", ""}, starter(t, f, "", "verify", "-n", "demo"))
	require.Equal(t, outcome{0, `{"contextName":"demo","events":7,"segments":2,"inHistory":3,"problems":[]}` + "\n", ""},
		starter(t, f, "", "verify", "-n", "demo", "--json"))

	one := newFake(t)
	one.verification = client.Verification{Events: 1, Segments: 1}
	require.Equal(t, "ok: 1 event in 1 segment, 0 in the history of the current run\n", starter(t, one, "", "verify", "-n", "demo").out)
	f.verification.Problems = []client.Problem{{Place: "demo:0003", Text: "is\x1b no event"}, {Place: "demo:0004", Text: "is missing"}}
	const failed = "starter: verify context demo: problems found: 2\n"
	require.Equal(t, outcome{exit.Failure, "demo:0003: is\\u001b no event\ndemo:0004: is missing\n", failed}, starter(t, f, "", "verify", "-n", "demo"))
	got := starter(t, f, "", "verify", "-n", "demo", "--json")
	require.Equal(t, exit.Failure, got.code)
	require.Contains(t, got.out, `{"place":"demo:0004","text":"is missing"}]}`)

	f.err = client.ErrNoContext
	require.Equal(t, exit.NoContext, starter(t, f, "", "verify", "-n", "demo").code)
}
