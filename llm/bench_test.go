package llm_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// reader is a model without a network. It reads a request completely and answers with a word.
type reader struct{}

func (reader) RoundTrip(req *http.Request) (*http.Response, error) {
	if _, err := io.Copy(io.Discard, req.Body); err != nil {
		return nil, err
	}
	answer := llmtest.Chunk(`{"content":"Hi"}`, "stop") + llmtest.UsageChunk(7, 1) + llmtest.Done
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(answer)), Request: req}, nil
}

// BenchmarkRequest10kMessages measures one more turn of a conversation, up to the end of its
// request, with 10 and with 10,000 messages, short and of 400 bytes each.
func BenchmarkRequest10kMessages(b *testing.B) {
	for _, size := range []struct{ messages, bytes int }{{10, 20}, {10_000, 20}, {10_000, 400}} {
		b.Run(fmt.Sprintf("%d of %d bytes", size.messages, size.bytes), func(b *testing.B) {
			adapter := llm.New(llm.Options{AllowBaseURLs: modelExample, HTTPClient: &http.Client{Transport: reader{}}})
			var messages []reducer.Message
			say := func() {
				text := fmt.Sprintf("%0*d", size.bytes, len(messages))
				messages = append(messages, user(text), assistant(text))
			}
			for len(messages) < size.messages {
				say()
			}
			ask := func() {
				target, err := adapter.Resolve(reducer.ProviderConfig{ProviderID: "scripted", BaseURL: "http://model.example/v1", Model: "m"})
				require.NoError(b, err)
				_, err = target.Stream(b.Context(), messages[:len(messages)-1], nil)
				require.NoError(b, err)
			}
			ask()
			b.ReportAllocs()
			for b.Loop() {
				say()
				ask()
			}
		})
	}
}

// BenchmarkDeltas measures an answer of 1,000 deltas, as servers of different providers send them.
func BenchmarkDeltas(b *testing.B) {
	for _, test := range []struct{ name, provider, delta string }{
		{"text", "openai", `{"content":" token"}`},
		{"text of OpenRouter", "openrouter", `{"role":"assistant","content":" token","reasoning":null,"reasoning_details":[]}`},
		{"reasoning_content", "deepseek", `{"content":null,"reasoning_content":" token"}`},
		{"reasoning_details", "openrouter",
			`{"content":"","reasoning":" token","reasoning_details":[{"type":"reasoning.text","text":" token","index":0}]}`},
		{"arguments of a call", "openai", `{"tool_calls":[{"index":0,"function":{"arguments":" token"}}]}`},
	} {
		b.Run(test.name, func(b *testing.B) {
			body := strings.Repeat(llmtest.Chunk(test.delta, ""), 1000) + llmtest.Chunk(`{"content":"."}`, "stop") + llmtest.Done
			adapter := llm.New(llm.Options{
				AllowBaseURLs: modelExample, HTTPClient: &http.Client{Transport: canned{http.StatusOK, body}},
				Getenv: func(string) string { return testKey },
			})
			target, err := adapter.Resolve(reducer.ProviderConfig{ProviderID: test.provider, Model: "m"})
			require.NoError(b, err)
			target.Tools = tools
			b.ReportAllocs()
			for b.Loop() {
				_, err := target.Stream(b.Context(), hello, nil)
				require.NoError(b, err)
			}
		})
	}
}

// BenchmarkInputTokens1MB measures counting the input of one more turn of a conversation of 1 MB,
// and the first count, for example after a worker restarts.
func BenchmarkInputTokens1MB(b *testing.B) {
	words := strings.Fields("the model reads all of these words again with every request until some of them are left out")
	var messages []reducer.Message
	say := func() {
		text := strings.Builder{}
		for i := range 75 {
			fmt.Fprintf(&text, "%s ", words[(len(messages)*7+i*i)%len(words)])
		}
		messages = append(messages, user(text.String()), assistant(fmt.Sprint(len(messages), " ", text.String())))
	}
	size := 0
	for size < 1<<20 {
		say()
		size += len(messages[len(messages)-1].Content) * 2
	}
	count := func(b *testing.B, adapter *llm.Adapter) {
		target, err := adapter.Resolve(reducer.ProviderConfig{ProviderID: "scripted", BaseURL: "http://model.example/v1", Model: "m"})
		require.NoError(b, err)
		_, err = target.InputTokens(b.Context(), messages[:len(messages)-1], 0)
		require.NoError(b, err)
	}
	newAdapter := func() *llm.Adapter { return llm.New(llm.Options{AllowBaseURLs: modelExample}) }
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			count(b, newAdapter())
		}
	})
	b.Run("next", func(b *testing.B) {
		adapter := newAdapter()
		count(b, adapter)
		b.ReportAllocs()
		for b.Loop() {
			say()
			count(b, adapter)
		}
	})
}
