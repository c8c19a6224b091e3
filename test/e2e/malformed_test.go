package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	sdkclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

// rawKey looks like a provider's key. It must never appear in the output of a context.
const rawKey = "sk-live-0123456789abcdef"

// payload is a signal input with raw bytes and any encoding.
func payload(encoding, data string) converter.RawValue {
	return converter.NewRawValue(&commonpb.Payload{
		Metadata: map[string][]byte{converter.MetadataEncoding: []byte(encoding)}, Data: []byte(data),
	})
}

// malformed are invalid signals, with a part of the reason for rejection.
var malformed = []struct {
	name   string
	signal string
	input  any
	reason string
}{
	{"half an object", "event", payload("json/plain", `{"_tag":"UserMessage"`), "want a JSON object"},
	{"no bytes", "event", payload("json/plain", ``), "got nothing"},
	{"no input", "event", nil, "signal event"},
	{"binary", "event", payload("binary/plain", "\x00\xff"), `encoding "binary/plain"`},
	{"no encoding", "event", converter.NewRawValue(&commonpb.Payload{Data: []byte(`{"_tag":"UserMessage","content":"x"}`)}), `encoding ""`},
	{"encrypted input", "event", payload("binary/encrypted", "\x01"+rawKey), `encoding "binary/encrypted"`},
	{"not UTF-8", "event", payload("json/plain", "{\"_tag\":\"UserMessage\",\"content\":\"\xff\"}"), "want a JSON object"},
	{"deep nesting", "event", payload("json/plain", strings.Repeat("[", 100_000)), "want a JSON array"},
	{"a string", "event", "just text", "got a string"},
	{"an empty array", "event", []any{}, "the array has no events"},
	{"an array of arrays", "event", []any{[]any{}}, "event 1 of 1"},
	{"an unknown tag", "event", map[string]any{"_tag": "Nonsense"}, "unknown"},
	{"no tag", "event", map[string]any{"content": "x"}, "_tag: missing"},
	{"a number for a text", "event", map[string]any{"_tag": "UserMessage", "content": 5}, "UserMessageEvent.content"},
	{"a blank message", "event", map[string]any{"_tag": "UserMessage", "content": "  "}, "empty"},
	{"a message for another context", "event", map[string]any{"_tag": "UserMessage", "content": "x", "contextName": "another"}, "another context"},
	{"a misspelt setting", "event", map[string]any{"_tag": "SetTools", "aprove": []string{"*"}}, `SetToolsEvent: unknown field "aprove" (did you mean "approve"?)`},
	{"a timeout of zero", "event", map[string]any{"_tag": "SetTimeout", "timeoutMs": 0}, "SetTimeoutEvent.timeoutMs"},
	{"a forged end", "event", map[string]any{"_tag": "SessionEnded", "reason": "forged"}, "reserved for the session"},
	{"a result without a call", "event", map[string]any{"_tag": "ToolResult", "toolCallId": "c9", "value": 1}, "no tool call"},
	{"one bad event among good ones", "event", []any{map[string]any{"_tag": "UserMessage", "content": "good"}, map[string]any{"_tag": "Bad"}}, "event 2 of 2"},
	{"too large an event", "event", map[string]any{"_tag": "UserMessage", "content": strings.Repeat("x", wire.MaxStoredBytes)}, "can be recorded"},
	{"a raw key", "event", map[string]any{"_tag": "SetProviderConfig", "providerId": "openai", "model": "m", "apiKey": rawKey}, "apiKey: a raw key is not allowed"},
	{"a raw key as a reference", "event", map[string]any{"_tag": "SetProviderConfig", "providerId": "openai", "model": "m", "apiKeyRef": rawKey}, "apiKeyRef"},
	{"a nested raw key", "event", map[string]any{"_tag": "UserMessage", "content": "x", "headers": []any{map[string]any{"x-api-key": rawKey}}}, "headers.0.x-api-key: a raw key is not allowed"},
	{"a raw key of the wrong type", "event", map[string]any{"_tag": "UserMessage", "content": map[string]any{"api_key": []string{rawKey}}}, "content"},
	{"a raw key in a URL", "event", map[string]any{"_tag": "SetProviderConfig", "providerId": "p", "model": "m", "baseUrl": "https://" + rawKey + "@example.com/v1"}, "baseUrl"},
	{"a raw key as tag", "event", map[string]any{"_tag": rawKey}, "unknown"},
	{"a raw key in broken JSON", "event", payload("json/plain", `{"apiKey":"`+rawKey), "want a JSON object"},
	{"an unknown signal", "typo", "the key is " + rawKey, "want one of event, interrupt, close"},
}

func TestMalformedSignalsAreRejected_Alone(t *testing.T) {
	large(t)
	w := newWorld(t, llmtest.Answer("Still here."))
	running := w.process(contexts.Both) // a process, to read its log
	c := w.open("bad")
	id := wire.WorkflowID(c.Name())
	w.send(c, event.New(event.SetTimeout{TimeoutMs: 10_000}))
	for _, bad := range malformed {
		require.NoError(t, w.temporal.SignalWorkflow(w.ctx, id, "", bad.signal, bad.input), bad.name)
	}

	// Temporal itself rejects larger payloads.
	huge := strings.Repeat("x", 3<<20)
	require.ErrorContains(t, w.dial(nil).SignalWorkflow(w.ctx, id, "", "event", map[string]any{"_tag": "UserMessage", "content": huge}), "Blob data size exceeds limit")

	last := w.say(c, "Still there?")
	require.Equal(t, event.TagLLMRequestCompleted, last[len(last)-1].Tag())
	require.Equal(t, []string{"Still here."}, w.requireConsistentLog(c, "Still there?"))

	var rejected []event.InputRejected
	for _, e := range w.from(c, "") {
		if b, ok := e.Body.(event.InputRejected); ok {
			rejected = append(rejected, b)
		}
	}
	require.Len(t, rejected, len(malformed))
	for i, bad := range malformed {
		require.Contains(t, rejected[i].Reason, bad.reason, bad.name)
		text, err := json.Marshal(rejected[i])
		require.NoError(t, err)
		require.Less(t, len(text), 4000, "%s must be truncated", bad.name)
	}
	require.NoError(t, running.Stop(testTimeout))
	requireNoRawKey(t, w, c, running.output.String())
	w.replay(c, "")
}

func requireNoRawKey(t *testing.T, w *world, c *client.Context, logged string) {
	t.Helper()
	require.NotEmpty(t, logged)
	require.NotContains(t, logged, rawKey, "a line of the worker's log")
	w.worker() // the queries need one
	for _, query := range []string{wire.QueryState, sdkclient.QueryTypeStackTrace, "__temporal_workflow_metadata"} {
		value, err := w.temporal.QueryWorkflow(w.ctx, wire.WorkflowID(c.Name()), "", query)
		require.NoError(t, err, query)
		var answer converter.RawValue
		require.NoError(t, value.Get(&answer), query)
		require.NotEmpty(t, answer.Payload().GetData(), query)
		require.NotContains(t, string(answer.Payload().GetData()), rawKey, query)
	}
	history := w.temporal.GetWorkflowHistory(w.ctx, wire.WorkflowID(c.Name()), "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	events := 0
	for history.HasNext() {
		h, err := history.Next()
		require.NoError(t, err)
		events++
		if h.GetWorkflowExecutionSignaledEventAttributes() == nil {
			require.NotContains(t, h.String(), rawKey, "event %d, %v", h.GetEventId(), h.GetEventType())
		}
	}
	require.Greater(t, events, len(malformed))
}
