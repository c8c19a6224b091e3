package event_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
)

func TestUsageIsFlatInItsEvent(t *testing.T) {
	e := event.New(event.LLMRequestFellBack{
		RequestID: "demo:r0001", FromProvider: "a", ToProvider: "b", Error: "no", Kind: event.FailureRateLimited, Retryable: true,
		Usage: event.Usage{InputTokens: 7, CachedTokens: 4, OutputTokens: 2, ReasoningTokens: 1, Estimated: true, CostMicros: new(int64(0)), PriceVersion: "1"},
	})
	data, err := e.MarshalJSON()
	require.NoError(t, err)
	require.JSONEq(t, `{"_tag":"LLMRequestFellBackEvent","requestId":"demo:r0001","fromProvider":"a","toProvider":"b","error":"no",
		"retriesAttempted":0,"kind":"rate_limited","retryable":true,"inputTokens":7,"cachedTokens":4,"outputTokens":2,"reasoningTokens":1,
		"estimated":true,"costMicros":0,"priceVersion":"1"}`, string(data))
	var decoded event.Event
	require.NoError(t, json.Unmarshal(data, &decoded))
	require.Equal(t, e, decoded)
}

func TestInvalidUsageAndFailuresAreRejected(t *testing.T) {
	for name, test := range map[string]struct{ field, want string }{
		"negative tokens":           {`"inputTokens":-1`, "inputTokens: want 0 to 1000000000, got -1"},
		"too many tokens":           {`"outputTokens":1000000001`, "outputTokens: want 0 to 1000000000"},
		"a fraction of a token":     {`"inputTokens":1.5`, "inputTokens: want a whole number"},
		"more cached than input":    {`"inputTokens":1,"cachedTokens":2`, "cachedTokens: want 0 to 1, got 2"},
		"more reasoning than text":  {`"reasoningTokens":2`, "reasoningTokens: want 0 to 0, got 2"},
		"a negative cost":           {`"costMicros":-1`, "costMicros: want 0 to 1000000000000000, got -1"},
		"a long price version":      {`"priceVersion":"` + strings.Repeat("x", 65) + `"`, "priceVersion: want at most 64 bytes"},
		"a sentence as a quirk":     {`"quirks":["Paris is big"]`, "quirks: want words of a-z, 0-9 and _, at most 40 bytes"},
		"too many quirks":           {`"quirks":["a"` + strings.Repeat(`,"a"`, 16) + `]`, "quirks: 17 words are too many (at most 16)"},
		"an unknown kind":           {`"kind":"mysterious"`, "kind: want configuration, unauthorized, "},
		"an unknown outcome":        {`"outcome":"gone"`, "outcome: want failed, handed_back, lost, tool_calls or compacted"},
		"an attempt before the 1st": {`"attempt":0`, "attempt: want 1 or more, got 0"},
	} {
		t.Run(name, func(t *testing.T) {
			// Of fields with the same name, the last one counts.
			var e event.Event
			err := json.Unmarshal([]byte(`{"_tag":"LLMAttemptEndedEvent","requestId":"demo:r0001","attempt":1,"outcome":"failed",`+test.field+`}`), &e)
			require.ErrorContains(t, err, "LLMAttemptEndedEvent."+test.want)
		})
	}
}

func TestBoundedUsageIsValid(t *testing.T) {
	u := event.Usage{
		InputTokens: 5, CachedTokens: 9, OutputTokens: -1, ReasoningTokens: 3, CostMicros: new(int64(-1)), PriceVersion: "\xff",
		Quirks: []string{"b", "A text", "a", "b"},
	}.Bounded()
	require.Equal(t, event.Usage{InputTokens: 5, CachedTokens: 5, CostMicros: new(int64(0)), Quirks: []string{"a", "b"}}, u)
	require.Equal(t, u, u.Bounded())
}

func TestUsageInWords(t *testing.T) {
	for want, u := range map[string]event.Usage{
		"0 tokens in, 0 out":  {},
		"~7 tokens in, 2 out": {InputTokens: 7, OutputTokens: 2, Estimated: true},
		"7 tokens in, 2 out, quirks: call_repeated field_type": {InputTokens: 7, OutputTokens: 2, Quirks: []string{"call_repeated", "field_type"}},
		"7 tokens in (4 cached), 2 out (1 reasoning), $0.000042": {
			InputTokens: 7, CachedTokens: 4, OutputTokens: 2, ReasoningTokens: 1, CostMicros: new(int64(42)),
		},
	} {
		require.Equal(t, want, event.DescribeUsage(u))
	}
	for micros, want := range map[int64]string{0: "$0.00", 1: "$0.000001", 4_200: "$0.0042", 500_000: "$0.50", 1_000_000: "$1.00", 12_345_670: "$12.34567"} {
		require.Equal(t, want, event.FormatCost(micros))
	}
}
