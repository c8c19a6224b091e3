package main

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
	"github.com/seed-9ed7edd4/chronicle/internal/index"
)

func TestSearch(t *testing.T) {
	first, second := newFake(t), newFake(t)
	second.Rename("acme/other")
	first.recordBodies(event.UserMessage{Content: "Where is the\n\x1b[31m canary?"}, event.AssistantMessage{Content: "In the mine."}, event.SetDetails{Title: new("Birds")})
	second.recordBodies(event.UserMessage{Content: "A canary and a sparrow"})
	c := &fakeClient{context: first, others: []*fakeContext{second}, list: []client.Summary{{ContextName: "demo"}, {ContextName: "acme/other"}}}
	run := func(args ...string) outcome {
		return starterWith(t, t.Context(), c, nil, append([]string{"search"}, args...)...)
	}

	got := run("canary")
	require.Zero(t, got.code, got.errOut)
	require.Contains(t, got.out, "demo:0001  user  2026-")
	require.Contains(t, got.out, "  Birds\n    Where is the ")
	require.Contains(t, got.out, "acme/other:0001  user")
	require.NotContains(t, got.out, "\x1b")
	require.Equal(t, 4, strings.Count(got.out, "\n"))

	dir := filepath.Join(t.TempDir(), "index")
	for range 2 { // builds the index, and goes on with it
		got = run("sparr", "--json", "--index-dir", dir)
		var hit index.Hit
		require.NoError(t, json.Unmarshal([]byte(got.out), &hit), got.errOut)
		require.Equal(t, "acme/other", hit.ContextName)
		require.True(t, hit.Fragments[1].Match)
	}
	require.Contains(t, run("canary", "-n", "demo").out, "demo:0001")
	require.NotContains(t, run("canary", "-n", "demo").out, "other")
	require.Equal(t, "no messages\n", run("canary mine").errOut)
	require.Equal(t, "there are more; see --limit\n", run("canary", "--limit", "1").errOut)

	for _, args := range [][]string{{}, {"!"}, {"a", "--limit", "0"}, {"a", "--label", "x"}, {"a", "-n", "de mo"}, {"a", "-n", "demo", "--index-dir", "x"}} {
		require.Equal(t, exit.Usage, run(args...).code, args)
	}
	c.list, c.stored = nil, []string{"demo"} // Temporal does not have it any more
	require.Contains(t, run("canary").out, "demo:0001")
	require.Contains(t, run("canary", "-n", "demo").out, "demo:0001")
	require.Contains(t, run("canary", "-n", "none").errOut, "no such context")
	c.list, c.stored = []client.Summary{{ContextName: "demo"}, {ContextName: "acme/other"}}, nil
	second.Fail(errors.New("broken log"))
	got = run("canary")
	require.Equal(t, exit.Failure, got.code)
	require.Contains(t, got.out, "demo:0001", "the others are searched")
	require.Contains(t, got.errOut, "search context acme/other: broken log")
	c.listErr = client.ErrUnreachable
	require.Equal(t, exit.Unreachable, run("canary").code)
}
