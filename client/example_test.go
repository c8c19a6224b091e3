package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	sdkclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/worker/chronicletest"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

// start starts the servers of the examples and a worker. A program without a worker uses client.Dial instead.
func start(ctx context.Context, steps ...llmtest.Step) (conn *contexts.Connection, stop func()) {
	server, err := chronicletest.New(ctx, steps...)
	check(err)
	conn, err = contexts.Connect(ctx, server.Config())
	check(err)
	w, err := conn.NewWorker(contexts.Options{Models: llm.New(llm.Options{Defaults: server.Defaults()})})
	check(err)
	check(w.Start())
	return conn, func() {
		w.Stop()
		conn.Close()
		check(server.Close())
	}
}

func check(err error) {
	if err != nil {
		log.Panic(err)
	}
}

func Example() {
	ctx := context.Background()
	conn, stop := start(ctx, llmtest.Answer("Hello", ", Ann"))
	defer stop()
	demo, err := conn.Client().Open("demo")
	check(err)

	for e, err := range demo.Ask(ctx, event.New(event.UserMessage{Content: "I am Ann"})) {
		check(err)
		switch body := e.Body.(type) {
		case event.AssistantMessage:
			fmt.Println(body.Content)
		case event.LLMRequestCompleted:
			fmt.Println(body.FinishReason)
		}
	}
	// Output:
	// Hello, Ann
	// stop
}

// A Send with an unknown outcome can be repeated, because the context deduplicates events by their ClientEventID.
func ExampleContext_Send() {
	ctx := context.Background()
	conn, stop := start(ctx)
	defer stop()
	demo, err := conn.Client().Open("demo")
	check(err)

	prompt := event.New(event.SystemPrompt{Content: "Be brief"})
	prompt.ClientEventID = "order-42"
	for range 3 {
		receipt, err := demo.Send(ctx, prompt)
		if errors.Is(err, client.ErrUnreachable) || errors.Is(err, client.ErrFull) {
			continue
		}
		fmt.Println(receipt.ClientEventIDs, err)
		break
	}
	_, err = demo.Send(ctx, event.New(event.SetTimeout{TimeoutMs: -1}))
	var invalid *event.FieldError
	if errors.As(err, &invalid) {
		fmt.Println(invalid.Tag, invalid.Field)
	}
	// Output:
	// [order-42] <nil>
	// SetTimeoutEvent timeoutMs
}

func ExampleContext_Import() {
	ctx := context.Background()
	conn, stop := start(ctx)
	defer stop()
	demo, err := conn.Client().Open("demo")
	check(err)

	first := event.New(event.UserMessage{Content: "Hello"})
	first.ID, first.ContextName = event.FormatID("demo", 1), "demo"
	log := func(yield func(event.Event, error) bool) { yield(first, nil) }
	_, err = demo.Import(ctx, log, client.ImportOptions{})
	check(err)
	for e, err := range demo.Follow(ctx, client.FollowOptions{}) {
		check(err)
		fmt.Println(e.ID, e.Tag())
		if e.Tag() == event.TagSessionStarted {
			break
		}
	}
	// Output:
	// demo:0001 UserMessageEvent
	// demo:0002 SessionStartedEvent
}

// review is a workflow of a program. It asks a context for each order.
func review(ctx workflow.Context, order string) (answer string, err error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: 48 * time.Hour, // longer than the wait for an approval
		HeartbeatTimeout:    30 * time.Second,
	})
	var contexts *client.Activities
	err = workflow.ExecuteActivity(ctx, contexts.Ask, client.Question{
		ContextName: order,
		Events:      []event.Event{event.New(event.UserMessage{Content: "Review order " + order})},
	}).Get(ctx, &answer)
	return answer, err
}

// A context is a step of a workflow.
func ExampleActivities_Ask() {
	ctx := context.Background()
	conn, stop := start(ctx, llmtest.Answer("It is fine."))
	defer stop()

	orders := worker.New(conn.Temporal, "orders", worker.Options{})
	orders.RegisterWorkflow(review)
	orders.RegisterActivity(client.NewActivities(conn.Client()))
	check(orders.Start())
	defer orders.Stop()

	run, err := conn.Temporal.ExecuteWorkflow(ctx, sdkclient.StartWorkflowOptions{TaskQueue: "orders"}, review, "A-1001")
	check(err)
	var answer string
	check(run.Get(ctx, &answer))
	fmt.Println(answer)
	// Output: It is fine.
}
