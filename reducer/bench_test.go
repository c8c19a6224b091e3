package reducer_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// BenchmarkReduce folds conversations of different lengths. The cost of an event must not
// depend on the length.
func BenchmarkReduce(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		benchmarkReduce(b, conversation(n, false))
	}
}

// BenchmarkReduceInTheMiddle folds conversations in which one turn of ten modifies earlier
// messages: by a tool call, and by an answer after newer input.
func BenchmarkReduceInTheMiddle(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		benchmarkReduce(b, conversation(n, true))
	}
}

func benchmarkReduce(b *testing.B, log []event.Event) {
	b.Run(fmt.Sprintf("in one call/%d", len(log)), func(b *testing.B) {
		perEvent(b, len(log), func() reducer.ReducedContext { return reducer.Reduce(reducer.Initial(), log...) })
	})
	b.Run(fmt.Sprintf("event by event/%d", len(log)), func(b *testing.B) {
		perEvent(b, len(log), func() reducer.ReducedContext {
			state := reducer.Initial()
			for _, e := range log {
				state = reducer.Reduce(state, e)
			}
			return state
		})
	})
}

func perEvent(b *testing.B, n int, fold func() reducer.ReducedContext) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for b.Loop() {
		if len(fold().Messages) == 0 {
			b.Fatal("no messages")
		}
	}
	runtime.ReadMemStats(&after)
	events := float64(b.N) * float64(n)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/events, "ns/event")
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/events, "allocs/event")
}

// conversation returns the log of a chat with n events. With middle, one turn of ten has a
// tool call and a message before the answer.
func conversation(n int, middle bool) []event.Event {
	var log []event.Event
	last := func() string { return event.FormatID("bench", len(log)) }
	add := func(body event.Body) {
		e := event.New(body)
		e.ID = event.FormatID("bench", len(log)+1)
		log = append(log, e)
	}
	add(event.SystemPrompt{Content: "You are helpful"})
	for turn := 1; len(log) < n; turn++ {
		if turn%10 == 0 {
			add(event.FileAttachment{Source: event.Source{Type: event.SourceFile, Path: "a.txt"}, MediaType: "text/plain"})
		}
		add(event.UserMessage{Content: "Hello"})
		through, id := last(), event.FormatRequestID("bench", turn)
		add(event.LLMRequestStarted{RequestID: id, ProviderID: "openai", Model: "m", ThroughEventID: through, Attempt: 1})
		if middle && turn%10 == 0 {
			add(event.UserMessage{Content: "And?"})
		}
		add(event.AssistantMessage{Content: "Hi there!", RequestID: id, ThroughEventID: through})
		add(event.LLMRequestCompleted{RequestID: id, FinishReason: "stop"})
		if middle && turn%10 == 5 {
			add(event.ToolCall{ToolCallID: id, ToolName: "weather"})
			add(event.ToolResult{ToolCallID: id, Value: []byte(`"sunny"`)})
		}
	}
	return log[:n]
}
