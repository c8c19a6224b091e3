package llm

import (
	"strings"

	"github.com/sashabaranov/go-openai"
)

// The names of the numbers in a usage. The first one that is not zero counts; a dot separates the fields of an object.
var (
	inputFields = []string{
		"prompt_tokens",    // OpenAI
		"input_tokens",     // Anthropic, the Responses API of OpenAI
		"promptTokenCount", // Gemini's own API
	}
	outputFields = []string{"completion_tokens", "output_tokens", "candidatesTokenCount"}
	totalFields  = []string{"total_tokens", "totalTokenCount"}
	cachedFields = []string{
		"prompt_tokens_details.cached_tokens", // OpenAI, OpenRouter, Groq, xAI, newer versions of vLLM
		"input_tokens_details.cached_tokens",  // the Responses API of OpenAI
		"prompt_cache_hit_tokens",             // DeepSeek
		"cached_tokens",                       // Moonshot, Together
		"cache_read_input_tokens",             // Anthropic
		"cachedContentTokenCount",             // Gemini's own API
	}
	reasoningTokenFields = []string{
		"completion_tokens_details.reasoning_tokens", // OpenAI
		"output_tokens_details.reasoning_tokens",     // the Responses API of OpenAI
		"reasoning_tokens",                           // Perplexity, older versions of xAI
		"thoughtsTokenCount",                         // Gemini's own API
	}
	// uncountedFields are not in the input_tokens of Anthropic.
	uncountedFields = []string{"cache_read_input_tokens", "cache_creation_input_tokens"}
)

// decodeUsage reads a usage, or the object with the usage that Groq sends.
func (c *chunk) decodeUsage(v value) {
	if inner := v.field("usage"); inner.isObject() {
		v = inner
	}
	if !v.isObject() {
		return
	}
	usage := openai.Usage{
		PromptTokens: firstNumber(v, inputFields), CompletionTokens: firstNumber(v, outputFields), TotalTokens: firstNumber(v, totalFields),
		PromptTokensDetails:     &openai.PromptTokensDetails{CachedTokens: firstNumber(v, cachedFields)},
		CompletionTokensDetails: &openai.CompletionTokensDetails{ReasoningTokens: firstNumber(v, reasoningTokenFields)},
	}
	if v.field("prompt_tokens") == nil {
		for _, name := range uncountedFields {
			usage.PromptTokens += v.field(name).number()
		}
	}
	if usage.PromptTokens > 0 || usage.CompletionTokens > 0 {
		c.Usage = &usage // some servers send zeros if they do not know the usage
	}
}

func firstNumber(v value, fields []string) int {
	for _, path := range fields {
		field := v
		for name := range strings.SplitSeq(path, ".") {
			field = field.field(name)
		}
		if n := field.number(); n > 0 {
			return n
		}
	}
	return 0
}
