package workflows_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/workflows"
)

func payload(encoding, data string) *commonpb.Payload {
	return &commonpb.Payload{
		Metadata: map[string][]byte{converter.MetadataEncoding: []byte(encoding)}, Data: []byte(data),
	}
}

func plain(data string) *commonpb.Payload { return payload(converter.MetadataEncodingJSON, data) }

func TestSignalsAreDecoded(t *testing.T) {
	now := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	hello, brief := event.New(event.UserMessage{Content: "Hello"}), event.New(event.SystemPrompt{Content: "Be brief."})
	const helloJSON, briefJSON = `{"_tag":"UserMessage","content":"Hello"}`, `{"_tag":"SystemPrompt","content":"Be brief."}`
	null := payload(converter.MetadataEncodingNil, "")
	binary := payload(converter.MetadataEncodingBinary, "\x00\xff")
	tests := map[string]struct {
		signal   string
		payloads []*commonpb.Payload
		want     reducer.Input
	}{
		"one event":                         {"event", []*commonpb.Payload{plain(helloJSON)}, reducer.Received{At: now, Events: []event.Event{hello}}},
		"an array of events":                {"event", []*commonpb.Payload{plain("[" + briefJSON + "," + helloJSON + "]")}, reducer.Received{At: now, Events: []event.Event{brief, hello}}},
		"several inputs are one array":      {"event", []*commonpb.Payload{plain(briefJSON), plain(helloJSON)}, reducer.Received{At: now, Events: []event.Event{brief, hello}}},
		"a null input is ignored":           {"event", []*commonpb.Payload{null, plain(helloJSON)}, reducer.Received{At: now, Events: []event.Event{hello}}},
		"an interrupt":                      {"interrupt", nil, reducer.InterruptAsked{At: now}},
		"an interrupt with ignored input":   {"interrupt", []*commonpb.Payload{binary}, reducer.InterruptAsked{At: now}},
		"a close":                           {"close", nil, reducer.CloseAsked{At: now}},
		"a close with a null input":         {"close", []*commonpb.Payload{null}, reducer.CloseAsked{At: now}},
		"a close with a reason":             {"close", []*commonpb.Payload{plain(`{"reason":"for today"}`)}, reducer.CloseAsked{At: now, Reason: "for today"}},
		"a close with a secret":             {"close", []*commonpb.Payload{plain(`{"reason":"key sk-live-0123456789"}`)}, reducer.CloseAsked{At: now, Reason: "key [removed]"}},
		"a close with a malformed reason":   {"close", []*commonpb.Payload{plain(`"done"`)}, reducer.CloseAsked{At: now}},
		"a close with unsupported encoding": {"close", []*commonpb.Payload{binary}, reducer.CloseAsked{At: now}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, workflows.Decode(test.signal, &commonpb.Payloads{Payloads: test.payloads}, now))
		})
	}
}

func TestAMalformedSignalIsRejected(t *testing.T) {
	now := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	tests := map[string]struct {
		signal        string
		payloads      *commonpb.Payloads
		reason, input string
	}{
		"no input":           {"event", nil, "signal event: ", ""},
		"a missing encoding": {"event", &commonpb.Payloads{Payloads: []*commonpb.Payload{{Data: []byte("{}")}}}, `got encoding ""`, "{}"},
		"bytes": {"event", &commonpb.Payloads{Payloads: []*commonpb.Payload{payload("binary/plain", "\x00\xff")}},
			`want JSON (encoding json/plain), got encoding "binary/plain"`, "(2 bytes of invalid UTF-8)"},
		"an incomplete object":              {"event", &commonpb.Payloads{Payloads: []*commonpb.Payload{plain(`{"_tag":"UserMe`)}}, "want a JSON object", `{"_tag":"UserMe`},
		"an incomplete object among others": {"event", &commonpb.Payloads{Payloads: []*commonpb.Payload{plain(`{}`), plain(`{"_tag":"UserMe`)}}, "input 2 of 2", `{"_tag":"UserMe`},
		"a bad event among several":         {"event", &commonpb.Payloads{Payloads: []*commonpb.Payload{plain(`{"_tag":"UserMessage","content":"x"}`), plain(`{"_tag":"Bad"}`)}}, "event 2 of 2", `"Bad"`},
		"an unknown signal":                 {"typo", &commonpb.Payloads{Payloads: []*commonpb.Payload{plain(`"hi"`)}}, "signal typo: want one of event, interrupt, close", `"hi"`},
		"a misspelt setting": {"event", &commonpb.Payloads{Payloads: []*commonpb.Payload{plain(`{"_tag":"SetTools","tools":["grep"],"aprove":["*"]}`)}},
			`signal event: SetToolsEvent: unknown field "aprove" (did you mean "approve"?)`, `"aprove"`},
		"an event that is too large": {"event",
			&commonpb.Payloads{Payloads: []*commonpb.Payload{plain(`{"_tag":"UserMessage","content":"` + strings.Repeat("x", wire.MaxStoredBytes) + `"}`)}},
			"at most 16000000 can be recorded", `{"_tag":"UserMessage"`},
		"a raw key": {"event", &commonpb.Payloads{Payloads: []*commonpb.Payload{plain(`{"_tag":"UserMessage","content":"x","apiKey":"sk-live-0123456789"}`)}},
			"apiKeyRef", `"apiKey":[removed]`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			refused, ok := workflows.Decode(test.signal, test.payloads, now).(reducer.Malformed)
			require.True(t, ok)
			require.Equal(t, now, refused.At)
			require.Contains(t, refused.Reason, test.reason)
			require.Contains(t, refused.Input, test.input)
			require.Less(t, len(refused.Input), 2*event.MaxRejectedInput)
			require.NotContains(t, refused.Reason+refused.Input, "sk-live")
		})
	}
}
