package workflows

import (
	"fmt"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// record writes events into the history, as markers that hold a [wire.Record].
// From then on they are facts.
func record(ctx workflow.Context, events []event.Event) {
	for len(events) > 0 {
		n := fitting(events)
		recordOne(ctx, events[:n])
		events = events[n:]
	}
}

func recordOne(ctx workflow.Context, events []event.Event) {
	options := workflow.SideEffectOptions{Summary: summary(events)}
	value := workflow.SideEffectWithOptions(ctx, options, func(workflow.Context) any {
		data, err := wire.JSON(wire.Record{Events: events})
		if err != nil {
			// Events were checked when they came in.
			panic(fmt.Sprintf("an event has no JSON: %v", err))
		}
		return data
	})
	if !workflow.IsReplaying(ctx) {
		return
	}
	// The log is right and the code is not: it must not go on from a state that
	// the log does not bear out. The workflow task fails until a worker comes
	// whose code agrees, and nothing is lost.
	var recorded wire.Record
	if err := value.Get(&recorded); err != nil {
		panic(fmt.Sprintf("the log cannot be read: %v", err))
	}
	if len(recorded.Events) != len(events) {
		panic(fmt.Sprintf("the log has %d events where this code makes %d", len(recorded.Events), len(events)))
	}
	for i, e := range recorded.Events {
		if e.ID != events[i].ID || e.Tag() != events[i].Tag() {
			panic(fmt.Sprintf("the log has %s %s where this code makes %s %s", e.Tag(), e.ID, events[i].Tag(), events[i].ID))
		}
	}
}

// summary is what the Temporal UI shows of a record.
func summary(events []event.Event) string {
	var names []string
	for _, e := range events {
		names = append(names, strings.TrimSuffix(string(e.Tag()), "Event"))
	}
	return cut(strings.Join(names, ", "), shownTags)
}

// fitting is how many of the events go into one record: at least one.
func fitting(events []event.Event) int {
	size := 0
	for i, e := range events {
		size += sizeOf([]event.Event{e})
		if i > 0 && size > wire.MaxRecordBytes {
			return i
		}
	}
	return len(events)
}

// sizeOf is about how many bytes the events take. Only what can be long counts.
func sizeOf(events []event.Event) int {
	size := 0
	for _, e := range events {
		switch body := e.Body.(type) {
		case event.UserMessage:
			size += len(body.Content)
		case event.AssistantMessage:
			size += len(body.Content)
		case event.SystemPrompt:
			size += len(body.Content)
		case event.FileAttachment:
			size += len(body.Source.Data)*4/3 + len(body.Source.URL)
		case event.ToolCall:
			size += len(body.Parameters)
		case event.ToolResult:
			size += len(body.Value) + len(body.Error)
		case event.LLMRequestInterrupted:
			size += len(body.PartialResponse)
		}
		for _, extra := range e.Extra {
			size += len(extra)
		}
		size += 300
	}
	return size
}
