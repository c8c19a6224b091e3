package llm

import (
	"strings"

	"github.com/sashabaranov/go-openai"
)

// chunk is a piece of an answer: that of go-openai with the fields of other providers.
type chunk struct {
	openai.ChatCompletionStreamResponse // without Choices
	choices                             []choice
	failure                             value // an error object or text; nil: none
}

type choice struct {
	openai.ChatCompletionStreamChoice
	parts     []value // of the content
	details   []value // reasoning_details
	extra     value   // extra_content
	callExtra []value // extra_content of each of Delta.ToolCalls
}

// decode reads a chunk from an event. Fields of an unexpected type are empty, and unknown fields are ignored.
func decode(event value) (c chunk) {
	if event.isArray() { // Gemini wraps its error objects
		for element := range event.elements() {
			return decode(element)
		}
	}
	var failure value
	for name, field := range event.fields() {
		switch string(name) {
		case "id":
			c.ID = field.text()
		case "model":
			c.Model = field.text()
		case "choices":
			for element := range field.elements() {
				c.choices = append(c.choices, decodeChoice(element))
			}
		case "usage":
			c.Usage = decodeUsage(field)
		case "error":
			failure = field
		}
	}
	switch string(failure) {
	case "", "null", "false", `""`:
	case "{}":
		if len(c.choices) == 0 {
			c.failure = event
		}
	default:
		c.failure = event
	}
	return c
}

func decodeChoice(v value) (c choice) {
	for name, field := range v.fields() {
		switch string(name) {
		case "index":
			c.Index = field.number()
		case "delta":
			c.decodeDelta(field)
		case "finish_reason":
			c.FinishReason = openai.FinishReason(field.text())
		}
	}
	return c
}

func (c *choice) decodeDelta(v value) {
	var reasoning string
	for name, field := range v.fields() {
		switch string(name) {
		case "content":
			c.decodeContent(field)
		case "refusal":
			c.Delta.Refusal = field.text()
		case "reasoning_content":
			c.Delta.ReasoningContent += field.text()
		case "reasoning":
			reasoning = field.text()
		case "reasoning_details":
			for element := range field.elements() {
				c.details = append(c.details, element)
			}
		case "extra_content":
			c.extra = field
		case "tool_calls":
			for element := range field.elements() {
				c.decodeCall(element)
			}
		case "function_call":
			f := decodeFunction(field)
			c.Delta.FunctionCall = &f
		}
	}
	if c.Delta.ReasoningContent == "" {
		c.Delta.ReasoningContent = reasoning
	}
}

func (c *choice) decodeContent(v value) {
	c.Delta.Content += v.text()
	for part := range v.elements() {
		c.parts = append(c.parts, part)
		c.Delta.Content += part.field("text").text()
		c.Delta.ReasoningContent += thinkingIn(part)
	}
}

// thinkingIn returns the text of a thinking part in Mistral's format.
func thinkingIn(part value) string {
	var text strings.Builder
	for thought := range part.field("thinking").elements() {
		text.WriteString(thought.field("text").text())
	}
	return text.String()
}

func (c *choice) decodeCall(v value) {
	call := openai.ToolCall{}
	var extra value
	for name, field := range v.fields() {
		switch string(name) {
		case "index":
			if !field.isNull() {
				call.Index = new(field.number())
			}
		case "id":
			call.ID = field.text()
		case "function":
			call.Function = decodeFunction(field)
		case "extra_content":
			extra = field
		}
	}
	c.Delta.ToolCalls = append(c.Delta.ToolCalls, call)
	c.callExtra = append(c.callExtra, extra)
}

func decodeFunction(v value) (f openai.FunctionCall) {
	for name, field := range v.fields() {
		switch string(name) {
		case "name":
			f.Name = field.text()
		case "arguments":
			f.Arguments = field.text()
			if field.isObject() || field.isArray() {
				f.Arguments = string(field)
			}
		}
	}
	return f
}

func decodeUsage(v value) *openai.Usage {
	if !v.isObject() {
		return nil
	}
	return &openai.Usage{
		PromptTokens:     v.field("prompt_tokens").number(),
		CompletionTokens: v.field("completion_tokens").number(),
		TotalTokens:      v.field("total_tokens").number(),
		PromptTokensDetails: &openai.PromptTokensDetails{
			CachedTokens: v.field("prompt_tokens_details").field("cached_tokens").number(),
		},
		CompletionTokensDetails: &openai.CompletionTokensDetails{
			ReasoningTokens: v.field("completion_tokens_details").field("reasoning_tokens").number(),
		},
	}
}
