package archive_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
)

const (
	benchmarkEvents  = 100_000
	benchmarkSegment = 2_000
)

// conversation returns the log of a conversation.
func conversation(events int) []event.Event {
	answer := strings.Repeat("Well, \"it depends\" is what I would say.\n", 12)
	var log []event.Event
	for len(log) < events {
		n := len(log) + 1
		request := event.FormatRequestID("demo", n/4+1)
		for _, body := range []event.Body{
			event.UserMessage{Content: fmt.Sprintf("%d: what would you say, if I may ask?", n)},
			event.LLMRequestStarted{RequestID: request, ProviderID: "openai", Model: "gpt-4o-mini", ThroughEventID: event.FormatID("demo", n), Attempt: 1},
			event.AssistantMessage{Content: answer, RequestID: request, ThroughEventID: event.FormatID("demo", n)},
			event.LLMRequestCompleted{RequestID: request, DurationMs: 1234, Usage: event.Usage{InputTokens: n, OutputTokens: 120}, FinishReason: "stop"},
		} {
			e := event.Event{
				ID: event.FormatID("demo", len(log)+1), ContextName: "demo", Body: body,
				Timestamp: eventtest.Epoch.Add(time.Duration(len(log)) * 345678901),
			}
			if len(log) > 0 {
				e.ParentID = log[len(log)-1].ID
			}
			log = append(log, e)
		}
	}
	return log
}

func BenchmarkWrite(b *testing.B) {
	log := conversation(benchmarkEvents)
	for b.Loop() {
		a, _ := written(b)
		writeAll(b, a, log)
	}
	b.ReportMetric(float64(b.N*len(log))/b.Elapsed().Seconds(), "events/s")
}

func BenchmarkRead(b *testing.B) {
	a, _ := written(b)
	log := conversation(benchmarkEvents)
	writeAll(b, a, log)
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for _, err := range read(b.Context(), a, "demo", 0) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		require.Equal(b, len(log), n)
	}
	b.ReportMetric(float64(b.N*len(log))/b.Elapsed().Seconds(), "events/s")
}

func writeAll(b *testing.B, a *archive.Archive, log []event.Event) {
	for begin := 0; begin < len(log); begin += benchmarkSegment {
		if _, err := put(b.Context(), a, "demo", log[begin:min(begin+benchmarkSegment, len(log))]); err != nil {
			b.Fatal(err)
		}
	}
}
