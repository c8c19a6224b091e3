package openai

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
)

// chatRequest is the body of a request for a chat completion.
type chatRequest struct {
	Model             string            `json:"model"`
	Messages          []inputItem       `json:"messages"`
	Stream            bool              `json:"stream"`
	StreamOptions     streamOptions     `json:"stream_options"`
	Store             *bool             `json:"store"`
	Metadata          map[string]string `json:"metadata"`
	Temperature       *float64          `json:"temperature"`
	TopP              *float64          `json:"top_p"`
	MaxTokens         *int              `json:"max_tokens"`
	MaxCompletion     *int              `json:"max_completion_tokens"`
	Stop              json.RawMessage   `json:"stop"`
	Seed              *int64            `json:"seed"`
	FrequencyPenalty  *float64          `json:"frequency_penalty"`
	PresencePenalty   *float64          `json:"presence_penalty"`
	ResponseFormat    *chatFormat       `json:"response_format"`
	Tools             []tool            `json:"tools"`
	ToolChoice        json.RawMessage   `json:"tool_choice"`
	ParallelToolCalls *bool             `json:"parallel_tool_calls"`
	ReasoningEffort   string            `json:"reasoning_effort"`
	Verbosity         *string           `json:"verbosity"`
	User              string            `json:"user"`
	SafetyIdentifier  string            `json:"safety_identifier"`
	N                 *int              `json:"n"`
	Logprobs          bool              `json:"logprobs"`
	TopLogprobs       int               `json:"top_logprobs"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type chatFormat struct {
	Type       string `json:"type"`
	JSONSchema format `json:"json_schema"`
}

// contextField of the metadata names the context of a durable chat.
const contextField = "context"

func createChatCompletion(x *gateway.Exchange) error {
	body, err := x.Body()
	if err != nil {
		return err
	}
	var r chatRequest
	if err := decode(body, &r); err != nil {
		return err
	}
	switch {
	case r.N != nil && *r.N != 1:
		return unsupported("n", "n %d is not supported (1)", *r.N)
	case r.Logprobs || r.TopLogprobs != 0:
		return unsupported("logprobs", "logprobs is not supported")
	}
	a := &ask{request: r.request(), x: x, body: body}
	if err := a.locate(); err != nil {
		return err
	}
	if a.isOwn {
		defer a.discard()
	}
	in, err := r.input(a)
	if err != nil {
		return err
	}
	t, from, err := a.send(in)
	if err != nil {
		return err
	}
	if r.Stream {
		return r.stream(a, t, from)
	}
	if err := follow(a.h, t, from); err != nil {
		return err
	}
	return writeCompletion(x, t)
}

// request returns the request for a response with the same settings.
func (r *chatRequest) request() *request {
	of := &request{
		Model: r.Model, Store: r.Store, Metadata: r.Metadata, Temperature: r.Temperature, TopP: r.TopP, MaxOutputTokens: r.MaxTokens,
		Tools: r.Tools, ToolChoice: r.ToolChoice, ParallelToolCalls: r.ParallelToolCalls, User: r.User, SafetyIdentifier: r.SafetyIdentifier,
		Conversation: conversationParam(r.Metadata[contextField]), more: r,
	}
	delete(of.Metadata, contextField)
	if r.MaxCompletion != nil {
		of.MaxOutputTokens = r.MaxCompletion
	}
	if r.ReasoningEffort != "" {
		of.Reasoning = &reasoning{Effort: &r.ReasoningEffort}
	}
	if r.ResponseFormat != nil || r.Verbosity != nil {
		of.Text = &textConfig{Verbosity: r.Verbosity}
	}
	if r.ResponseFormat != nil {
		of.Text.Format = r.ResponseFormat.JSONSchema
		of.Text.Format.Type = r.ResponseFormat.Type
	}
	return of
}

// extend adds the settings that requests for responses do not have.
func (r *chatRequest) extend(s *event.RequestSettings) error {
	s.Seed, s.FrequencyPenalty, s.PresencePenalty = r.Seed, r.FrequencyPenalty, r.PresencePenalty
	if len(r.Stop) == 0 || string(r.Stop) == "null" {
		return nil
	}
	var one string
	if json.Unmarshal(r.Stop, &one) == nil {
		s.Stop = []string{one}
		return nil
	}
	if json.Unmarshal(r.Stop, &s.Stop) != nil {
		return gateway.BadRequest("stop", "stop: want a text or a list of texts")
	}
	return nil
}

// input returns all messages, or for a durable chat those after the newest answer. The messages before must be the newest
// ones of the context.
func (r *chatRequest) input(a *ask) (*script, error) {
	if a.isOwn {
		return readMessages(r.Messages)
	}
	n := len(r.Messages)
	for n > 0 && (r.Messages[n-1].Role == "user" || r.Messages[n-1].Role == "tool") {
		n--
	}
	history, err := readMessages(r.Messages[:n])
	if err != nil {
		return nil, err
	}
	in, err := readMessages(r.Messages[n:])
	if err != nil {
		return nil, err
	}
	in.system = history.system
	said := normalize(history.events, nil)
	if len(said) == 0 {
		return in, nil
	}
	var log []event.Event
	for e, err := range a.h.Events("") {
		if err != nil {
			return nil, err
		}
		log = append(log, e)
	}
	known := normalize(log, map[string]bool{})
	for i := range said {
		at := len(known) - len(said) + i
		if at < 0 {
			return nil, gateway.BadRequest("messages", "messages has %d messages before the newest, the context %d (send only the newest message)", len(said), len(known))
		}
		if said[i] != known[at] {
			return nil, gateway.BadRequest("messages", "messages contradicts the context: it says %q where the context has %q",
				shorten(said[i]), shorten(known[at]))
		}
	}
	return in, nil
}

func shorten(text string) string { return event.Redact(text, 100) }

// normalize returns what was said as lines, as a client of chat completions knows it: without calls of the worker, and with
// the texts of a turn in one. Clients nil: all calls are those of clients.
func normalize(events []event.Event, clients map[string]bool) (lines []string) {
	isCall := map[string]bool{}
	var answer []string
	add := func(line string) {
		if answer != nil {
			lines = append(lines, "assistant: "+strings.Join(answer, separator))
			answer = nil
		}
		if line != "" {
			lines = append(lines, line)
		}
	}
	for _, e := range events {
		switch body := e.Body.(type) {
		case event.SetTools:
			clients = setOf(functionsOf(body))
		case event.UserMessage:
			add("user: " + strings.TrimSpace(body.Content))
		case event.AssistantMessage:
			if text := strings.TrimSpace(body.Content); text != "" {
				answer = append(answer, text)
			}
		case event.ToolCall:
			if isCall[body.ToolCallID] = clients == nil || clients[body.ToolName] || body.RequestID == ""; isCall[body.ToolCallID] {
				add("call " + body.ToolCallID + ": " + body.ToolName)
			}
		case event.ToolResult:
			if isCall[body.ToolCallID] {
				add("result of " + body.ToolCallID)
			}
		}
	}
	add("")
	return lines
}

// separator separates the texts of a turn.
const separator = "\n\n"

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
func (r *chatRequest) stream(a *ask, t *turn, from string) error {
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
	return a.x.Stream(a.h, from, gateway.Stream{Fail: fail, Next: func(in gateway.Item) ([]byte, error) {
		frames = nil
		if t.add(in); failure != nil {
			return frames, failure
		}
		if !t.isDone {
			return frames, nil
		}
		reason, err := finish(t)
		if err != nil {
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
