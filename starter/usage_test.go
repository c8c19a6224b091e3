package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
)

// spent records two requests, of which the first was retried.
func spent(f *fakeContext) *fakeContext {
	request := func(model string, ends ...event.Body) {
		for i, end := range ends {
			f.recordBodies(event.LLMRequestStarted{RequestID: "demo:r0001", ProviderID: "openai", Model: model, ThroughEventID: "demo:0001", Attempt: i + 1}, end)
		}
	}
	request("large",
		event.LLMAttemptEnded{RequestID: "demo:r0001", Attempt: 1, Outcome: event.AttemptLost, Usage: event.Usage{InputTokens: 10, Estimated: true}},
		event.LLMRequestCompleted{RequestID: "demo:r0001", FinishReason: "stop", Usage: event.Usage{
			InputTokens: 12, CachedTokens: 4, OutputTokens: 30, ReasoningTokens: 20, CostMicros: new(int64(4200)), PriceVersion: "1",
		}})
	request("small", event.LLMRequestFailed{RequestID: "demo:r0001", Error: "no"})
	return f
}

func TestUsageOfAContext(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"by context": {nil,
			"CONTEXT  ATTEMPTS  INPUT  CACHED  OUTPUT  REASONING  COST\n" +
				"demo     3         ~22    4       ~30     20         ~$0.0042+\n"},
		"by model": {[]string{"--by", "model"},
			"PROVIDER  MODEL  ATTEMPTS  INPUT  CACHED  OUTPUT  REASONING  COST\n" +
				"openai    large  2         ~22    4       ~30     20         ~$0.0042+\n" +
				"openai    small  1         0      0       0       0          $0.00\n" +
				"total            3         ~22    4       ~30     20         ~$0.0042+\n"},
		"by day": {[]string{"--by", "day", "--json"},
			`{"day":"2026-01-02","attempts":3,"inputTokens":22,"cachedTokens":4,"outputTokens":30,"reasoningTokens":20,"estimated":true,"costMicros":4200,"unpriced":1}` + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got := starter(t, spent(newFake(t)), "", append([]string{"usage", "-n", "demo"}, test.args...)...)
			require.Equal(t, outcome{0, test.want, ""}, got)
		})
	}
}

func TestUsageOfAllContexts(t *testing.T) {
	other := newFake(t)
	other.Rename("acme/demo") // whose events say demo
	spent(other)
	c := &fakeClient{context: spent(newFake(t)), others: []*fakeContext{other}, list: []client.Summary{{ContextName: "acme/demo"}, {ContextName: "demo"}}}
	got := starterWith(t, t.Context(), c, nil, "usage")
	require.Equal(t, outcome{0, "CONTEXT    ATTEMPTS  INPUT  CACHED  OUTPUT  REASONING  COST\n" +
		"acme/demo  3         ~22    4       ~30     20         ~$0.0042+\n" +
		"demo       3         ~22    4       ~30     20         ~$0.0042+\n" +
		"total      6         ~44    8       ~60     40         ~$0.0084+\n", ""}, got)
}

func TestUsageSkipsAContextThatCannotBeRead(t *testing.T) {
	broken := newFake(t)
	broken.Rename("other")
	broken.missing = true
	c := &fakeClient{context: spent(newFake(t)), others: []*fakeContext{broken}, list: []client.Summary{{ContextName: "other"}, {ContextName: "demo"}}}
	got := starterWith(t, t.Context(), c, nil, "usage")
	require.Equal(t, exit.NoContext, got.code)
	require.Contains(t, got.out, "demo     3 ")
	require.Contains(t, got.errOut, "sum up the usage of context other: ")
}

func TestUsageOfAMissingContext(t *testing.T) {
	f := newFake(t)
	f.missing = true
	require.Equal(t, exit.NoContext, starter(t, f, "", "usage", "-n", "demo").code)
}
