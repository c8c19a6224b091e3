package llm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// echoed returns the deltas and the result of a response to a request with a key.
func echoed(t *testing.T, key, body string) (deltas []llm.Delta, result llm.Result) {
	t.Helper()
	adapter := llm.New(llm.Options{
		HTTPClient: &http.Client{Transport: canned{http.StatusOK, body}}, Getenv: func(string) string { return key },
	})
	target, err := adapter.Resolve(reducer.ProviderConfig{ProviderID: "openrouter", Model: "m"})
	require.NoError(t, err)
	require.NotContains(t, fmt.Sprintf("%+v", target), key)
	target.Tools = tools
	result, err = target.Stream(context.Background(), hello, func(d llm.Delta) { deltas = append(deltas, d) })
	require.NoError(t, err)
	return deltas, result
}

func TestAKeyInAnAnswerIsRemoved(t *testing.T) {
	const before, after = "test-key-d41d, tes", "-key test"
	for size := range len(testKey) {
		size++
		for _, field := range []string{"content", "reasoning"} {
			var body strings.Builder
			for text := before + testKey + testKey + after; text != ""; {
				n := min(size, len(text))
				fmt.Fprint(&body, llmtest.Chunk(fmt.Sprintf(`{%q:%q}`, field, text[:n]), ""))
				text = text[n:]
			}
			deltas, result := echoed(t, testKey, body.String()+llmtest.Chunk(`{"content":"."}`, "stop")+llmtest.Done)
			var text, reasoning string
			for _, d := range deltas {
				if d.IsReasoning {
					reasoning += d.Text
				} else {
					text += d.Text
				}
			}
			require.Equal(t, result.Text, text)
			require.Equal(t, result.Reasoning, reasoning)
			require.Equal(t, before+event.Removed+event.Removed+after+".", reasoning+text, "%s in pieces of %d bytes", field, size)
		}
	}
}

func TestAKeyInCallsAndStateIsRemoved(t *testing.T) {
	body := llmtest.Chunk(`{"reasoning_details":[{"type":"reasoning.text","text":"`+testKey[:9]+`","index":0,"signature":"`+testKey+`"}]}`, "") +
		llmtest.Chunk(`{"reasoning_details":[{"type":"reasoning.text","text":"`+testKey[9:]+`","index":0}]}`, "") +
		llmtest.Chunk(`{"tool_calls":[{"index":0,"id":"`+testKey+`","function":{"name":"`+testKey+`","arguments":"{\"a\":\"`+testKey[:5]+`"}}]}`, "") +
		llmtest.Chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"`+testKey[5:]+`\"}"}}]}`, "tool_calls") + llmtest.Done
	_, result := echoed(t, testKey, body)
	require.Len(t, result.Calls, 1)
	require.JSONEq(t, `{"a":"`+event.Removed+`"}`, result.Calls[0].Arguments)
	data, err := json.Marshal(result)
	require.NoError(t, err)
	require.NotContains(t, string(data), testKey)
	require.Contains(t, string(result.State.Data), event.Removed)
}

func TestAPlaceholderForAKeyStaysInAnAnswer(t *testing.T) {
	_, result := echoed(t, "ollama", llmtest.Chunk(`{"content":"Run ollama"}`, "stop")+llmtest.Done)
	require.Equal(t, "Run ollama", result.Text)
}

func TestOnlyTheBeginningOfAKeyIsHeldBack(t *testing.T) {
	body := llmtest.Chunk(`{"content":"a te"}`, "") + llmtest.Chunk(`{"content":"st of b"}`, "") + llmtest.Chunk(`{"content":"c t"}`, "stop") + llmtest.Done
	deltas, _ := echoed(t, testKey, body)
	require.Equal(t, []llm.Delta{{Text: "a "}, {Text: "test of b"}, {Text: "c "}, {Text: "t"}}, deltas)
}
