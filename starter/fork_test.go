package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
)

func TestForkCreatesAContext(t *testing.T) {
	f := newFake(t)
	require.Equal(t, outcome{0, "", "created context copy, forked from demo:0012\n"},
		starter(t, f, "", "fork", "-n", "demo", "--at", "demo:0012", "--as", "copy"))
	require.Equal(t, outcome{0, `{"contextName":"other","forkedFrom":"demo:0001"}` + "\n", ""},
		starter(t, f, "", "fork", "-n", "demo", "--at", "demo:0001", "--as", "other", "--json"))
	require.Equal(t, []string{"fork demo:0012 copy", "fork demo:0001 other"}, f.asked)

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
		{"--at", "demo:0012"},
		{"--at", "demo:0012", "--as", "demo"},
		{"--at", "demo:0012", "--as", "../copy"},
	} {
		require.Equal(t, exit.Usage, starter(t, f, "", append([]string{"fork", "-n", "demo"}, args...)...).code, args)
	}
	require.Empty(t, f.asked)
}
