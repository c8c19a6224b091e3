package llm

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/sashabaranov/go-openai"
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/tracing"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// The span of a request follows the semantic conventions for generative AI:
// https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/

// providerNames maps the ids of presets to the names of the providers in the conventions, where
// they differ.
var providerNames = map[string]string{"mistral": "mistral_ai", "gemini": "gcp.gemini"}

// requestAttributes returns the attributes of a request. They are set when the span ends, so that they
// do not delay the request.
func (t *Target) requestAttributes(messages []reducer.Message) []attribute.KeyValue {
	attributes := append(make([]attribute.KeyValue, 0, 24), semconv.GenAIOperationNameChat, semconv.GenAIRequestModel(t.Model),
		semconv.GenAIRequestStream(true), semconv.GenAIProviderNameKey.String(cmp.Or(providerNames[t.ProviderID], t.ProviderID)))
	if t.Conversation != "" {
		attributes = append(attributes, semconv.GenAIConversationID(t.Conversation))
	}
	attributes = append(append(attributes, t.addressAttributes()...), t.settingAttributes()...)
	if t.traceContent {
		attributes = append(attributes, inputContent(messages)...)
	}
	return attributes
}

func (t *Target) addressAttributes() []attribute.KeyValue {
	base, err := url.Parse(t.BaseURL)
	if err != nil {
		return nil
	}
	attributes := []attribute.KeyValue{semconv.ServerAddress(base.Hostname())}
	if port, err := strconv.Atoi(base.Port()); err == nil {
		attributes = append(attributes, semconv.ServerPort(port))
	}
	return attributes
}

func (t *Target) settingAttributes() (attributes []attribute.KeyValue) {
	s := t.settings()
	for key, value := range map[attribute.Key]*float64{
		semconv.GenAIRequestTemperatureKey: s.Temperature, semconv.GenAIRequestTopPKey: s.TopP,
		semconv.GenAIRequestFrequencyPenaltyKey: s.FrequencyPenalty, semconv.GenAIRequestPresencePenaltyKey: s.PresencePenalty,
	} {
		if value != nil {
			attributes = append(attributes, key.Float64(*value))
		}
	}
	if limit := cmp.Or(s.MaxTokens, &t.MaxOutput); *limit > 0 {
		attributes = append(attributes, semconv.GenAIRequestMaxTokens(*limit))
	}
	if s.Seed != nil {
		attributes = append(attributes, semconv.GenAIRequestSeedKey.Int64(*s.Seed))
	}
	if s.ResponseFormat != nil {
		attributes = append(attributes, semconv.GenAIOutputTypeJSON)
	}
	return attributes
}

// traceChunk adds what the first piece of an answer says about it.
func (t *Target) traceChunk(span trace.Span, sentAt time.Time, chunk openai.ChatCompletionStreamResponse) {
	if !span.IsRecording() {
		return
	}
	attributes := append(make([]attribute.KeyValue, 0, 3), semconv.GenAIResponseTimeToFirstChunk(time.Since(sentAt).Seconds()))
	if chunk.Model != "" {
		attributes = append(attributes, semconv.GenAIResponseModel(event.Redact(t.scrub(chunk.Model), maxTracedName)))
	}
	if chunk.ID != "" {
		attributes = append(attributes, semconv.GenAIResponseID(event.Redact(t.scrub(chunk.ID), maxTracedName)))
	}
	span.SetAttributes(attributes...)
}

const maxTracedName = 200 // bytes

// endSpan ends a span with the request and its result.
func (t *Target) endSpan(span trace.Span, messages []reducer.Message, result Result, err error) {
	if !span.IsRecording() {
		span.End()
		return
	}
	attributes := t.requestAttributes(messages)
	if result.InputTokens+result.OutputTokens > 0 {
		attributes = append(attributes, semconv.GenAIUsageInputTokens(result.InputTokens), semconv.GenAIUsageOutputTokens(result.OutputTokens))
	}
	if result.CachedTokens > 0 {
		attributes = append(attributes, semconv.GenAIUsageCacheReadInputTokens(result.CachedTokens))
	}
	if result.ReasoningTokens > 0 {
		attributes = append(attributes, semconv.GenAIUsageReasoningOutputTokens(result.ReasoningTokens))
	}
	if result.FinishReason != "" {
		attributes = append(attributes, semconv.GenAIResponseFinishReasons(result.FinishReason))
	}
	var failed *Error
	if errors.As(err, &failed) && failed.Kind != KindCanceled {
		attributes = append(attributes, semconv.ErrorTypeKey.String(string(failed.Kind)))
		if failed.Status != 0 {
			attributes = append(attributes, semconv.HTTPResponseStatusCode(failed.Status))
		}
	}
	if t.traceContent {
		attributes = append(attributes, outputContent(result)...)
	}
	span.SetAttributes(attributes...)
	if failed != nil && failed.Kind.Failure().MayQuote() && !t.traceContent {
		err = errors.New(string(failed.Kind))
	}
	tracing.End(span, err)
}

// Content of messages in spans, as in https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/.
type tracedMessage struct {
	Role         string       `json:"role"`
	Parts        []tracedPart `json:"parts"`
	FinishReason string       `json:"finish_reason,omitempty"`
}

type tracedPart struct {
	Type      string `json:"type"` // text, reasoning, tool_call or tool_call_response
	Content   string `json:"content,omitempty"`
	ID        string `json:"id,omitempty"`
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments,omitempty"`
	Response  string `json:"response,omitempty"`
}

// Bounds of content in spans, in bytes. Older messages are omitted.
const (
	maxTracedText    = 16 << 10
	maxTracedContent = 128 << 10
)

func tracedText(text string) string { return event.RedactOutput(text, maxTracedText) }

func inputContent(messages []reducer.Message) (attributes []attribute.KeyValue) {
	var system []tracedPart
	var input []tracedMessage
	size := 0
	for _, m := range slices.Backward(messages) {
		traced := tracedOf(m)
		for _, part := range traced.Parts {
			size += len(part.Content) + len(part.Arguments) + len(part.Response)
		}
		if size > maxTracedContent {
			break
		}
		if m.Role == reducer.RoleSystem {
			system = append(system, traced.Parts...)
		} else {
			input = append(input, traced)
		}
	}
	slices.Reverse(system)
	slices.Reverse(input)
	if len(system) > 0 {
		attributes = append(attributes, tracedJSON(semconv.GenAISystemInstructionsKey, system))
	}
	return append(attributes, tracedJSON(semconv.GenAIInputMessagesKey, input))
}

func tracedOf(m reducer.Message) tracedMessage {
	traced := tracedMessage{Role: string(m.Role)}
	switch {
	case m.ToolCallID != "":
		traced.Parts = append(traced.Parts, tracedPart{Type: "tool_call_response", ID: m.ToolCallID, Response: tracedText(m.Content)})
	case m.Content != "":
		traced.Parts = append(traced.Parts, tracedPart{Type: "text", Content: tracedText(m.Content)})
	}
	for _, call := range m.ToolCalls {
		traced.Parts = append(traced.Parts, tracedPart{Type: "tool_call", ID: call.ID, Name: call.Name, Arguments: tracedText(call.Arguments)})
	}
	return traced
}

func outputContent(result Result) []attribute.KeyValue {
	traced := tracedMessage{Role: string(reducer.RoleAssistant), FinishReason: result.FinishReason}
	if result.Reasoning != "" {
		traced.Parts = append(traced.Parts, tracedPart{Type: "reasoning", Content: tracedText(result.Reasoning)})
	}
	if result.Text != "" {
		traced.Parts = append(traced.Parts, tracedPart{Type: "text", Content: tracedText(result.Text)})
	}
	for _, call := range result.Calls {
		traced.Parts = append(traced.Parts, tracedPart{Type: "tool_call", ID: call.ID, Name: call.Name, Arguments: tracedText(call.Arguments)})
	}
	return []attribute.KeyValue{tracedJSON(semconv.GenAIOutputMessagesKey, []tracedMessage{traced})}
}

func tracedJSON(key attribute.Key, value any) attribute.KeyValue {
	data, err := json.Marshal(value)
	if err != nil {
		return key.String("")
	}
	return key.String(string(data))
}
