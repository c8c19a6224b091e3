package rig

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/sashabaranov/go-openai"
	"github.com/stretchr/testify/require"
)

func TestStartCreatesTheDirectoryForLogs(t *testing.T) {
	t.Setenv(AddressVariable, "127.0.0.1:1")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	dir := filepath.Join(t.TempDir(), "a", "b")
	_, err := Start(ctx, Options{LogDir: dir, Worker: "worker"})
	require.Error(t, err, "the context is cancelled")
	require.DirExists(t, dir)
}

func TestAMessageIsParsedWithItsScript(t *testing.T) {
	m := Message{Key: "m1", Tokens: 3, Script: Script{
		Steps: [][]Call{{{ID: "c1", Name: "once", Arguments: `{"key":"a"}`}, {Name: "again"}}, {{Name: "fail"}}},
		Hook:  "change", Withheld: true, Instructed: "x",
	}}
	for _, padding := range []string{"", "some padding {}"} {
		m.Padding = padding
		parsed, err := ParseMessage(m.String())
		require.NoError(t, err)
		parsed.Padding = padding
		require.Equal(t, m, parsed)
	}
	m = Message{Key: "m1", Tokens: 1, Padding: "padding"}
	require.Equal(t, "m1 1 0s padding", m.String())
	_, err := ParseMessage("m1 1")
	require.Error(t, err)
}

func TestAnAnswerFollowsTheScript(t *testing.T) {
	user := func(m Message) openai.ChatCompletionMessage {
		return openai.ChatCompletionMessage{Role: "user", Content: m.String()}
	}
	calling := openai.ChatCompletionMessage{Role: "assistant", ToolCalls: []openai.ToolCall{{ID: "c"}}}
	first, second := []Call{{Name: "once"}}, []Call{{Name: "again"}, {Name: "fail"}}
	m := Message{Key: "m1", Tokens: 5, Script: Script{Steps: [][]Call{first, second}}}
	messages := []openai.ChatCompletionMessage{user(Message{Key: "m0", Tokens: 1}), calling, user(m)}
	for n, want := range []answer{{"m1", 1, first}, {"m1", 1, second}, {"m1", 5, nil}} {
		turn, err := turnOf(messages)
		require.NoError(t, err)
		require.Equal(t, want, turn.answer(true), "answer %d", n)
		require.Equal(t, answer{"m1", 5, nil}, turn.answer(false))
		messages = append(messages, calling, openai.ChatCompletionMessage{Role: "tool"})
	}
	_, err := turnOf(messages[1:2])
	require.Error(t, err)
}
