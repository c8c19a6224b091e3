package contexts_test

import (
	"context"
	"fmt"
	"log"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/worker/chronicletest"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

// A program that runs contexts and sends one of them messages. Outside of a test, Connect finds the servers by flags of
// the program or by variables such as TEMPORAL_ADDRESS, see client.Config.
func Example() {
	ctx := context.Background()
	check := func(err error) {
		if err != nil {
			log.Panic(err)
		}
	}
	server, err := chronicletest.New(ctx, llmtest.Answer("1", " 2", " 3"), llmtest.Answer("You said: Count to 3"))
	check(err)
	defer func() { check(server.Close()) }()

	conn, err := contexts.Connect(ctx, server.Config())
	check(err)
	defer conn.Close()
	w, err := conn.NewWorker(contexts.Options{Models: llm.New(llm.Options{Defaults: server.Defaults()})})
	check(err)
	check(w.Start())
	defer w.Stop()

	demo, err := conn.Client().Open("demo")
	check(err)
	for _, message := range []string{"Count to 3", "What did I say?"} {
		answer, err := demo.Answer(ctx, event.New(event.UserMessage{Content: message}))
		check(err)
		fmt.Println(answer)
		check(demo.Close(ctx, "")) // the next message begins another session
	}
	// Output:
	// 1 2 3
	// You said: Count to 3
}

// A reducer that tells the model when the messages of a user were recorded.
func ExampleOptions_reduce() {
	options := contexts.Options{
		Reduce: func(current reducer.ReducedContext, events ...event.Event) reducer.ReducedContext {
			for _, e := range events {
				if message, ok := e.Body.(event.UserMessage); ok {
					message.Content = e.Timestamp.Format("15:04 ") + message.Content
					e.Body = message
				}
				current = reducer.Reduce(current, e)
			}
			return current
		},
	}
	reduced := options.Reduce(reducer.Initial(), event.New(event.UserMessage{Content: "Hello"}))
	fmt.Println(reduced.Messages[0].Content)
	// Output: 00:00 Hello
}
