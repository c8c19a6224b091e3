package workflows

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest/golden"
)

func TestEveryEventHasALineOfTheLog(t *testing.T) {
	var printed strings.Builder
	for _, body := range eventtest.Examples() {
		if body.Tag().Class() == event.ClassEphemeral {
			continue
		}
		l := lineOf(event.New(body))
		fields := map[string]any{}
		for i := 0; i < len(l.fields); i += 2 {
			fields[l.fields[i].(string)] = l.fields[i+1]
		}
		data, err := json.Marshal(fields)
		require.NoError(t, err)
		fmt.Fprintf(&printed, "%-28s %-5s %s %s\n", body.Tag(), [...]string{"debug", "info", "warn"}[l.level], l.message, data)
	}
	golden.File(t, "testdata/lines.golden", printed.String())
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
		l := lineOf(event.New(body))
		require.NotContains(t, fmt.Sprint(l.message, l.fields), content, body.Tag())
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
		l := lineOf(event.New(body))
		require.Contains(t, fmt.Sprint(l.fields), event.Removed, body.Tag())
		require.NotContains(t, fmt.Sprint(l.fields), key, body.Tag())
	}
}
