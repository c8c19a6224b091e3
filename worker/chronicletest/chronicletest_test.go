package chronicletest_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/tool"
	"github.com/seed-9ed7edd4/chronicle/worker/chronicletest"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

// failed is a test that records its failure and ends as with [testing.T.Fatalf].
type failed struct {
	*testing.T
	problem string
}

func (f *failed) Fatalf(format string, args ...any) {
	f.problem = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestATestWithoutTemporalFails(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Chdir(t.TempDir())
	f := &failed{T: t}
	var panicked any
	var started sync.WaitGroup
	started.Go(func() {
		defer func() { panicked = recover() }()
		chronicletest.Start(f)
	})
	started.Wait()
	require.Nil(t, panicked)
	require.Contains(t, f.problem, "start the servers of a test: ")
	require.Contains(t, f.problem, "temporal")
}

func TestAskSaysThatNoWorkerResponds(t *testing.T) {
	server := chronicletest.Start(t, llmtest.Answer("Hi"))
	conn, err := contexts.Connect(t.Context(), server.Config())
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	require.True(t, conn.SearchAttributes)
	demo, err := conn.Client().Open("demo")
	require.NoError(t, err)
	hello := event.New(event.UserMessage{Content: "Hello"})
	hello.ClientEventID = "hello"
	for wait := 3 * time.Second; wait < time.Minute && !errors.Is(err, client.ErrNoWorker); wait *= 2 { // a busy server stores it late
		short, cancel := context.WithTimeout(t.Context(), wait)
		_, err = demo.Answer(short, hello)
		cancel()
	}
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, err, client.ErrNoWorker)

	worker, err := conn.NewWorker(contexts.Options{Models: llm.New(llm.Options{Defaults: server.Defaults()})})
	require.NoError(t, err)
	require.NoError(t, worker.Start())
	t.Cleanup(worker.Stop)
	answer, err := demo.Answer(t.Context(), hello)
	require.NoError(t, err)
	require.Equal(t, "Hi", answer)
}

func TestAWorkerReadsItsBlobStore(t *testing.T) {
	const bytes = 100_000
	server := chronicletest.Start(t, llmtest.Func(func(r llmtest.Request) llmtest.Step {
		results := r.Results()
		if len(results) == 0 {
			return llmtest.Calls(llmtest.Call{ID: "call_1", Name: "read_log", Arguments: "{}"})
		}
		if ref := regexp.MustCompile(`ref "([0-9a-f]+)"`).FindStringSubmatch(results[0]); ref != nil {
			return llmtest.Calls(llmtest.Call{ID: "call_2", Name: tool.ReadResult, Arguments: fmt.Sprintf(`{"ref":%q,"offset":%d}`, ref[1], bytes-3)})
		}
		return llmtest.Answer(results[0])
	}))
	conn, err := contexts.Connect(t.Context(), server.Config())
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	readLog := func(context.Context, struct{}) (string, error) { return strings.Repeat("x", bytes-3) + "end", nil }
	tools, err := tool.NewSet(tool.Options{}, tool.Must(tool.New("read_log", "Read the log", readLog)))
	require.NoError(t, err)
	worker, err := conn.NewWorker(contexts.Options{Models: llm.New(llm.Options{Defaults: server.Defaults()}), Tools: tools})
	require.NoError(t, err)
	require.NoError(t, worker.Start())
	t.Cleanup(worker.Stop)
	demo, err := conn.Client().Open("demo")
	require.NoError(t, err)
	text := "the first line\n" + strings.Repeat("y", 20_000)
	answer, err := demo.Answer(t.Context(),
		event.New(event.SetTools{Tools: event.ToolList{{Pattern: "read_log"}}}),
		event.New(event.FileAttachment{Source: event.Source{Type: event.SourceBlob, Data: []byte(text)}, MediaType: "text/plain", FileName: "a.txt"}),
		event.New(event.UserMessage{Content: "Read both"}),
	)
	require.NoError(t, err)
	require.Equal(t, "end\n\n[bytes 99997 to 100000 of 100000]", answer)
	require.Contains(t, string(server.Model.Requests()[0].Body), "the first line", "the attachment, which the client put into the store")
}
