package rig

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/sashabaranov/go-openai"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/stream"
)

func TestMain(m *testing.M) {
	Main()
	os.Exit(m.Run())
}

func TestAMessageIsParsedWithItsScript(t *testing.T) {
	m := Message{Key: "m1", Tokens: 3, Script: Script{
		Steps: [][]Call{{{ID: "c1", Name: "once", Arguments: `{"key":"a"}`}, {Name: "again"}}, {{Name: "fail"}}},
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

func TestATokenContainsItsTime(t *testing.T) {
	first, second := token("m1", 0), token("m1", 1)
	for text, want := range map[string]bool{first: true, second: true, second + second: false, first + second: false, "the": false, "250 ": false} {
		at, ok := WrittenAt(text)
		require.Equal(t, want, ok, text)
		require.True(t, !ok || time.Since(at) < time.Minute, text)
	}
}

func TestTheFirstObservationOfAKeyIsKept(t *testing.T) {
	all := newObservations()
	_, ok := all.Find(Ended, "m1")
	require.False(t, ok)
	all.addLine([]byte(`{"kind":"ended","key":"m1","at":"2026-01-02T15:04:05Z","value":"completed"}`))
	all.add(Observation{Kind: Ended, Key: "m1", At: time.Now(), Value: "failed"})
	made, err := all.Await(t.Context(), Ended, "m1")
	require.NoError(t, err)
	require.Equal(t, Completed, made.Value)
	require.Len(t, all.Of(Ended), 1)
	all.addLine([]byte("no JSON"))
	_, err = all.Await(t.Context(), Ended, "m2")
	require.ErrorContains(t, err, `observation "no JSON"`)
}

func TestABlobStoreOutageLosesNothing(t *testing.T) {
	r := &Rig{dir: t.TempDir()}
	require.NoError(t, r.prepareBlobs())
	store, err := blobs.Open(t.Context(), r.at.blobs, "default")
	require.NoError(t, err)
	defer store.Close()
	ref, err := store.Put(t.Context(), []byte("hello"))
	require.NoError(t, err)

	down, back := context.WithCancel(t.Context())
	over := make(chan error)
	require.NoError(t, r.linkBlobs(notADirectory))
	_, err = store.Get(t.Context(), ref)
	require.ErrorIs(t, err, blobs.ErrUnavailable)
	require.NotErrorIs(t, err, blobs.ErrNotFound)
	_, err = store.Put(t.Context(), []byte("more"))
	require.ErrorIs(t, err, blobs.ErrUnavailable)
	go func() { over <- r.DisconnectBlobs(down, time.Hour) }()
	back()
	require.NoError(t, <-over)
	data, err := store.Get(t.Context(), ref)
	require.NoError(t, err)
	require.Equal(t, "hello", string(data))
}

func TestNATSRestartsOnTheSamePort(t *testing.T) {
	p, err := (&role{Name: "nats"}).launch(t.Context(), nil)
	require.NoError(t, err)
	r := &Rig{nats: p}
	r.at.nats = p.Ready["address"]
	defer func() { r.nats.Kill() }()
	require.NoError(t, r.RestartNATS(t.Context(), time.Millisecond))
	require.NotEqual(t, p.PID(), r.nats.PID())
	<-p.Done()
	require.Equal(t, p.Ready, r.nats.Ready)
	conn, err := stream.Connect(r.nats.Ready["address"], stream.Options{Namespace: "default", Name: "test"})
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.Flush(t.Context()))
}

func TestAProgramThatIsNotReadyIsAnError(t *testing.T) {
	_, err := (&role{Name: "bare", Temporal: "127.0.0.1:1"}).launch(t.Context(), nil)
	require.ErrorContains(t, err, "EOF")
	used, err := CPU(os.Getpid())
	require.NoError(t, err)
	require.Positive(t, used)
}
