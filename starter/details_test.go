package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
)

func TestDetailsAreSet(t *testing.T) {
	for _, test := range []struct {
		args []string
		want event.SetDetails
	}{
		{[]string{"--title", "A trip", "--label", "team=a", "--label", "x=y=z"}, event.SetDetails{Title: new("A trip"), Labels: map[string]string{"team": "a", "x": "y=z"}}},
		{[]string{"--title", "", "--no-labels"}, event.SetDetails{Title: new(""), Labels: map[string]string{}}},
		{[]string{"--archive", "--owner", "ann"}, event.SetDetails{Archived: new(true), Owner: "ann"}},
		{[]string{"--unarchive"}, event.SetDetails{Archived: new(false)}},
	} {
		f := newFake(t, nil)
		got := starter(t, f, "", append([]string{"details", "-n", "demo"}, test.args...)...)
		require.Zero(t, got.code, got.errOut)
		require.Equal(t, test.want, f.inputs[0][0].Body)
	}
	f := newFake(t, nil)
	got := starter(t, f, "", "details", "-n", "demo", "--title", "A trip", "--archive")
	require.Contains(t, got.out, `set details: title "A trip", archived`)
}

func TestDetailsAreShown(t *testing.T) {
	f := newFake(t)
	f.recordBodies(event.SetDetails{Title: new("A trip"), Labels: map[string]string{"team": "a"}, Archived: new(true), Owner: "ann"})
	const table = "title     A trip\nlabel     team \"a\"\nowner     ann\narchived  until it receives a user message\n"
	require.Equal(t, outcome{0, table, ""}, starter(t, f, "", "details", "-n", "demo"))
	require.Equal(t, outcome{0, `{"title":"A trip","labels":{"team":"a"},"archived":true,"owner":"ann"}` + "\n", ""},
		starter(t, f, "", "details", "-n", "demo", "--json"))
	require.Regexp(t, `(?s)\ntitle +A trip\nlabel +team "a"\nowner +ann\narchived `, starter(t, f, "", "state", "-n", "demo").out)

	f = newFake(t)
	f.recordBodies(event.UserMessage{Content: "Hello"})
	require.Equal(t, outcome{0, "", "context demo has no details\n"}, starter(t, f, "", "details", "-n", "demo"))
	require.Equal(t, outcome{0, "{}\n", ""}, starter(t, f, "", "details", "-n", "demo", "--json"))
}
