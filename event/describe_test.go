package event_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest/golden"
)

// Each event has words for terminals and a line of the log.
func TestEveryEventIsDescribed(t *testing.T) {
	local := time.Local
	time.Local = time.UTC
	t.Cleanup(func() { time.Local = local })
	var printed strings.Builder
	for _, body := range event.Examples() {
		subject, text := body.Words()
		fmt.Fprintf(&printed, "%s\n  words  %q %q\n", body.Tag(), subject, text)
		if body.Tag().Class() == event.ClassEphemeral {
			continue
		}
		line := event.LineOf(body)
		fields := map[string]any{}
		for pair := range slices.Chunk(line.Fields, 2) {
			fields[pair[0].(string)] = pair[1]
		}
		data, err := json.Marshal(fields)
		require.NoError(t, err)
		fmt.Fprintf(&printed, "  line   %s %q %s\n", line.Level, line.Message, data)
	}
	golden.File(t, "testdata/described.golden", printed.String())
}

// Texts of people, models and tools are not in the log, whatever the event.
func TestLinesContainNoContent(t *testing.T) {
	const content = "xylophone"
	text, object := content+" text", json.RawMessage(`{"text":"`+content+`"}`)
	for _, body := range []event.Body{
		event.SystemPrompt{Content: text}, event.UserMessage{Content: text},
		event.AssistantMessage{Content: text, RequestID: "demo:r0001", Reasoning: text},
		event.FileAttachment{Source: event.Source{Type: event.SourceURL, URL: "https://" + content}, FileName: text},
		event.ToolCall{ToolCallID: "call_1", ToolName: "weather", Parameters: object, RequestID: "demo:r0001"},
		event.ToolResult{ToolCallID: "call_1", Value: object}, event.ToolResult{ToolCallID: "call_1", Error: object, IsError: true},
		event.Note{Content: text}, event.ApprovalDecided{Decision: event.Deny, Reason: text, Parameters: object, DecidedBy: text},
		event.SessionEnded{Reason: text}, event.InputRejected{Reason: text, Input: text},
		event.LLMRequestInterrupted{RequestID: "demo:r0001", PartialResponse: text},
		event.LLMRequestFailed{RequestID: "demo:r0001", Error: text, Kind: event.FailureBadResponse},
		event.LLMRequestFailed{RequestID: "demo:r0001", Error: text, Kind: event.FailureRefusedByHook},
		event.LLMRequestFellBack{RequestID: "demo:r0001", Error: text, Kind: event.FailureContentFilter},
		event.LLMAttemptEnded{RequestID: "demo:r0001", Error: text, Outcome: event.AttemptFailed, Kind: event.FailureBadResponse},
		event.HookApplied{RequestID: "demo:r0001", Hook: "pii", Reason: text, Change: &event.HookChange{Instructions: text}},
		event.Compacted{RequestID: "demo:r0001", Summary: text},
	} {
		l := event.LineOf(body)
		require.NotContains(t, fmt.Sprint(l.Message, l.Fields), content, body.Tag())
	}
}

func TestLinesContainNoSecrets(t *testing.T) {
	const key = "sk-proj-abcdefgh12345678"
	for _, body := range []event.Body{
		event.LLMRequestFailed{RequestID: "demo:r0001", Error: "Incorrect API key provided: " + key, Kind: event.FailureUnauthorized},
		event.LLMRequestFellBack{RequestID: "demo:r0001", Error: "Incorrect API key provided: " + key, Kind: event.FailureUnauthorized},
		event.LLMRequestStarted{RequestID: "demo:r0001", Model: key}, event.LLMRequestStarted{RequestID: "demo:r0001", ProviderID: key},
		event.LLMRequestCompleted{RequestID: "demo:r0001", FinishReason: key}, event.BudgetExceeded{RequestID: "demo:r0001", Budget: key},
		event.ToolCall{ToolCallID: "call_1", ToolName: key}, event.ToolCall{ToolCallID: key}, event.ToolResult{ToolCallID: key},
		event.ApprovalRequested{ToolCallID: key}, event.ApprovalDecided{ToolCallID: key},
		event.LLMAttemptEnded{RequestID: "demo:r0001", Error: "Bearer " + key, Outcome: event.AttemptFailed, Kind: event.FailureUnavailable},
	} {
		l := event.LineOf(body)
		require.Contains(t, fmt.Sprint(l.Fields), event.Removed, body.Tag())
		require.NotContains(t, fmt.Sprint(l.Fields), key, body.Tag())
	}
}
