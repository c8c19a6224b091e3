package reducer_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

func TestLargeInputIsRejectedOnceTheMessagesFillTheirMemory(t *testing.T) {
	text := strings.Repeat("x", 12_000_000) // all messages share it
	calls, _ := reducer.Step(reducer.NewSession("demo"), reducer.Opened{})
	calls.Rules = reducer.CurrentRules
	calls, reasons := inputs(calls, event.AssistantMessage{Content: "calls"}, event.ToolCall{ToolCallID: "c", ToolName: "t"})
	require.Empty(t, reasons)
	json := []byte(`"` + text + `"`)
	for name, body := range map[string]event.Body{
		"system prompt": event.SystemPrompt{Content: text},
		"message":       event.UserMessage{Content: text, TriggersTurn: new(false)},
		"answer":        event.AssistantMessage{Content: text},
		"state": event.AssistantMessage{Content: "a", ProviderState: &event.ProviderState{
			ProviderID: "p", Model: "m", BaseURL: "http://p", Data: json,
		}},
		"file":   event.FileAttachment{Source: event.Source{Type: event.SourceBlob, Data: []byte(text)}, MediaType: "text/plain"},
		"call":   event.ToolCall{ToolCallID: "other", ToolName: "t", Parameters: json},
		"result": event.ToolResult{ToolCallID: "c", Value: json},
	} {
		t.Run(name, func(t *testing.T) {
			full := calls
			for range 5 {
				var reasons []string
				full, reasons = inputs(full, event.UserMessage{Content: text, TriggersTurn: new(false)})
				require.Empty(t, reasons)
			}
			size := full.Reduced.Size()
			full, reasons := inputs(full, body)
			require.Len(t, reasons, 1)
			require.Contains(t, reasons[0], "bytes of messages")
			require.Equal(t, size, full.Reduced.Size())
			_, reasons = inputs(full, event.Note{Kind: event.NoteSystem, Content: text}, event.UserMessage{Content: strings.Repeat("s", 60_000)})
			require.Empty(t, reasons, "notes are no messages, and a short message can compact the context")
		})
	}
}
