package workflows_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/wire"
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
		"a started request": {"request-started",
			[]*commonpb.Payload{plain(`{"requestId":"demo:r0001","attempt":2,"throughEventId":"demo:0003","providerId":"openai","model":"m"}`)},
			reducer.RequestStarted{At: now, Attempted: reducer.Attempted{
				RequestID: "demo:r0001", Attempt: 2, Through: "demo:0003", ProviderID: "openai", Model: "m",
			}}},
		"an attempt that is retried, after a lost one": {"request-started",
			[]*commonpb.Payload{plain(`{"requestId":"demo:r0001","attempt":2,"throughEventId":"demo:0003","providerId":"openai","model":"m",
				"ended":{"kind":"timeout","retryable":true,"error":"slow, with key sk-live-0123456789","durationMs":1500,"inputTokens":7,"estimated":true},
				"lost":{"attempt":1,"throughEventId":"demo:0002","providerId":"openai","model":"n","inputTokens":5,"costMicros":3,"priceVersion":"1"}}`)},
			reducer.RequestStarted{
				At: now,
				Attempted: reducer.Attempted{
					RequestID: "demo:r0001", Attempt: 2, Through: "demo:0003", ProviderID: "openai", Model: "m",
				},
				Ended: &reducer.AttemptEnd{
					Kind: event.FailureTimeout, Retryable: true, Error: "slow, with key [removed]", Duration: 1500 * time.Millisecond,
					Usage: event.Usage{InputTokens: 7, Estimated: true},
				},
				Lost: &reducer.LostAttempt{
					Attempted: reducer.Attempted{RequestID: "demo:r0001", Attempt: 1, Through: "demo:0002", ProviderID: "openai", Model: "n"},
					Usage:     event.Usage{InputTokens: 5, CostMicros: new(int64(3)), PriceVersion: "1"},
				},
			}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, workflows.Decode(test.signal, &commonpb.Payloads{Payloads: test.payloads}, now))
		})
	}
}

func TestAMalformedSignalIsRejected_Alone(t *testing.T) {
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
		"a malformed started request":       {"request-started", &commonpb.Payloads{Payloads: []*commonpb.Payload{plain(`"hi"`)}}, "signal request-started: ", `"hi"`},
		"a started request in binary":       {"request-started", &commonpb.Payloads{Payloads: []*commonpb.Payload{payload("binary/plain", "hi")}}, "want JSON", "hi"},
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
			refused, ok := workflows.Decode(test.signal, test.payloads, now).(reducer.Refused)
			require.True(t, ok)
			require.Equal(t, now, refused.At)
			require.Contains(t, refused.Reason, test.reason)
			require.Contains(t, refused.Input, test.input)
			require.Less(t, len(refused.Input), 2*event.MaxRejectedInput)
			require.NotContains(t, refused.Reason+refused.Input, "sk-live")
		})
	}
}

func TestARunOfVersion010DecodesInputByItsRules(t *testing.T) {
	now := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	started := func(size int) *commonpb.Payload {
		return plain(`{"requestId":"demo:r0001","attempt":2,"model":"` + strings.Repeat("m", size) + `"}`)
	}
	for name, test := range map[string]struct {
		signal                   string
		input                    *commonpb.Payload
		acceptedBy1, acceptedBy2 bool
	}{
		"a valid value of a later field":      {"event", plain(`{"_tag":"UserMessage","content":"x","settings":{"seed":1}}`), true, true},
		"an invalid value of a later field":   {"event", plain(`{"_tag":"UserMessage","content":"x","settings":"dark"}`), true, false},
		"an invalid value in an array":        {"event", plain(`[{"_tag":"AssistantMessage","content":"x","reasoning":7}]`), true, false},
		"an unknown field of a setting":       {"event", plain(`{"_tag":"SetTools","aprove":["*"]}`), true, false},
		"an unknown field of a message":       {"event", plain(`{"_tag":"UserMessage","content":"x","mood":"good"}`), true, true},
		"an invalid value of another field":   {"event", plain(`{"_tag":"UserMessage","content":7}`), false, false},
		"a short report of a started request": {"request-started", started(100), true, true},
		"a long report of a started request":  {"request-started", started(5000), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			for rules, isAccepted := range map[reducer.Rules]bool{reducer.Rules1: test.acceptedBy1, reducer.Rules2: test.acceptedBy2} {
				in := workflows.DecodeBy(rules, test.signal, &commonpb.Payloads{Payloads: []*commonpb.Payload{test.input}}, now)
				_, isRefused := in.(reducer.Refused)
				require.Equal(t, isAccepted, !isRefused, "rules %d: %+v", rules, in)
			}
		})
	}
}
