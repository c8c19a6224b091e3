package chronicletest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/worker/chronicletest"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

func TestAskSaysThatNoWorkerResponds(t *testing.T) {
	server := chronicletest.Start(t, llmtest.Answer("Hi"))
	began := time.Now()
	conn, err := contexts.Connect(t.Context(), server.Config())
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	require.True(t, conn.SearchAttributes)
	t.Log("connected", time.Since(began))
	demo, err := conn.Client().Open("demo")
	require.NoError(t, err)
	hello := event.New(event.UserMessage{Content: "Hello"})
	hello.ClientEventID = "hello"
	short, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_, err = demo.Answer(short, hello)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, err, client.ErrNoWorker)

	worker, err := conn.NewWorker(contexts.Options{Models: llm.New(llm.Options{Defaults: server.Defaults()})})
	require.NoError(t, err)
	require.NoError(t, worker.Start())
	t.Cleanup(worker.Stop)
	began = time.Now()
	answer, err := demo.Answer(t.Context(), hello)
	require.NoError(t, err)
	require.Equal(t, "Hi", answer)
	t.Log("answered", time.Since(began))
}
