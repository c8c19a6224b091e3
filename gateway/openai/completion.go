package openai

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/gateway"
)

type (
	completion struct {
		ID      string      `json:"id"`
		Object  string      `json:"object"`
		Created int64       `json:"created"`
		Model   string      `json:"model"`
		Choices []choice    `json:"choices"`
		Usage   *chatTokens `json:"usage,omitempty"`
	}
	choice struct {
		Index        int          `json:"index"`
		Message      *chatMessage `json:"message,omitempty"`
		Delta        *chatMessage `json:"delta,omitempty"`
		FinishReason *string      `json:"finish_reason"`
		Logprobs     any          `json:"logprobs"`
	}
	chatMessage struct {
		Role      string     `json:"role,omitempty"`
		Content   *string    `json:"content,omitempty"`
		Reasoning string     `json:"reasoning_content,omitempty"`
		Refusal   *string    `json:"refusal"`
		ToolCalls []chatCall `json:"tool_calls,omitempty"`
	}
	chatTokens struct {
		PromptTokens     int            `json:"prompt_tokens"`
		CompletionTokens int            `json:"completion_tokens"`
		TotalTokens      int            `json:"total_tokens"`
		PromptDetails    map[string]int `json:"prompt_tokens_details"`
		Details          map[string]int `json:"completion_tokens_details"`
	}
)

func completionOf(t *turn, object string, choices ...choice) completion {
	id := "chatcmpl" + strings.TrimPrefix(t.response.ID, responsePrefix)
	return completion{ID: id, Object: object, Created: t.response.CreatedAt, Model: t.response.Model, Choices: choices}
}

func chatUsage(t *turn) *chatTokens {
	u := t.response.usage
	return &chatTokens{
		PromptTokens: u.InputTokens, CompletionTokens: u.OutputTokens, TotalTokens: u.InputTokens + u.OutputTokens,
		PromptDetails: map[string]int{"cached_tokens": u.CachedTokens}, Details: map[string]int{"reasoning_tokens": u.ReasoningTokens},
	}
}

// finish returns the reason why a turn ended; an error, if it has no complete answer.
func finish(t *turn) (string, error) {
	r := t.response
	failed := func(status int, kind, message string) error {
		return &gateway.Problem{Type: gateway.ProblemType("urn:chronicle:problem:" + kind), Status: status, Title: message}
	}
	switch {
	case r.Error != nil && r.Error.Code == "invalid_prompt":
		return "", failed(http.StatusBadRequest, r.Error.Code, r.Error.Message)
	case r.Error != nil && r.Error.Code == "rate_limit_exceeded":
		return "", failed(http.StatusTooManyRequests, r.Error.Code, r.Error.Message)
	case r.Error != nil:
		return "", failed(http.StatusBadGateway, r.Error.Code, r.Error.Message)
	case r.Status == statusCancelled:
		return "", failed(http.StatusConflict, "cancelled", "The answer was cancelled")
	case r.IncompleteDetails != nil && r.IncompleteDetails.Reason == "steered":
		return "", failed(http.StatusConflict, "interrupted", "Newer input interrupted the answer")
	case r.IncompleteDetails != nil && r.IncompleteDetails.Reason == "content_filter":
		return "content_filter", nil
	case r.IncompleteDetails != nil:
		return "length", nil
	case slices.ContainsFunc(r.Output, func(i item) bool { return i.Type == "function_call" }):
		return "tool_calls", nil
	case slices.ContainsFunc(r.Output, func(i item) bool { return i.Type == "mcp_approval_request" }):
		return "", failed(http.StatusConflict, "approval_required", "A tool call waits for an approval, which chat completions cannot give")
	}
	return "stop", nil
}

func writeCompletion(x *gateway.Exchange, t *turn) error {
	reason, err := finish(t)
	if err != nil {
		return err
	}
	message := chatMessage{Role: "assistant"}
	var texts []string
	for _, i := range t.response.Output {
		switch i.Type {
		case "message":
			texts = append(texts, *(*i.Content)[0].Text)
		case "reasoning":
			message.Reasoning += *(*i.Summary)[0].Text
		case "function_call":
			message.ToolCalls = append(message.ToolCalls, callOf(i, nil))
		}
	}
	if texts != nil || message.ToolCalls == nil {
		message.Content = new(strings.Join(texts, separator))
	}
	out := completionOf(t, "chat.completion", choice{Message: &message, FinishReason: &reason})
	out.Usage = chatUsage(t)
	x.JSON(http.StatusOK, out)
	return nil
}

func callOf(i item, index *int) chatCall {
	c := chatCall{Index: index, ID: i.CallID, Type: "function"}
	c.Function.Name, c.Function.Arguments = i.Name, *i.Arguments
	return c
}

// stream translates the events of the response.
func (r *chatRequest) stream(a *ask, t *turn) error {
	t.live()
	var frames []byte
	var failure error
	send := func(value any) {
		data, _ := json.Marshal(value) // texts and numbers always encode
		frames = append(frames, gateway.Frame("", "", data)...)
	}
	chunk := func(delta chatMessage, reason *string) {
		send(completionOf(t, "chat.completion.chunk", choice{Delta: &delta, FinishReason: reason}))
	}
	calls, texts, isRestarted, newText := 0, 0, false, false
	t.emit = func(kind string, fields map[string]any) {
		switch kind {
		case "response.in_progress":
			chunk(chatMessage{Role: "assistant", Content: new("")}, nil)
		case "response.content_part.added":
			newText = texts > 0
			texts++
		case "response.output_text.delta":
			text := fields["delta"].(string)
			if isRestarted {
				failure = &gateway.Problem{Type: "urn:chronicle:problem:restarted", Status: http.StatusBadGateway, Title: "The answer started over", Detail: "ask again"}
				return
			}
			if newText {
				text, newText = separator+text, false
			}
			chunk(chatMessage{Content: &text}, nil)
		case "response.reasoning_summary_text.delta":
			chunk(chatMessage{Reasoning: fields["delta"].(string)}, nil)
		case "response.output_item.done":
			switch i := fields["item"].(item); {
			case i.Type == "function_call":
				chunk(chatMessage{ToolCalls: []chatCall{callOf(i, new(calls))}}, nil)
				calls++
			case i.Type == "message" && i.Status == statusIncomplete && *(*i.Content)[0].Text != "":
				isRestarted = true
			}
		}
	}
	fail := func(p *gateway.Problem) []byte {
		data, _ := json.Marshal(errorOf(p)) // texts always encode
		return gateway.Frame("", "", data)
	}
	return a.x.Stream(t.h, t.from, gateway.Stream{Fail: fail, Next: func(in gateway.Item) ([]byte, error) {
		frames = nil
		if t.add(in); failure != nil {
			return frames, failure
		}
		if !t.isDone {
			return frames, nil
		}
		reason, err := finish(t)
		if err := cmp.Or(modelError(a.Model, t.request), err); err != nil {
			return frames, err
		}
		chunk(chatMessage{}, &reason)
		if r.StreamOptions.IncludeUsage {
			out := completionOf(t, "chat.completion.chunk", []choice{}...)
			out.Choices, out.Usage = []choice{}, chatUsage(t)
			send(out)
		}
		frames = append(frames, gateway.Frame("", "", []byte("[DONE]"))...)
		return frames, io.EOF
	}})
}
