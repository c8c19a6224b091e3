package rig

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sashabaranov/go-openai"

	"github.com/seed-9ed7edd4/chronicle/internal/pause"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

// HostileAnswers are the names of answers that no provider should give. A message that is no [Message] gets the answer
// that its first word names, or any.
func HostileAnswers() (names []string) {
	for _, a := range hostileAnswers {
		names = append(names, a.name)
	}
	return names
}

func hostileAnswerTo(messages []openai.ChatCompletionMessage) hostileAnswer {
	text := newestText(messages)
	i := slices.IndexFunc(hostileAnswers, func(a hostileAnswer) bool { return a.name == KeyOf(text) })
	if i < 0 {
		i = len(text) % len(hostileAnswers)
	}
	return hostileAnswers[i]
}

type hostileAnswer struct {
	name  string
	serve func(http.ResponseWriter, *http.Request)
}

func text(status int, body string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		if status == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", "99999999999")
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func streamed(pieces ...string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, strings.Join(pieces, ""))
	}
}

// endless repeats a piece until the client disconnects, or 200 MB were sent.
func endless(piece string, every time.Duration) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for sent := 0; sent < 200_000_000 && pause.For(r.Context(), every); sent += len(piece) {
			if _, err := io.WriteString(w, piece); err != nil {
				return
			}
			if every > 0 {
				_ = http.NewResponseController(w).Flush()
			}
		}
	}
}

func apiError(status int, message, code string) func(http.ResponseWriter, *http.Request) {
	return text(status, fmt.Sprintf(`{"error":{"message":%q,"type":"invalid_request_error","code":%q}}`, message, code))
}

func calls(pieces ...string) func(http.ResponseWriter, *http.Request) {
	var all []string
	for _, piece := range pieces {
		all = append(all, llmtest.Chunk(`{"tool_calls":[`+piece+`]}`, ""))
	}
	return streamed(append(all, llmtest.Chunk(`{}`, "tool_calls"), llmtest.UsageChunk(7, 7), llmtest.Done)...)
}

func content(text string) string { return llmtest.Chunk(fmt.Sprintf(`{"content":%q}`, text), "") }

var hostileAnswers = []hostileAnswer{
	{"fine", streamed(content("fine"), llmtest.Chunk(`{}`, "stop"), llmtest.UsageChunk(7, 7), llmtest.Done)},
	{"slow", endless(content("slow "), 50*time.Millisecond)},
	{"endless", endless(content(strings.Repeat("0123456789abcdef", 64)), 0)},
	{"reasons", endless(llmtest.Chunk(`{"reasoning_content":"`+strings.Repeat("r", 4000)+`"}`, ""), 0)},
	{"line", endless(strings.Repeat("x", 64<<10), 0)},
	{"comments", endless(": keep-alive\n\n", time.Millisecond)},
	{"silent", func(_ http.ResponseWriter, r *http.Request) { pause.For(r.Context(), time.Minute) }},
	{"empty", streamed()},
	{"done", streamed(llmtest.Done)},
	{"html", text(http.StatusOK, "<html>\x00\x1b[2J</html>")},
	{"garbage", streamed("data: {\n\ndata: 7\n\ndata: [[[[\n\n\xff\xfe\n\ndata: {\"choices\":7}\n\ndata: {\"choices\":[{\"delta\":{\"content\":[{\"text\":7}]}}]}\n\n")},
	{"deep", streamed(`data: {"choices":[{"delta":{"content":` + strings.Repeat("[", 100_000) + "\n\n")},
	{"hidden", streamed(content("a\u202eb\u200bc\x1b[2J\x00"), llmtest.Chunk(`{}`, "stop"), llmtest.Done)},
	{"numbers", streamed(content("n"), llmtest.Chunk(`{}`, "stop"), `data: {"choices":[],"usage":{"prompt_tokens":-9223372036854775808,"completion_tokens":1e300,"total_tokens":"x"}}`+"\n\n", llmtest.Done)},
	{"largest", streamed(content("n"), llmtest.Chunk(`{}`, "stop"), `data: {"choices":[],"usage":{"prompt_tokens":9223372036854775807,"completion_tokens":9223372036854775807}}`+"\n\n", llmtest.Done)},
	{"finish", streamed(content("f"), llmtest.Chunk(`{}`, strings.Repeat("finish", 10_000)), llmtest.Done)},
	{"limited", text(http.StatusTooManyRequests, `{"error":{"message":"slow down"}}`)},
	{"broken", text(http.StatusInternalServerError, strings.Repeat("broken ", 1<<20))},
	{"unauthorized", apiError(http.StatusUnauthorized, "Incorrect API key provided", "invalid_api_key")},
	{"window", apiError(http.StatusBadRequest, "This model's maximum context length is 10 tokens. However, your messages resulted in 99999999999 tokens.", "context_length_exceeded")},
	{"image", apiError(http.StatusBadRequest, "messages.0: the image could not be processed", "invalid_image")},
	{"role", apiError(http.StatusBadRequest, "messages: tool_call_id not found in tool_calls of previous message", "")},
	{"unsupported", apiError(http.StatusBadRequest, "Unsupported parameter: 'stream_options' is not supported", "unsupported_parameter")},
	{"calls", calls(`{"index":0,"id":"c","type":"function","function":{"name":"nothing","arguments":"{"}}`, `{"index":0,"function":{"arguments":"\"a\":1}"}}`,
		`{"index":5,"id":"c","type":"function","function":{"name":"ask","arguments":"[]"}}`)},
	{"ask", calls(`{"index":0,"id":"","type":"function","function":{"name":"ask","arguments":"{\"to\":\"a\u202eb\"}"}}`)},
	{"many", calls(strings.TrimSuffix(strings.Repeat(`{"id":"same","type":"function","function":{"name":"ask","arguments":"{}"}},`, 300), ","))},
	{"arguments", calls(`{"index":0,"id":"c","type":"function","function":{"name":"ask","arguments":"` + strings.Repeat("z", 400_000) + `"}}`)},
	{"indexes", calls(`{"index":-1,"id":"a","type":"function","function":{"name":"ask"}}`, `{"index":999999999,"id":"b","function":{"name":null,"arguments":null}}`)},
	{"unfinished", streamed(content("cut"), `data: {"choices":[{"delta":{"content":"`)},
	{"error", streamed(content("then"), `data: {"error":{"message":"overloaded","code":529}}`+"\n\n")},
	{"redirect", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
	}},
	{"headers", func(w http.ResponseWriter, _ *http.Request) {
		for i := range 2000 {
			w.Header().Set(fmt.Sprint("X-", i), strings.Repeat("h", 1000))
		}
	}},
	{"echo", func(w http.ResponseWriter, r *http.Request) {
		sent := r.Header.Get("Authorization")
		streamed(content("your header: "+sent[:len(sent)/2]), content(sent[len(sent)/2:]), llmtest.Chunk(`{}`, "stop"), llmtest.Done)(w, r)
	}},
	{"echoerror", func(w http.ResponseWriter, r *http.Request) {
		apiError(http.StatusUnauthorized, "invalid: "+r.Header.Get("Authorization"), "")(w, r)
	}},
	{"bomb", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write(bomb())
	}},
	{"abort", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
}

// bomb is a gzip of 256 MB.
var bomb = sync.OnceValue(func() []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	for range 256 {
		_, _ = z.Write(bytes.Repeat([]byte("x"), 1<<20)) // a buffer
	}
	_ = z.Close()
	return b.Bytes()
})
