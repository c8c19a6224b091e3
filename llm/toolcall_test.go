package llm_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

// callFragments are the formats in which servers stream a tool call.
var callFragments = map[string][]string{
	"without an index on any fragment": {
		llmtest.Chunk(`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"weather","arguments":""}}]}`, ""),
		llmtest.Chunk(`{"tool_calls":[{"function":{"arguments":"{\"city\":"}}]}`, ""),
		llmtest.Chunk(`{"tool_calls":[{"function":{"arguments":"\"Rome\"}"}}]}`, ""),
	},
	"with an index on each": {
		llmtest.Chunk(`{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"weather","arguments":""}}]}`, ""),
		llmtest.Chunk(`{"tool_calls":[{"index":0,"id":null,"type":null,"function":{"name":null,"arguments":"{\"city\":"}}]}`, ""),
		llmtest.Chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"\"Rome\"}"}}]}`, ""),
	},
	"in one piece": {
		llmtest.Chunk(`{"content":"","tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Rome\"}"}}]}`, ""),
	},
	"with incomplete arguments": {
		llmtest.Chunk(`{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"weather","arguments":"{\"ci"}}]}`, ""),
	},
	"with arguments as an object": {
		llmtest.Chunk(`{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"weather","arguments":{"city":"Rome"}}}]}`, ""),
	},
	"as a function call with an object": {
		llmtest.Chunk(`{"content":null,"function_call":{"name":"weather","arguments":{}}}`, ""),
	},
	"as a function call, the deprecated form": {
		llmtest.Chunk(`{"content":null,"function_call":{"name":"weather","arguments":"{\"city\":\"Rome\"}"}}`, ""),
	},
}

func TestUnexpectedToolCalls(t *testing.T) {
	const sse = "text/event-stream"
	for shape, fragments := range callFragments {
		for _, finish := range []string{"tool_calls", "stop", "length"} {
			t.Run(shape+", ended by "+finish, func(t *testing.T) {
				before := llmtest.Chunk(`{"content":"Let me "}`, "")
				after := llmtest.Chunk(`{"content":"look."}`, "")
				end := llmtest.Chunk(`{}`, finish)

				step := llmtest.Raw(sse, append(append([]string{before}, fragments...), after, end, llmtest.UsageChunk(7, 9), llmtest.Done)...)
				result, err := target(t, llmtest.Start(t, step)).Stream(within(t), hello, nil)
				require.NoError(t, err, "the text before and after the calls is the answer")
				require.Equal(t, llm.Result{Text: "Let me look.", FinishReason: finish, Usage: event.Usage{InputTokens: 7, OutputTokens: 9}}, result)

				step = llmtest.Raw(sse, append(fragments, end, llmtest.UsageChunk(7, 9), llmtest.Done)...)
				result, err = target(t, llmtest.Start(t, step)).Stream(within(t), hello, nil)
				failed := requireKind(t, llm.KindToolCall, err)
				require.False(t, failed.Retryable())
				require.ErrorContains(t, err, `calls the tool "weather", although no tools were offered`)
				require.Empty(t, result.FinishReason)

				step = llmtest.Raw(sse, append(append([]string{before}, fragments...), end)...).
					CutAt(len(before) + len(fragments[0]))
				result, err = target(t, llmtest.Start(t, step)).Stream(within(t), hello, nil)
				requireKind(t, llm.KindTruncated, err)
				require.Equal(t, "Let me ", result.Text)
			})
		}
	}
}
