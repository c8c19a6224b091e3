package main

import (
	"fmt"
	"testing"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

func fold(r *runner) error {
	for _, n := range []int{1_000, 100_000} {
		log := conversation(n)
		var perEvent samples
		for range r.times(5) {
			result := testing.Benchmark(func(b *testing.B) {
				for b.Loop() {
					state := reducer.Initial()
					for _, e := range log {
						state = reducer.Reduce(state, e)
					}
				}
			})
			perEvent = append(perEvent, float64(result.NsPerOp())/float64(n))
		}
		r.report.add(fmt.Sprintf("reduce_ns_per_event_%dk", n/1000), "ns", perEvent)
	}
	return nil
}

func conversation(n int) []event.Event {
	var log []event.Event
	last := func() string { return event.FormatID("bench", len(log)) }
	add := func(body event.Body) {
		e := event.New(body)
		e.ID = event.FormatID("bench", len(log)+1)
		log = append(log, e)
	}
	for turn := 1; len(log) < n; turn++ {
		add(event.UserMessage{Content: fmt.Sprintf("Message %d", turn)})
		through, id := last(), event.FormatRequestID("bench", turn)
		add(event.LLMRequestStarted{RequestID: id, ProviderID: "openai", Model: "m", ThroughEventID: through, Attempt: 1})
		add(event.AssistantMessage{Content: "An answer", RequestID: id, ThroughEventID: through})
		add(event.LLMRequestCompleted{RequestID: id, FinishReason: "stop"})
	}
	return log[:n]
}
