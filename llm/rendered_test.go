package llm_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sashabaranov/go-openai"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/event"
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

// TestRequestDoesNotDependOnEarlierOnes sends a randomly changing conversation with and without
// the cache. It compares errors, too, since they tell whether an image is suspected.
func TestRequestDoesNotDependOnEarlierOnes(t *testing.T) {
	configs := []reducer.ProviderConfig{
		{ProviderID: "openai"}, {ProviderID: "mistral"}, {ProviderID: "openrouter"}, {ProviderID: "anthropic"}, {ProviderID: "vllm"},
		{ProviderID: "ollama"}, {ProviderID: "vllm", Model: "gemma-3"}, {Model: "gemma-3"}, {TextOnly: true},
		{Model: "gpt-4"}, // another tokenizer
	}
	rapid.Check(t, func(rt *rapid.T) {
		var stored []byte // content of files and blobs; nil: unreadable
		model := &wall{}
		adapter := llm.New(llm.Options{
			HTTPClient:     &http.Client{Transport: model},
			AllowBaseURLs:  modelExample,
			ReadAttachment: func(string) ([]byte, error) { return stored, errorIf(stored == nil) },
			ReadBlob:       func(context.Context, string) ([]byte, error) { return stored, errorIf(stored == nil) },
		})
		config := rapid.SampledFrom(configs).Draw(rt, "config")
		counts := rapid.IntRange(0, 3).Draw(rt, "counts") == 0 // it loads a vocabulary
		var messages []reducer.Message
		for range rapid.IntRange(1, 12).Draw(rt, "requests") {
			for range rapid.IntRange(0, 3).Draw(rt, "changes") {
				messages = changed(rt, messages)
			}
			if rapid.IntRange(0, 5).Draw(rt, "fall back") == 0 {
				config = rapid.SampledFrom(configs).Draw(rt, "config")
			}
			stored = rapid.SampledFrom([][]byte{nil, []byte("one"), []byte("two")}).Draw(rt, "stored")

			before := len(model.bodies)
			var failures []error
			var tokens []int
			for _, conversation := range []string{"known", ""} {
				target := targetOf(rt, adapter, config)
				target.Conversation = conversation
				if counts {
					n, err := target.InputTokens(t.Context(), messages, 0)
					require.NoError(rt, err)
					most, err := target.InputTokens(t.Context(), messages, math.MaxInt)
					require.NoError(rt, err)
					require.GreaterOrEqual(rt, most, n, "a bound without counting")
					tokens = append(tokens, n)
				}
				_, err := target.Stream(t.Context(), messages, nil)
				failures = append(failures, err)
			}
			require.Equal(rt, failures[1], failures[0])
			if counts {
				require.Equal(rt, tokens[1], tokens[0])
			}
			bodies := model.bodies[before:]
			if len(bodies) == 0 {
				require.ErrorContains(rt, failures[0], "the conversation has no message")
				continue
			}
			require.Len(rt, bodies, 2)
			require.Equal(rt, bodies[1], bodies[0])
			if !strings.Contains(bodies[0], "state of") {
				require.JSONEq(rt, encodedByGoOpenAI(rt, bodies[0]), bodies[0])
			}
		}
		for i, again := range model.again {
			body, err := again()
			require.NoError(rt, err)
			data, err := io.ReadAll(body)
			require.NoError(rt, err)
			require.Equal(rt, model.bodies[i], string(data), "a later request modified an earlier one")
		}
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

func TestChangedMessagesAreRenderedAgain(t *testing.T) {
	asked := []reducer.Message{user("Go"), assistant("", call("c1", "run")), user("And?"), assistant("Wait."), user("Well?")}
	answered := append(slices.Clip(asked), toolResult("c1", "one"), user("So?"))
	with := func(i int, m reducer.Message) []reducer.Message {
		messages := slices.Clone(answered)
		messages[i] = m
		return messages
	}
	tests := map[string]struct{ before, now []reducer.Message }{
		"a call gets a result":           {asked, answered},
		"a call loses its result":        {answered, asked},
		"a result changes":               {answered, with(5, toolResult("c1", "two"))},
		"a result changes its call":      {answered, with(5, toolResult("c2", "one"))},
		"a call changes":                 {answered, with(1, assistant("", call("c1", "stop")))},
		"an answer calls a tool":         {answered, with(3, assistant("Wait.", call("c3", "wait")))},
		"a role changes":                 {answered, with(3, user("Wait."))},
		"a message gets an attachment":   {answered, with(2, user("And?", blob("text/plain", "a.txt", []byte("text"))))},
		"a message loses its attachment": {with(2, user("And?", blob("text/plain", "a.txt", []byte("text")))), answered},
		"an attachment changes":          {with(2, user("", blob("text/plain", "a.txt", []byte("one")))), with(2, user("", blob("text/plain", "a.txt", []byte("two"))))},
		"a blank message gets text":      {with(3, assistant("")), answered},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for _, provider := range []string{"openai", "mistral", "anthropic", "vllm"} {
				model := &wall{}
				adapter := llm.New(llm.Options{AllowBaseURLs: modelExample, HTTPClient: &http.Client{Transport: model}, Getenv: func(string) string { return testKey }})
				send := func(conversation string, messages []reducer.Message) string {
					target := targetOf(t, adapter, reducer.ProviderConfig{ProviderID: provider})
					target.Conversation = conversation
					_, err := target.Stream(t.Context(), messages, nil)
					requireKind(t, llm.KindServer, err)
					return model.bodies[len(model.bodies)-1]
				}
				before := send("known", test.before)
				now := send("known", test.now)
				require.NotEqual(t, before, now)
				require.Equal(t, send("", test.now), now)
			}
		})
	}
}

func TestNextRequestRendersOnlyNewMessages(t *testing.T) {
	long := []reducer.Message{system("Be brief.")}
	for i := range 200 {
		long = append(long, user(fmt.Sprint("question ", i)), assistant(fmt.Sprint("answer ", i)))
	}
	tests := map[string]struct {
		config reducer.ProviderConfig
		next   []reducer.Message
	}{
		"at the end":                {next: append(slices.Clip(long), user("Well?"))},
		"after a late answer":       {next: slices.Insert(slices.Clone(long), len(long)-1, assistant("Hm,"))},
		"with alternating roles":    {config: reducer.ProviderConfig{ProviderID: "vllm"}, next: append(slices.Clip(long), user("Well?"))},
		"without a system role":     {config: reducer.ProviderConfig{Model: "gemma-3"}, next: append(slices.Clip(long), user("Well?"))},
		"after an attachment":       {next: append(slices.Clip(long), user("Look", file("image/png", "a.png")), assistant("A cat."), user("Well?"))},
		"after a new system prompt": {next: append([]reducer.Message{system("Be kind.")}, long[1:]...)},
		"from a decoded copy":       {next: copyOf(t, long)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			adapter := llm.New(llm.Options{AllowBaseURLs: modelExample, HTTPClient: &http.Client{Transport: reader{}}})
			send := func(conversation string, messages []reducer.Message) {
				target := targetOf(t, adapter, test.config)
				target.Conversation = conversation
				_, err := target.Stream(t.Context(), messages, nil)
				require.NoError(t, err)
			}
			send("known", long)
			again := testing.AllocsPerRun(2, func() {
				send("known", test.next)
				send("known", long)
			})
			whole := testing.AllocsPerRun(2, func() {
				send("", test.next)
				send("", long)
			})
			require.Less(t, again, whole/4)
		})
	}
}

func copyOf(t *testing.T, messages []reducer.Message) (copied []reducer.Message) {
	data, err := json.Marshal(messages)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &copied))
	return copied
}

func TestConcurrentRequestsOfOneConversation(t *testing.T) {
	model := &wall{}
	adapter := llm.New(llm.Options{AllowBaseURLs: modelExample, HTTPClient: &http.Client{Transport: model}})
	var messages []reducer.Message
	for i := range 40 {
		messages = append(messages, user(fmt.Sprint("question ", i)), assistant(fmt.Sprint("answer ", i)))
	}
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			for end := 1; end <= len(messages); end++ {
				target := targetOf(t, adapter, reducer.ProviderConfig{})
				target.Conversation = "known"
				_, err := target.Stream(t.Context(), messages[:end], nil)
				if !errors.As(err, new(*llm.Error)) {
					t.Errorf("%d messages: %v", end, err)
				}
			}
		})
	}
	running.Wait()
	require.Len(t, model.bodies, 4*len(messages))
	times := map[int]int{}
	for _, body := range model.bodies {
		require.JSONEq(t, encodedByGoOpenAI(t, body), body)
		var request openai.ChatCompletionRequest
		require.NoError(t, json.Unmarshal([]byte(body), &request))
		for i, m := range request.Messages {
			require.Equal(t, messages[i].Content, m.Content)
		}
		times[len(request.Messages)]++
	}
	for end := 1; end <= len(messages); end++ {
		require.Equal(t, 4, times[end])
	}
}

//test:large
func TestRenderingCacheIsBounded(t *testing.T) {
	adapter := llm.New(llm.Options{AllowBaseURLs: modelExample, HTTPClient: &http.Client{Transport: reader{}}})
	const atMost = 4 << 20
	adapter.KeepAtMost(atMost)
	say := func(conversation string, bytes int, attachments ...reducer.Attachment) {
		target := targetOf(t, adapter, reducer.ProviderConfig{})
		target.Conversation = conversation
		text := strings.Repeat("x", bytes/2)
		_, err := target.Stream(t.Context(), []reducer.Message{user("Hi", attachments...), user(text + conversation), user("Well?")}, nil)
		require.NoError(t, err)
	}
	say("first", 1000)
	before := heap()
	for i := range 3000 {
		say(fmt.Sprint("context-", i), 8<<10)
		if i%100 == 0 {
			say("often", 8<<10)
		}
	}
	require.Less(t, heap()-before, int64(2*atMost), "only a part of the renderings is kept")
	cached, size := adapter.Cached()
	require.LessOrEqual(t, size, atMost)
	require.Greater(t, size, atMost*9/10)
	require.Equal(t, "context-2999", cached[0], "most recently used first")
	require.Contains(t, cached, "often")
	require.NotContains(t, cached, "first")

	say("large", atMost*3/4)
	cached, _ = adapter.Cached()
	require.NotContains(t, cached, "large", "one conversation does not evict all others")
	say("with a picture", 1000, blob("image/png", "a.png", bytes.Repeat([]byte("x"), atMost)))
	say("with a link", 1000, reducer.Attachment{MediaType: "image/png", Source: event.Source{Type: event.SourceURL, URL: "data:image/png;base64," + strings.Repeat("A", atMost)}})
	cached, size = adapter.Cached()
	require.NotContains(t, cached, "with a picture", "attachments count, too")
	require.NotContains(t, cached, "with a link", "attachments count, too")
	require.LessOrEqual(t, size, atMost)
}

func TestLargeConversationIsCached(t *testing.T) {
	adapter := llm.New(llm.Options{AllowBaseURLs: modelExample, HTTPClient: &http.Client{Transport: reader{}}})
	target := targetOf(t, adapter, reducer.ProviderConfig{})
	target.Conversation = "long"
	messages := slices.Repeat([]reducer.Message{user(strings.Repeat("x", 64<<10)), assistant(strings.Repeat("y", 64<<10))}, 64)
	_, err := target.Stream(t.Context(), messages, nil)
	require.NoError(t, err)
	cached, size := adapter.Cached()
	require.Equal(t, []string{"long"}, cached)
	require.Greater(t, size, 8<<20)
}

// heap returns the memory in use.
func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
