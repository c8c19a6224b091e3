package llm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sashabaranov/go-openai"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// wall is a model without a network that records requests and rejects them.
type wall struct {
	mu     sync.Mutex
	bodies []string
	again  []func() (io.ReadCloser, error)
}

func (w *wall) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil || int64(len(body)) != req.ContentLength {
		return nil, fmt.Errorf("%d bytes instead of %d: %w", len(body), req.ContentLength, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bodies, w.again = append(w.bodies, string(body)), append(w.again, req.GetBody)
	refusal := io.NopCloser(strings.NewReader(`{"error":{"message":"no"}}`))
	return &http.Response{StatusCode: http.StatusInternalServerError, Header: http.Header{}, Body: refusal, Request: req}, nil
}

// TestARequestIsThatOfGoOpenAI also compares the bound of the tokens with their number, and the body with that of a retry.
func TestARequestIsThatOfGoOpenAI(t *testing.T) {
	configs := []reducer.ProviderConfig{
		{ProviderID: "openai"}, {ProviderID: "mistral"}, {ProviderID: "openrouter"}, {ProviderID: "anthropic"}, {ProviderID: "vllm"},
		{ProviderID: "ollama"}, {ProviderID: "vllm", Model: "gemma-3"}, {Model: "gemma-3"}, {TextOnly: true},
		{Model: "gpt-4"}, // another tokenizer
	}
	rapid.Check(t, func(rt *rapid.T) {
		stored := rapid.SampledFrom([][]byte{nil, []byte("one")}).Draw(rt, "stored") // content of files and blobs; nil: unreadable
		model := &wall{}
		adapter := llm.New(llm.Options{
			HTTPClient:     &http.Client{Transport: model},
			AllowBaseURLs:  modelExample,
			ReadAttachment: func(string) ([]byte, error) { return stored, errorIf(stored == nil) },
		})
		var messages []reducer.Message
		for range rapid.IntRange(1, 30).Draw(rt, "changes") {
			messages = changed(rt, messages)
		}
		target := targetOf(rt, adapter, rapid.SampledFrom(configs).Draw(rt, "config"))
		target.ReadBlob = func(context.Context, string) ([]byte, error) { return stored, errorIf(stored == nil) }
		if rapid.IntRange(0, 3).Draw(rt, "counts") == 0 { // it loads a vocabulary
			n, err := target.InputTokens(t.Context(), messages, 0)
			require.NoError(rt, err)
			most, err := target.InputTokens(t.Context(), messages, math.MaxInt)
			require.NoError(rt, err)
			require.GreaterOrEqual(rt, most, n, "a bound without counting")
		}
		_, err := target.Stream(t.Context(), messages, nil)
		if len(model.bodies) == 0 {
			require.ErrorContains(rt, err, "the conversation has no message")
			return
		}
		if !strings.Contains(model.bodies[0], "state of") {
			require.JSONEq(rt, encodedByGoOpenAI(rt, model.bodies[0]), model.bodies[0])
		}
		again, err := model.again[0]()
		require.NoError(rt, err)
		data, err := io.ReadAll(again)
		require.NoError(rt, err)
		require.Equal(rt, model.bodies[0], string(data))
	})
}

func errorIf(failed bool) error {
	if failed {
		return errors.New("not to be read")
	}
	return nil
}

func targetOf(t require.TestingT, adapter *llm.Adapter, config reducer.ProviderConfig) *llm.Target {
	config.BaseURL = "http://model.example/v1"
	if config.ProviderID == "" {
		config.ProviderID = "scripted"
	}
	if config.Model == "" {
		config.Model = `"messages":null`
	}
	target, err := adapter.Resolve(config)
	require.NoError(t, err)
	return target
}

// encodedByGoOpenAI returns a body as encoded by go-openai.
func encodedByGoOpenAI(t require.TestingT, body string) string {
	var request openai.ChatCompletionRequest
	require.NoError(t, json.Unmarshal([]byte(body), &request))
	data, err := json.Marshal(request)
	require.NoError(t, err)
	// go-openai omits the content of calls without text.
	return strings.ReplaceAll(string(data), `{"role":"assistant","tool_calls":`, `{"role":"assistant","content":null,"tool_calls":`)
}

// changed returns a changed copy of a conversation, mostly changed at its end.
func changed(t *rapid.T, messages []reducer.Message) []reducer.Message {
	messages = slices.Clone(messages)
	last := len(messages) - 1
	at := func() int { return max(0, last-rapid.IntRange(0, last).Draw(t, "from the end")) }
	change := rapid.SampledFrom([]string{"say", "say", "say", "say", "insert", "system", "edit", "attach", "call", "answer", "answer otherwise", "state", "drop", "forget"}).Draw(t, "change")
	if last < 0 {
		change = "say"
	}
	switch change {
	case "say":
		return append(messages, anyMessage().Draw(t, "message"))
	case "insert":
		return slices.Insert(messages, at(), anyMessage().Draw(t, "message"))
	case "system":
		prompt := system(rapid.SampledFrom([]string{"", "Be brief.", "Be <long>."}).Draw(t, "prompt"))
		if messages[0].Role != reducer.RoleSystem {
			return slices.Insert(messages, 0, prompt)
		}
		messages[0] = prompt
	case "edit":
		messages[at()].Content = rapid.SampledFrom([]string{"", "delta", "<é&>\u2028"}).Draw(t, "content")
	case "attach":
		a := rapid.SampledFrom([]reducer.Attachment{file("text/plain", "a.txt"), file("image/png", "a.png"), ref("image/png", "b.png", "b")}).Draw(t, "attachment")
		m := &messages[at()]
		m.Attachments = append(slices.Clip(m.Attachments), a)
	case "call":
		m := &messages[at()]
		if m.Role == reducer.RoleAssistant && len(m.ToolCalls) > 0 && rapid.Bool().Draw(t, "otherwise") {
			m.ToolCalls = slices.Clone(m.ToolCalls)
			m.ToolCalls[0].Arguments = `{"y":2}`
		} else if m.Role == reducer.RoleAssistant {
			m.ToolCalls = append(slices.Clip(m.ToolCalls), call(fmt.Sprint("call-", last), "run"))
		}
	case "answer":
		for _, m := range slices.Backward(messages) {
			if len(m.ToolCalls) > 0 {
				return append(messages, toolResult(m.ToolCalls[0].ID, "late"))
			}
		}
	case "answer otherwise":
		for i, m := range slices.Backward(messages) {
			if m.Role == reducer.RoleTool {
				messages[i].Content += "!"
				break
			}
		}
	case "state":
		if m := &messages[at()]; m.Role == reducer.RoleAssistant {
			m.ProviderState, m.Partial = nil, rapid.Bool().Draw(t, "partial")
			if rapid.Bool().Draw(t, "has a state") {
				*m = withAnyState(t, []reducer.ProviderConfig{
					{ProviderID: "openrouter", Model: `"messages":null`, BaseURL: "http://model.example/v1"},
					{ProviderID: "mistral", Model: `"messages":null`, BaseURL: "http://model.example/v1"},
				})
			}
		}
	case "drop":
		i := at()
		return slices.Delete(messages, i, i+1)
	case "forget":
		return messages[:at()]
	}
	return messages
}
