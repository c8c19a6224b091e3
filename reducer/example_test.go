package reducer_test

import (
	"fmt"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

func ExampleReduce() {
	r := reducer.Reduce(reducer.Initial(),
		event.New(event.SystemPrompt{Content: "Be brief"}),
		event.New(event.UserMessage{Content: "Hello"}),
		event.New(event.SetTimeout{TimeoutMs: 5000}),
	)
	for _, m := range r.Messages {
		fmt.Printf("%s: %s\n", m.Role, m.Content)
	}
	fmt.Println(r.Config.TimeoutMs, "ms")
	// Output:
	// system: Be brief
	// user: Hello
	// 5000 ms
}

// New input interrupts a running answer.
func ExampleStep() {
	at := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	hello := event.New(event.UserMessage{Content: "Hello"})
	s := reducer.NewSession("demo")
	for _, in := range []reducer.Input{
		reducer.Opened{At: at},
		reducer.Received{At: at, Events: []event.Event{hello}},
		reducer.Received{At: at.Add(time.Second), Events: []event.Event{hello}},
		reducer.AttemptEnded{At: at.Add(time.Second), RequestID: "demo:r0001", Attempt: 1, Outcome: reducer.Interrupted, Text: "Well"},
	} {
		var effects []reducer.Effect
		s, effects = reducer.Step(s, in)
		fmt.Printf("%s:", s.Phase())
		for _, effect := range effects {
			fmt.Printf(" %T", effect)
		}
		fmt.Println()
	}
	// Output:
	// idle: reducer.Record
	// running: reducer.Record reducer.StartAttempt
	// stopping: reducer.Record reducer.StopAttempt
	// running: reducer.Record reducer.StartAttempt
}
