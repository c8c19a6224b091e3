package offline_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sashabaranov/go-openai"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/offline"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// greeting begins every answer.
const greeting = "I am the offline model built into Chronicle (no API key is set), so I only repeat. "

func serve(t testing.TB, delay time.Duration) string {
	t.Helper()
	server := httptest.NewServer(offline.Handler(offline.Options{TokenDelay: delay}))
	t.Cleanup(server.Close)
	return server.URL + "/v1"
}

// resolve is the offline model as a worker without a key sees it.
func resolve(t testing.TB, delay time.Duration) *llm.Target {
	t.Helper()
	adapter := llm.New(llm.Options{Defaults: llm.Defaults{ProviderID: "offline", BaseURL: serve(t, delay), Model: offline.Model}})
	target, err := adapter.Resolve(reducer.Initial().Config.Primary)
	require.NoError(t, err)
	return target
}

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func user(text string, attachments ...reducer.Attachment) reducer.Message {
	return reducer.Message{Role: reducer.RoleUser, Content: text, Attachments: attachments}
}

func assistant(text string) reducer.Message {
	return reducer.Message{Role: reducer.RoleAssistant, Content: text}
}

func TestAnswerShowsWhatTheModelWasShown(t *testing.T) {
	blob := func(mediaType, name, data string) reducer.Attachment {
		return reducer.Attachment{Source: event.Source{Type: event.SourceBlob, Data: []byte(data)}, MediaType: mediaType, FileName: name}
	}
	firstAnswer := greeting + `This is your 1st message: "Hello".`
	tests := map[string]struct {
		messages []reducer.Message
		want     string
	}{
		"the first message": {
			messages: []reducer.Message{user("Hello")},
			want:     `This is your 1st message: "Hello".`,
		},
		"the message before it": {
			messages: []reducer.Message{{Role: reducer.RoleSystem, Content: "Be brief."}, user("Hello"), assistant(firstAnswer), user("And\nnow?")},
			want:     `This is your 2nd message: "And now?". Before it you said: "Hello".`,
		},
		"an answer that was cut off": {
			messages: []reducer.Message{user("Hello"), assistant("I am the offline model"), user("Stop")},
			want:     `This is your 2nd message: "Stop". My last answer was cut off after "I am the offline model". Before it you said: "Hello".`,
		},
		"an answer that is not its own": {
			messages: []reducer.Message{user("Hello"), assistant("Good day, Sir."), user("Well")},
			want:     `This is your 2nd message: "Well". Before it you said: "Hello".`,
		},
		"attachments": {
			messages: []reducer.Message{user("Look", blob("text/plain", "notes.txt", "buy milk"), blob("image/png", "a.png", "1234"), blob("audio/mpeg", "a.mp3", "x"))},
			want:     `This is your 1st message: "Look". It came with an image (image/png, 4 bytes), notes.txt (text, 8 bytes) and a.mp3.`,
		},
		"a link to an image": {
			messages: []reducer.Message{user("", reducer.Attachment{Source: event.Source{Type: event.SourceURL, URL: "https://x.example/a.png"}, MediaType: "image/png"})},
			want:     `This is your 1st message, without a word. It came with an image at https://x.example/a.png.`,
		},
		"counting": {
			messages: []reducer.Message{user("Please count to 5")},
			want:     `This is your 1st message: "Please count to 5". Counting to 5: 1 2 3 4 5.`,
		},
		"a message that is very long": {
			messages: []reducer.Message{user(strings.Repeat("é", 400))},
			want:     `This is your 1st message: "` + strings.Repeat("é", 300) + `…".`,
		},
		"no message of the user": {
			messages: []reducer.Message{assistant("Hi")},
			want:     "You have not said anything yet.",
		},
	}
	target := resolve(t, -1)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var pieces []string
			result, err := target.Stream(within(t), test.messages, func(d llm.Delta) { pieces = append(pieces, d.Text) })
			require.NoError(t, err)
			require.Equal(t, greeting+test.want, result.Text)
			require.Equal(t, "stop", result.FinishReason)
			require.Greater(t, len(pieces), 10, "it is streamed word by word")
			require.Equal(t, len(pieces), result.OutputTokens)
			require.Positive(t, result.InputTokens)

			again, err := target.Stream(within(t), test.messages, nil)
			require.NoError(t, err)
			require.Equal(t, result, again)
		})
	}
}

func TestCountingStopsAtAThousand(t *testing.T) {
	for _, asked := range []string{"1000", "1001", "99999999999999999999"} {
		result, err := resolve(t, -1).Stream(within(t), []reducer.Message{user("count to " + asked)}, nil)
		require.NoError(t, err)
		require.True(t, strings.HasSuffix(result.Text, " 999 1000."))
	}
}

func TestAnInterruptedCountIsReported(t *testing.T) {
	target := resolve(t, time.Millisecond)
	ctx, cancel := context.WithCancel(within(t))
	var said strings.Builder
	cut, err := target.Stream(ctx, []reducer.Message{user("count to 1000")}, func(d llm.Delta) {
		said.WriteString(d.Text)
		if strings.HasSuffix(said.String(), " 7") {
			cancel()
		}
	})
	require.ErrorIs(t, err, context.Canceled)
	result, err := target.Stream(within(t), []reducer.Message{user("count to 1000"), assistant(cut.Text), user("Stop")}, nil)
	require.NoError(t, err)
	require.Contains(t, result.Text, "My last answer was cut off after")
}

func TestLongConversationIsAnsweredQuickly(t *testing.T) {
	target := resolve(t, -1)
	var messages []reducer.Message
	for range 1000 {
		messages = append(messages, user("Hello"), assistant(greeting))
	}
	result, err := target.Stream(within(t), append(messages, user("Well")), nil)
	require.NoError(t, err)
	require.Contains(t, result.Text, "This is your 1001st message")
}

func TestStreamingStopsWhenTheClientDisconnects(t *testing.T) {
	ended := make(chan struct{})
	handler := offline.Handler(offline.Options{TokenDelay: time.Hour})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(w, r)
		close(ended)
	}))
	defer server.Close()
	ctx, cancel := context.WithCancel(within(t))
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/v1/chat/completions", strings.NewReader(
		`{"model":"offline-echo","stream":true,"messages":[{"role":"user","content":"Hi"}]}`))
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer resp.Body.Close()
	cancel()
	select {
	case <-ended:
	case <-within(t).Done():
		require.Fail(t, "it continues after the client has disconnected")
	}
}

func post(t testing.TB, url, body string) (int, string) {
	t.Helper()
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	require.NoError(t, err)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(data)
}

func TestWithoutStreamTheAnswerIsOneObject(t *testing.T) {
	status, body := post(t, serve(t, -1)+"/chat/completions", `{"model":"offline-echo","max_tokens":3,"messages":[{"role":"user","content":"Hi"}]}`)
	require.Equal(t, 200, status)
	var answer struct {
		Choices []struct {
			Message      struct{ Role, Content string }
			FinishReason string `json:"finish_reason"`
		}
		Usage struct {
			CompletionTokens int `json:"completion_tokens"`
		}
	}
	require.NoError(t, json.Unmarshal([]byte(body), &answer))
	require.Equal(t, "assistant", answer.Choices[0].Message.Role)
	require.Equal(t, "I am the", answer.Choices[0].Message.Content)
	require.Equal(t, "length", answer.Choices[0].FinishReason)
	require.Equal(t, 3, answer.Usage.CompletionTokens)
}

func TestUsageIsStreamedOnlyOnRequest(t *testing.T) {
	const request = `{"model":"offline-echo","stream":true,%s"messages":[{"role":"user","content":"Hi"}]}`
	url := serve(t, -1) + "/chat/completions"
	_, without := post(t, url, fmt.Sprintf(request, ""))
	require.NotContains(t, without, "prompt_tokens")
	_, with := post(t, url, fmt.Sprintf(request, `"stream_options":{"include_usage":true},`))
	require.Contains(t, with, "prompt_tokens")
	require.True(t, strings.HasSuffix(with, "data: [DONE]\n\n"))
}

func TestUnsupportedRequestsAreRejectedAsByOpenAI(t *testing.T) {
	url := serve(t, -1)
	tests := map[string]struct {
		path, body string
		status     int
		code       string
	}{
		"no JSON":          {"/chat/completions", "{", 400, "invalid_json"},
		"messages missing": {"/chat/completions", `{"model":"offline-echo"}`, 400, "missing_messages"},
		"another model":    {"/chat/completions", `{"model":"gpt-4o","messages":[{"role":"user","content":"Hi"}]}`, 404, "model_not_found"},
		"another path":     {"/embeddings", "{}", 404, "unknown_url"},
		"another method":   {"/models", "{}", 404, "unknown_url"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			status, body := post(t, url+test.path, test.body)
			require.Equal(t, test.status, status)
			var refused struct {
				Error struct{ Message, Type, Code string }
			}
			require.NoError(t, json.Unmarshal([]byte(body), &refused))
			require.Equal(t, test.code, refused.Error.Code)
			require.Equal(t, "invalid_request_error", refused.Error.Type)
			require.NotEmpty(t, refused.Error.Message)
		})
	}
}

func TestTheOneModelIsListed(t *testing.T) {
	resp, err := http.Get(serve(t, -1) + "/models")
	require.NoError(t, err)
	defer resp.Body.Close()
	var list struct{ Data []struct{ ID string } }
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&list))
	require.Len(t, list.Data, 1)
	require.Equal(t, offline.Model, list.Data[0].ID)
}

func TestAMessageMakesItCallAnOfferedTool(t *testing.T) {
	const tools = `"tools":[{"type":"function","function":{"name":"fetch","parameters":{"type":"object"}}}]`
	for name, test := range map[string]struct{ text, extra, calls string }{
		"with arguments":          {`/call fetch {"url": "https://x.example"}`, tools, `fetch({"url": "https://x.example"})`},
		"without arguments":       {" /call fetch\n", tools, `fetch({})`},
		"that is not offered":     {"/call run {}", tools, ""},
		"of a request with none":  {"/call fetch {}", `"tools":[]`, ""},
		"that must not be called": {"/call fetch {}", tools + `,"tool_choice":"none"`, ""},
		"within a text":           {"Please /call fetch", tools, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, isStream := range []bool{true, false} {
				body := fmt.Sprintf(`{"model":%q,"stream":%v,"messages":[{"role":"user","content":%q}],%s}`, offline.Model, isStream, test.text, test.extra)
				resp, err := http.Post(serve(t, -1)+"/chat/completions", "application/json", strings.NewReader(body))
				require.NoError(t, err)
				defer resp.Body.Close()
				data, err := io.ReadAll(resp.Body)
				require.NoError(t, err)
				require.Equal(t, 200, resp.StatusCode, string(data))
				var calls []string
				for line := range strings.Lines(string(data)) {
					line = strings.TrimPrefix(strings.TrimSpace(line), "data: ")
					var answer openai.ChatCompletionResponse
					var chunk openai.ChatCompletionStreamResponse
					if line == "" || line == "[DONE]" {
						continue
					}
					require.NoError(t, json.Unmarshal([]byte(line), &answer))
					require.NoError(t, json.Unmarshal([]byte(line), &chunk))
					for i := range chunk.Choices {
						for _, call := range append(chunk.Choices[i].Delta.ToolCalls, answer.Choices[i].Message.ToolCalls...) {
							require.Equal(t, "call_0", call.ID)
							calls = append(calls, fmt.Sprintf("%s(%s)", call.Function.Name, call.Function.Arguments))
						}
					}
				}
				require.Equal(t, test.calls, strings.Join(calls, " "))
				require.Equal(t, test.calls != "", strings.Contains(string(data), `"finish_reason":"tool_calls"`))
			}
		})
	}
}

func TestTheResultsOfItsCallsAreQuoted(t *testing.T) {
	call := reducer.Message{Role: reducer.RoleAssistant, ToolCalls: []reducer.ToolCall{{ID: "c1", Name: "fetch"}, {ID: "c2", Name: "run"}}}
	results := []reducer.Message{
		{Role: reducer.RoleTool, ToolCallID: "c1", Content: "hello"}, {Role: reducer.RoleTool, ToolCallID: "c2", Content: "bye"},
	}
	messages := append([]reducer.Message{user("/call fetch"), call}, results...)
	result, err := resolve(t, -1).Stream(within(t), messages, nil)
	require.NoError(t, err)
	require.Equal(t, greeting+`The tool fetch returned: "hello". The tool run returned: "bye".`, result.Text)

	result, err = resolve(t, -1).Stream(within(t), append(messages, user("Thanks")), nil)
	require.NoError(t, err)
	require.Equal(t, greeting+`This is your 2nd message: "Thanks". Before it you said: "/call fetch".`, result.Text)
}
