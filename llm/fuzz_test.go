package llm_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// canned is a transport with the same response to every request.
type canned struct {
	status int
	body   string
}

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: c.status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(c.body)), Request: r,
	}, nil
}

func FuzzResponse(f *testing.F) {
	f.Add(200, llmtest.Chunk(`{"content":"Hi"}`, "")+llmtest.Chunk(`{}`, "stop")+llmtest.UsageChunk(1, 2)+llmtest.Done)
	f.Add(200, ": comment\r\ndata:{\"error\":null}\r\n")
	f.Add(200, "data: {\"error\":{\"message\":[1],\"code\":{}}}\n")
	f.Add(200, "<html>")
	f.Add(429, `[{"error":{"message":"slow down","code":429}}]`)
	f.Add(500, `{"error":"down","metadata":{"raw":{}}}`)
	f.Add(307, "")
	f.Add(200, llmtest.Chunk(`{"reasoning":"Hm","reasoning_details":[{"type":"reasoning.text","text":"Hm","index":0}]}`, "")+llmtest.Chunk(`{"content":"Hi"}`, "stop"))
	f.Add(200, llmtest.Chunk(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm"}]},{"type":"text","text":"Hi"}]}`, "stop"))
	f.Add(200, llmtest.Chunk(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"weather","arguments":"{"}}]}`, "")+
		llmtest.Chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"}"}},{"id":"b","function":{"name":"time","arguments":{}}}]}`, "tool_calls"))
	f.Fuzz(func(t *testing.T, status int, body string) {
		adapter := llm.New(llm.Options{
			HTTPClient: &http.Client{Transport: canned{status, body}}, Getenv: func(string) string { return testKey },
		})
		target, err := adapter.Resolve(reducer.ProviderConfig{ProviderID: "openrouter", Model: "m"})
		require.NoError(t, err)
		target.Tools = tools
		var said, thought strings.Builder
		result, err := target.Stream(context.Background(), hello, func(d llm.Delta) {
			require.NotEmpty(t, d.Text)
			if d.IsReasoning {
				thought.WriteString(d.Text)
			} else {
				said.WriteString(d.Text)
			}
		})
		require.Equal(t, said.String(), result.Text)
		require.Equal(t, thought.String(), result.Reasoning)
		if len(result.Calls) > 0 {
			require.NoError(t, err)
			require.Equal(t, "tool_calls", result.FinishReason)
		}
		ids := map[string]bool{}
		for _, call := range result.Calls {
			require.Regexp(t, `^[A-Za-z0-9_-]{1,64}$`, call.Name)
			require.True(t, call.ID != "" && len(call.ID) <= 64 && !ids[call.ID])
			require.True(t, utf8.ValidString(call.ID+call.Arguments))
			ids[call.ID] = true
		}
		if err == nil {
			require.NotEmpty(t, result.FinishReason)
			require.True(t, status >= 200 && status < 300)
			return
		}
		var failed *llm.Error
		require.ErrorAs(t, err, &failed)
		require.NotEmpty(t, failed.Kind)
		require.NotEmpty(t, failed.Message)
		require.Empty(t, result.FinishReason)
		require.NotContains(t, err.Error(), testKey)
		require.NotContains(t, err.Error(), "\n")
	})
}
