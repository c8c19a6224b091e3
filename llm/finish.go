package llm

import (
	"regexp"
	"strings"

	"github.com/sashabaranov/go-openai"
)

// ending is what a finish reason means.
type ending uint8

const (
	endUnknown   ending = iota
	endComplete         // the model stopped
	endCalls            // the model called tools
	endCut              // at the maximum length
	endTooLong          // at the end of the context window
	endFiltered         // by a content filter
	endFailed           // the server failed; another attempt may succeed
	endMalformed        // the server could not parse what the model wrote; another attempt may succeed
	endRejected         // no attempt of this request succeeds
)

// endings are the finish reasons of servers, in lower case with underscores.
//
//   - OpenAI, Azure, Groq, Moonshot, Together, Cerebras, Fireworks: https://platform.openai.com/docs/api-reference/chat
//   - OpenRouter: https://openrouter.ai/docs/api-reference/overview#finish-reason
//   - Gemini and Vertex AI: https://ai.google.dev/api/generate-content#FinishReason
//   - Anthropic: https://docs.anthropic.com/en/api/handling-stop-reasons
//   - Bedrock: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html (stopReason)
//   - Mistral: https://docs.mistral.ai/api, DeepSeek: https://api-docs.deepseek.com/api/create-chat-completion
//   - Cohere: https://docs.cohere.com/reference/chat, Zhipu: https://docs.z.ai/api-reference/llm/chat-completion
//   - vLLM and SGLang (abort), llama.cpp, Ollama (load, unload), TGI (eos_token), OpenAI responses (status)
var endings = map[string]ending{
	"stop": endComplete, "end_turn": endComplete, "stop_sequence": endComplete, "eos": endComplete, "eos_token": endComplete,
	"end_of_text": endComplete, "endoftext": endComplete, "complete": endComplete, "completed": endComplete, "finish": endComplete,
	"finished": endComplete, "normal": endComplete, "done": endComplete,

	"tool_calls": endCalls, "tool_call": endCalls, "function_call": endCalls, "function_calls": endCalls, "tool_use": endCalls,

	"length": endCut, "max_tokens": endCut, "max_output_tokens": endCut, "max_length": endCut, "model_length": endCut,
	"incomplete": endCut, "pause_turn": endCut,

	"model_context_window_exceeded": endTooLong, "context_length_exceeded": endTooLong, "error_limit": endTooLong,

	"content_filter": endFiltered, "content_filtered": endFiltered, "guardrail_intervened": endFiltered, "refusal": endFiltered,
	"sensitive": endFiltered, "error_toxic": endFiltered, "safety": endFiltered, "recitation": endFiltered, "blocklist": endFiltered,
	"prohibited_content": endFiltered, "spii": endFiltered, "image_safety": endFiltered, "image_prohibited_content": endFiltered,
	"image_recitation": endFiltered, "model_armor": endFiltered,

	"error": endFailed, "failed": endFailed, "abort": endFailed, "aborted": endFailed, "cancel": endFailed, "canceled": endFailed,
	"cancelled": endFailed, "user_cancel": endFailed, "in_progress": endFailed, "timeout": endFailed, "network_error": endFailed,
	"engine_overloaded": endFailed, "insufficient_system_resource": endFailed, "load": endFailed, "unload": endFailed,

	"malformed_function_call": endMalformed, "malformed_tool_use": endMalformed, "malformed_response": endMalformed,
	"malformed_model_output": endMalformed, "unexpected_tool_call": endMalformed, "too_many_tool_calls": endMalformed,
	"function_call_filter": endMalformed, "tool_use_failed": endMalformed,

	"language": endRejected, "missing_thought_signature": endRejected,
}

// isCut reports whether the last call of the answer can be incomplete.
func (e ending) isCut() bool { return e == endCut || e == endTooLong || e == endFiltered }

// endingNames are the recorded finish reasons.
var endingNames = map[ending]string{
	endComplete: string(openai.FinishReasonStop),
	endCalls:    string(openai.FinishReasonToolCalls),
	endCut:      string(openai.FinishReasonLength),
	endTooLong:  string(openai.FinishReasonLength),
	endFiltered: string(openai.FinishReasonContentFilter),
	endUnknown:  "other",
}

const maxFinishReason = 64 // bytes

// endingOf also knows reasons behind and in front of a colon or a dot: Gemini sends "function_call_filter:
// MALFORMED_FUNCTION_CALL".
func endingOf(reason string) ending {
	if len(reason) > maxFinishReason {
		return endUnknown
	}
	name := strings.ReplaceAll(strings.ToLower(strings.TrimSpace(reason)), "-", "_")
	if end, ok := endings[name]; ok {
		return end
	}
	if at := strings.LastIndexAny(name, ":."); at >= 0 {
		if end := endingOf(name[at+1:]); end != endUnknown {
			return end
		}
		return endingOf(name[:at])
	}
	return endUnknown
}

// finish is the finish reason of a choice. Without one, reason is empty.
type finish struct {
	index          int
	reason, native string // native: that of the provider behind OpenRouter
}

func (f finish) ending() ending { return endingOf(f.reason) }

var word = regexp.MustCompile(`^[A-Za-z0-9_.: -]{1,64}$`)

// String returns the finish reason for a message. A server must not be able to put arbitrary text there.
func (f finish) String() string {
	if !word.MatchString(f.reason) {
		return endingNames[endUnknown]
	}
	return f.reason
}

// effective returns the native reason if it explains an empty answer.
func (f finish) effective(isEmpty bool) finish {
	if isEmpty && f.native != "" {
		switch endingOf(f.native) {
		case endUnknown, endComplete, endCalls:
		default:
			f.reason = f.native
		}
	}
	return f
}
