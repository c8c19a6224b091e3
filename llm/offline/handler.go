package offline

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/sashabaranov/go-openai"

	"github.com/seed-9ed7edd4/chronicle/internal/pause"
)

// Model is the name of the only model.
const Model = "offline-echo"

const (
	defaultTokenDelay = 25 * time.Millisecond
	maxRequest        = 64 << 20
)

// Options configure a [Handler].
type Options struct {
	TokenDelay time.Duration // between streamed tokens; 0: 25 ms, negative: none
}

// Handler serves the API. It is stateless.
func Handler(o Options) http.Handler {
	delay := o.TokenDelay
	if delay == 0 {
		delay = defaultTokenDelay
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", models)
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		complete(w, r, delay)
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, http.StatusNotFound, "unknown_url",
			"%s %s: want GET /v1/models or POST /v1/chat/completions", r.Method, r.URL.Path)
	})
	return mux
}

func models(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]any{
		"object": "list",
		"data":   []openai.Model{{ID: Model, Object: "model", OwnedBy: "chronicle"}},
	})
}

func complete(w http.ResponseWriter, r *http.Request, delay time.Duration) {
	var request openai.ChatCompletionRequest
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		refuse(w, http.StatusRequestEntityTooLarge, "request_too_large", "the request cannot be read: %v", err)
		return
	}
	switch err := json.Unmarshal(body, &request); {
	case err != nil:
		refuse(w, http.StatusBadRequest, "invalid_json", "the request is not a chat completion: %v", err)
	case request.Model != Model:
		refuse(w, http.StatusNotFound, "model_not_found", "there is no model %q here, only %q", request.Model, Model)
	case len(request.Messages) == 0:
		refuse(w, http.StatusBadRequest, "missing_messages", "messages: empty, want at least one")
	case request.Stream:
		stream(w, r, answer(request), delay)
	default:
		writeJSON(w, http.StatusOK, answer(request).whole())
	}
}

type completion struct {
	tokens       []string
	calls        []openai.ToolCall
	finishReason openai.FinishReason
	usage        openai.Usage
	hasUsage     bool // requested with stream_options
}

func answer(request openai.ChatCompletionRequest) completion {
	c := completion{
		finishReason: openai.FinishReasonStop,
		hasUsage:     request.StreamOptions != nil && request.StreamOptions.IncludeUsage,
	}
	if call, ok := callIn(request); ok {
		c.calls, c.finishReason = []openai.ToolCall{call}, openai.FinishReasonToolCalls
	} else {
		c.tokens = split(reply(request.Messages))
	}
	//lint:ignore SA1019 clients use either field
	if limit := max(request.MaxTokens, request.MaxCompletionTokens); limit > 0 && limit < len(c.tokens) {
		c.tokens, c.finishReason = c.tokens[:limit], openai.FinishReasonLength
	}
	for _, m := range request.Messages {
		c.usage.PromptTokens++ // for the role
		c.usage.PromptTokens += len(strings.Fields(m.Content))
		for _, part := range m.MultiContent {
			c.usage.PromptTokens += len(strings.Fields(part.Text))
		}
	}
	c.usage.CompletionTokens = len(c.tokens) + len(c.calls)
	c.usage.TotalTokens = c.usage.PromptTokens + c.usage.CompletionTokens
	return c
}

func split(text string) []string {
	words := strings.Split(text, " ")
	for i := 1; i < len(words); i++ {
		words[i] = " " + words[i]
	}
	return words
}

func (c completion) whole() openai.ChatCompletionResponse {
	return openai.ChatCompletionResponse{
		ID: "chatcmpl-offline", Object: "chat.completion", Model: Model,
		Choices: []openai.ChatCompletionChoice{{
			Message: openai.ChatCompletionMessage{
				Role: openai.ChatMessageRoleAssistant, Content: strings.Join(c.tokens, ""), ToolCalls: c.calls,
			},
			FinishReason: c.finishReason,
		}},
		Usage: c.usage,
	}
}

func stream(w http.ResponseWriter, r *http.Request, c completion, delay time.Duration) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	for _, token := range c.tokens {
		if send(w, choice(openai.ChatCompletionStreamChoiceDelta{Content: token}, "")) != nil {
			return
		}
		if !pause.For(r.Context(), delay) {
			return
		}
	}
	if len(c.calls) > 0 && send(w, choice(openai.ChatCompletionStreamChoiceDelta{ToolCalls: c.calls}, "")) != nil {
		return
	}
	last := []openai.ChatCompletionStreamResponse{choice(openai.ChatCompletionStreamChoiceDelta{}, c.finishReason)}
	if c.hasUsage {
		usage := chunk()
		usage.Usage = &c.usage
		last = append(last, usage)
	}
	for _, event := range last {
		if send(w, event) != nil {
			return
		}
	}
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
}

func chunk() openai.ChatCompletionStreamResponse {
	return openai.ChatCompletionStreamResponse{
		ID: "chatcmpl-offline", Object: "chat.completion.chunk", Model: Model,
		Choices: []openai.ChatCompletionStreamChoice{},
	}
}

func choice(delta openai.ChatCompletionStreamChoiceDelta, reason openai.FinishReason) openai.ChatCompletionStreamResponse {
	c := chunk()
	c.Choices = append(c.Choices, openai.ChatCompletionStreamChoice{Delta: delta, FinishReason: reason})
	return c
}

func send(w http.ResponseWriter, event openai.ChatCompletionStreamResponse) error {
	data, err := json.Marshal(event)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "data: %s\n\n", data); err != nil {
		return err
	}
	return http.NewResponseController(w).Flush()
}

func refuse(w http.ResponseWriter, status int, code, format string, args ...any) {
	writeJSON(w, status, map[string]any{"error": openai.APIError{
		Message: fmt.Sprintf(format, args...), Type: "invalid_request_error", Code: code,
	}})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
