package llm

import (
	"strings"

	"github.com/sashabaranov/go-openai"
)

// chunk is a piece of an answer: that of go-openai with the fields of other providers.
type chunk struct {
	openai.ChatCompletionStreamResponse // without Choices
	choices                             []choice
	failure                             value // the event, if it is an error; nil: it is none
}

type choice struct {
	openai.ChatCompletionStreamChoice
	native    string   // native_finish_reason
	isMessage bool     // has a message instead of a delta
	parts     []value  // of the content
	details   []value  // reasoning_details
	thoughts  string   // the reasoning in details and similar fields
	named     string   // field of the reasoning; "": it is in the content or in details
	extra     value    // extra_content
	callExtra []value  // extra_content of each of Delta.ToolCalls
	quirks    quirkSet // found in the JSON
}

// decode reads an event. It ignores unknown fields, and reads the others whatever their type.
func decode(event value) (c chunk) {
	for element := range event.elements() {
		event = element // Gemini wraps an error object
		break
	}
	var empty value
	for name, field := range event.fields() {
		switch string(name) {
		case "id":
			c.ID = field.text()
		case "model":
			c.Model = field.text()
		case "choices":
			for element := range field.elements() {
				c.decodeChoice(element)
			}
		case "usage", "x_groq", "usage_metadata", "usageMetadata":
			c.decodeUsage(field)
		case "error", "error_code", "base_resp":
			if isFailure(field) {
				c.failure = event
			} else {
				empty = field
			}
		case "object", "type":
			if field.text() == "error" {
				c.failure = event
			}
		}
	}
	if len(c.choices) == 0 && empty.isObject() {
		c.failure = event
	}
	return c
}

// isFailure reports whether the field of an error is one. Some servers send an empty one with each chunk.
func isFailure(field value) bool {
	switch string(field) {
	case "null", "false", "0", `""`, "{}", "[]":
		return false
	}
	return field.field("status_code").text() != "0" // base_resp of MiniMax
}

func (c *chunk) decodeChoice(v value) {
	var decoded choice
	var message value
	for name, field := range v.fields() {
		switch string(name) {
		case "index":
			decoded.Index = field.number()
		case "delta":
			decoded.decodeDelta(field)
		case "message":
			message = field
		case "text": // of a completion that is no chat
			decoded.Delta.Content += decoded.textOf(field, 0)
		case "finish_reason":
			decoded.FinishReason = openai.FinishReason(reasonIn(field))
		case "native_finish_reason":
			decoded.native = reasonIn(field)
		case "usage": // Moonshot
			c.decodeUsage(field)
		}
	}
	// Perplexity sends the whole message so far with each delta.
	if decoded.isEmpty() && message.isObject() {
		decoded.isMessage = true
		decoded.decodeDelta(message)
	}
	c.choices = append(c.choices, decoded)
}

// isEmpty reports whether the delta adds nothing to the answer.
func (c *choice) isEmpty() bool {
	d := &c.Delta
	return d.Content+d.Refusal+d.ReasoningContent+c.thoughts == "" && len(d.ToolCalls) == 0 && d.FunctionCall == nil
}

// reasonIn also reads the object of SGLang. Some servers send the text null.
func reasonIn(v value) string {
	if v.isObject() {
		v = v.field("type")
	}
	if reason := v.text(); v.isString() && reason != string(openai.FinishReasonNull) {
		return reason
	}
	return ""
}

// reasoningFields are the names of the reasoning in a delta. Servers send the same text under two names, so only that
// of the lowest rank counts.
var reasoningFields = map[string]int{
	"reasoning_content": 1, // DeepSeek, xAI, Moonshot, Qwen, SGLang, LiteLLM, older versions of vLLM
	"reasoning":         2, // OpenRouter, Groq, Cerebras, Ollama, newer versions of vLLM
	"reasoning_text":    3, // GitHub Copilot
	"thinking":          4, // Ollama's own API, proxies of Anthropic
	"thinking_content":  5,
	"thought":           6,
}

func (c *choice) decodeDelta(v value) {
	var ranked string
	lowest := len(reasoningFields) + 1
	var thoughts strings.Builder
	for name, field := range v.fields() {
		switch string(name) {
		case "content":
			c.decodeContent(field)
		case "refusal":
			c.Delta.Refusal = field.text() // some servers send false
		case "reasoning_details": // OpenRouter, MiniMax
			for element := range field.elements() {
				c.details = append(c.details, element)
				thoughts.WriteString(c.textOf(element, 0))
			}
		case "thinking_blocks": // LiteLLM
			thoughts.WriteString(c.textOf(field, 0))
		case "extra_content":
			c.extra = field
		case "tool_calls":
			for element := range field.elements() {
				c.decodeCall(element)
			}
			if field.isObject() {
				c.decodeCall(field)
			}
		case "function_call":
			if field.isObject() {
				c.Delta.FunctionCall = new(c.functionOf(field))
			}
		default:
			if rank := reasoningFields[string(name)]; rank > 0 && rank < lowest {
				if text := c.textOf(field, 0); text != "" {
					ranked, lowest, c.named = text, rank, string(name)
				}
			}
		}
	}
	c.Delta.ReasoningContent += ranked
	c.thoughts = thoughts.String()
}

func (c *choice) decodeContent(v value) {
	if !v.isArray() && !v.isObject() {
		c.Delta.Content += c.textOf(v, 0)
		return
	}
	var text, thinking strings.Builder
	read := func(part value) {
		c.parts = append(c.parts, part)
		switch part.field("type").text() {
		case "thinking", "reasoning":
			thinking.WriteString(c.textOf(part, 0))
		default:
			text.WriteString(c.textOf(part, 0))
		}
	}
	for part := range v.elements() {
		read(part)
	}
	if v.isObject() {
		c.quirks.add(quirkTextType)
		read(v)
	}
	c.Delta.Content += text.String()
	c.Delta.ReasoningContent += thinking.String()
}

// textFields are the names of the text in a content part, a thinking block or a detail of the reasoning.
var textFields = []string{"text", "thinking", "summary", "reasoning", "refusal", "content", "value"}

// maxNested bounds the depth of texts: the time is proportional to it.
const maxNested = 8

// textOf returns the text of a value: of a number and a boolean as they stand there, since some servers decode each
// token as JSON; of an array all texts, and of an object the first one.
func (c *choice) textOf(v value, depth int) string {
	switch {
	case v.isString():
		return v.text()
	case v.isNull() || depth > maxNested:
		return ""
	case v.isArray():
		var text strings.Builder
		for element := range v.elements() {
			text.WriteString(c.textOf(element, depth+1))
		}
		return text.String()
	case v.isObject():
		for _, name := range textFields {
			if text := c.textOf(v.field(name), depth+1); text != "" {
				return text
			}
		}
		return ""
	}
	c.quirks.add(quirkTextType)
	return v.text()
}

func (c *choice) decodeCall(v value) {
	var call openai.ToolCall
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
			call.Function = c.functionOf(field)
		case "extra_content":
			extra = field
		}
	}
	c.Delta.ToolCalls = append(c.Delta.ToolCalls, call)
	c.callExtra = append(c.callExtra, extra)
}

func (c *choice) functionOf(v value) (f openai.FunctionCall) {
	for name, field := range v.fields() {
		switch string(name) {
		case "name":
			f.Name = field.text()
		case "arguments":
			f.Arguments = field.text()
			if field.isObject() || field.isArray() {
				f.Arguments = string(field)
				c.quirks.add(quirkArguments)
			}
		}
	}
	return f
}
