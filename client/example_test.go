package client_test

import (
	"context"
	"errors"
	"fmt"

	sdkclient "go.temporal.io/sdk/client"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs/blobstest"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// connect stands for client.Dial(ctx, client.Config{}) in the examples. The connection to
// Temporal is scripted: it records every input as demo:0002.
func connect(logs *archive.Archive) *client.Client {
	return client.New(client.Options{Archive: logs, Temporal: &temporal{
		update: func(sdkclient.UpdateWorkflowOptions) (wire.Appended, error) {
			return wire.Appended{EventIDs: []string{"demo:0002"}}, nil
		},
	}})
}

func Example() {
	ctx := context.Background()
	c := connect(nil)
	defer c.Shutdown()
	demo, err := c.Open("demo")
	if err != nil {
		fmt.Println(err)
		return
	}
	receipt, err := demo.Send(ctx, event.New(event.UserMessage{Content: "Hello"}))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(receipt.EventIDs)
	// Output: [demo:0002]
}

// A Send with an unknown outcome can be repeated, because the context deduplicates events
// by their ClientEventID.
func ExampleContext_Send_retry() {
	demo, _ := connect(nil).Open("demo")
	message := event.New(event.UserMessage{Content: "Hello"})
	message.ClientEventID = "order-42"
	for range 3 {
		receipt, err := demo.Send(context.Background(), message)
		if errors.Is(err, client.ErrUnreachable) || errors.Is(err, client.ErrFull) {
			continue
		}
		fmt.Println(receipt.ClientEventIDs, receipt.EventIDs, err)
		break
	}
	// Output: [order-42] [demo:0002] <nil>
}

func ExampleContext_Send_invalid() {
	demo, _ := connect(nil).Open("demo")
	_, err := demo.Send(context.Background(), event.New(event.SetTimeout{TimeoutMs: -1}))
	var invalid *event.FieldError
	if errors.As(err, &invalid) {
		fmt.Println(invalid.Tag, invalid.Field)
	}
	// Output: SetTimeoutEvent timeoutMs
}

func ExampleContext_Import() {
	ctx := context.Background()
	bucket := blobstest.Open()
	defer bucket.Store.Close()
	demo, _ := connect(archive.New(bucket.Store)).Open("demo")
	first := event.New(event.UserMessage{Content: "Hello"})
	first.ID, first.ContextName = event.FormatID("demo", 1), "demo"
	log := func(yield func(event.Event, error) bool) { yield(first, nil) }
	if _, err := demo.Import(ctx, log, client.ImportOptions{}); err != nil {
		fmt.Println(err)
		return
	}
	for e, err := range demo.Events(ctx, "") {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(e.ID, e.Tag())
	}
	// Output: demo:0001 UserMessageEvent
}
