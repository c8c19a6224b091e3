package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
)

func TestForkCreatesAContext(t *testing.T) {
	f := newFake(t)
	require.Equal(t, outcome{0, "", "created context copy, forked from demo:0012\n"},
		starter(t, f, "", "fork", "-n", "demo", "--at", "demo:0012", "--as", "copy"))
	require.Equal(t, outcome{0, `{"contextName":"other","forkedFrom":"demo:0001"}` + "\n", ""},
		starter(t, f, "", "fork", "-n", "demo", "--at", "demo:0001", "--as", "other", "--json"))
	require.Equal(t, outcome{0, "", "created context demo-2, forked from demo:0006\n"},
		starter(t, f, "", "fork", "-n", "demo", "--before", "demo:0007"))
	require.Equal(t, outcome{0, "", "created context demo-2, forked from demo:0006\n"},
		starter(t, f, "", "fork", "-n", "demo", "--regenerate", "demo:0009", "--provider", "openai", "--model", "gpt-4o"))
	require.Equal(t, []client.BranchOptions{
		{At: "demo:0012", Name: "copy"}, {At: "demo:0001", Name: "other"}, {Before: "demo:0007"},
		{Regenerate: "demo:0009", Events: []event.Event{event.New(event.SetProviderConfig{ProviderID: "openai", Model: "gpt-4o"})}},
	}, f.branched)

	f.err = client.ErrExists
	require.Equal(t, outcome{exit.Failure, "", "starter: context already exists (choose another name)\n"},
		starter(t, f, "", "fork", "-n", "demo", "--at", "demo:0012", "--as", "copy"))
}

func TestForkRejectsInvalidArguments(t *testing.T) {
	f := newFake(t)
	for _, args := range [][]string{
		{"--as", "copy"},
		{"--at", "other:0012", "--as", "copy"},
		{"--at", "demo:12", "--as", "copy"},
		{"--before", "other:0012"},
		{"--regenerate", "12"},
		{"--at", "demo:0012", "--before", "demo:0012"},
		{"--at", "demo:0012", "--as", "demo"},
		{"--at", "demo:0012", "--as", "../copy"},
		{"--regenerate", "demo:0012", "--model", "gpt-4o"},
		{"--at", "demo:0012", "--as", "acme/copy"},
	} {
		require.Equal(t, exit.Usage, starter(t, f, "", append([]string{"fork", "-n", "demo"}, args...)...).code, args)
	}
	require.Empty(t, f.branched)
}

func TestForkRejectsAnEventThatIsNotInTheLog(t *testing.T) {
	f := newFake(t)
	f.recordBodies(event.SessionStarted{}, event.UserMessage{Content: "Hello"}, event.Note{Kind: event.NoteSystem, Content: "Bye"})
	f.err = fmt.Errorf("read event demo:9999: %w", client.ErrNoEvent)
	for _, flag := range []string{"--at", "--before", "--regenerate"} {
		require.Equal(t, outcome{exit.Failure, "", "starter: " + flag + " demo:9999: not in the log (it has demo:0001 to demo:0003)\n"},
			starter(t, f, "", "fork", "-n", "demo", flag, "demo:9999"))
	}
}

func TestForkReportsTheFirstInvalidFlag(t *testing.T) {
	for range 20 {
		got := starter(t, newFake(t), "", "fork", "-n", "demo", "--regenerate", "3", "--before", "2", "--at", "1")
		require.Contains(t, got.errOut, `--at "1": `)
	}
}

func TestCommandsTakeTheFullNameOfAContext(t *testing.T) {
	f := newFakeOf(t, "acme/demo")
	f.recordBodies(event.SessionStarted{}, event.UserMessage{Content: "Hello"}, event.Note{Kind: event.NoteSystem, Content: "Bye"})
	got := starter(t, f, "", "events", "-n", "acme/demo", "--from", "demo:0002", "--json")
	require.Zero(t, got.code, got.errOut)
	require.Contains(t, got.out, `"id":"demo:0003"`)
	require.NotContains(t, got.out, "acme")
	require.Equal(t, exit.Usage, starter(t, f, "", "events", "-n", "acme/demo", "--from", "acme/demo:0002").code)
	require.Equal(t, outcome{0, `{"contextName":"acme/other","forkedFrom":"demo:0002"}` + "\n", ""},
		starter(t, f, "", "fork", "-n", "acme/demo", "--at", "demo:0002", "--as", "acme/other", "--json"))
}
