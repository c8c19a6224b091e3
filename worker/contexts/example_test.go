package contexts_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"

	sdkclient "go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/devserver"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/offline"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

// A program that runs contexts and sends one of them a message.
func ExampleNewWorker() {
	ctx := context.Background()
	check := func(err error) {
		if err != nil {
			log.Panic(err)
		}
	}
	dir, err := os.MkdirTemp("", "contexts-")
	check(err)
	defer os.RemoveAll(dir)
	command, err := devserver.Find(ctx, nil)
	check(err)
	server, err := devserver.Start(ctx, devserver.Options{Command: command, DataDir: dir})
	check(err)
	defer server.Stop()
	model := httptest.NewServer(offline.Handler(offline.Options{TokenDelay: -1}))
	defer model.Close()

	store, err := blobs.Open(ctx, "file://"+filepath.ToSlash(filepath.Join(dir, "blobs")), "default")
	check(err)
	defer store.Close()
	temporal, err := sdkclient.Dial(contexts.WithStore(sdkclient.Options{
		HostPort: server.Address(),
		Logger:   sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	}, store))
	check(err)
	defer temporal.Close()
	w := contexts.NewWorker(temporal, contexts.Options{
		Archive: archive.New(store),
		Models: llm.New(llm.Options{
			Defaults: llm.Defaults{ProviderID: "offline", BaseURL: model.URL + "/v1", Model: offline.Model},
		}),
	})
	check(w.Start())
	defer w.Stop()

	c := client.New(client.Options{Temporal: temporal, Archive: archive.New(store)})
	demo, err := c.Open("demo")
	check(err)
	for _, message := range []string{"Count to 3", "Hello again"} {
		for e, err := range demo.Ask(ctx, event.New(event.UserMessage{Content: message})) {
			check(err)
			if answer, ok := e.Body.(event.AssistantMessage); ok {
				fmt.Println(answer.Content)
			}
		}
		check(demo.Close(ctx, "")) // the next message begins another session
	}
	// Output:
	// I am the offline model built into Chronicle (no API key is set), so I only repeat. This is your 1st message: "Count to 3". Counting to 3: 1 2 3.
	// I am the offline model built into Chronicle (no API key is set), so I only repeat. This is your 2nd message: "Hello again". Before it you said: "Count to 3".
}
