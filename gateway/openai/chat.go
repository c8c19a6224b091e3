package openai

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/thread"
)

// chatRequest is the body of a request for a chat completion.
type chatRequest struct {
	common
	Messages         []inputItem     `json:"messages"`
	MaxTokens        *int            `json:"max_tokens"`
	MaxCompletion    *int            `json:"max_completion_tokens"`
	Stop             json.RawMessage `json:"stop"`
	Seed             *int64          `json:"seed"`
	FrequencyPenalty *float64        `json:"frequency_penalty"`
	PresencePenalty  *float64        `json:"presence_penalty"`
	ResponseFormat   *chatFormat     `json:"response_format"`
	ReasoningEffort  string          `json:"reasoning_effort"`
	Verbosity        *string         `json:"verbosity"`
	N                *int            `json:"n"`
	Logprobs         bool            `json:"logprobs"`
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
	if err := decode("", body, &r); err != nil {
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
	t, err := a.send(in)
	if err != nil {
		return err
	}
	if r.Stream {
		return r.stream(a, t)
	}
	if err := errors.Join(t.follow(), modelError(a.Model, t.request)); err != nil {
		return err
	}
	return writeCompletion(x, t)
}

// request returns the request for a response with the same settings.
func (r *chatRequest) request() *request {
	of := &request{common: r.common, MaxOutputTokens: r.MaxTokens, Conversation: conversationParam(r.Metadata[contextField]), more: r}
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
		return readMessages(r.Messages, 0)
	}
	n := len(r.Messages)
	for n > 0 && (r.Messages[n-1].Role == "user" || r.Messages[n-1].Role == "tool") {
		n--
	}
	history, err := readMessages(r.Messages[:n], 0)
	if err != nil {
		return nil, err
	}
	in, err := readMessages(r.Messages, n)
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
			clients = setOf(thread.Clients(body))
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
