package llm_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

func TestARejectionStatesTheWindow(t *testing.T) {
	openAI := func(message string) llmtest.Step { return llmtest.Error(400, "invalid_request_error", message) }
	for name, test := range map[string]struct {
		refusal       llmtest.Step
		window, input int
	}{
		// https://github.com/crewAIInc/crewAI-examples/issues/121
		"OpenAI": {llmtest.Error(400, "context_length_exceeded", "This model's maximum context length is 8192 tokens. However, your messages resulted in 8227 tokens. Please reduce the length of the messages."), 8192, 8227},
		// https://github.com/The-Vibe-Company/quivr/issues/505
		"OpenAI, with a completion": {openAI("This model's maximum context length is 4097 tokens. However, you requested 4203 tokens (3703 in the messages, 500 in the completion). Please reduce the length of the messages or completion."), 3597, 3703},
		// https://github.com/FoundationAgents/OpenManus/issues/62
		"OpenAI, with functions": {llmtest.Error(400, "context_length_exceeded", "This model's maximum context length is 8192 tokens. However, you requested 8213 tokens (6683 in the messages, 730 in the functions, and 800 in the completion). Please reduce the length of the messages, functions, or completion."), 7392, 7413},
		// https://github.com/cline/cline/issues/5474
		"OpenAI, with an input limit": {openAI("Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 289650 tokens. Please reduce the length of the messages."), 272000, 289650},
		// https://github.com/anthropics/claude-code/issues/12186
		"Anthropic": {openAI("prompt is too long: 208310 tokens > 200000 maximum"), 200000, 208310},
		// https://github.com/docker/docker-agent/issues/569
		"Anthropic, with an output": {openAI("input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, decrease input length or `max_tokens` and try again"), 136000, 178959},
		// https://github.com/google-gemini/gemini-cli/issues/4118
		"Gemini": {llmtest.Status(400, `[{"error":{"code":400,"message":"The input token count (132478) exceeds the maximum number of tokens allowed (131072).","status":"INVALID_ARGUMENT"}}]`), 131072, 132478},
		// https://github.com/google-gemini/gemini-cli/issues/10196
		"Gemini, with spaces": {llmtest.Status(400, `{"error":{"message":"{\n  \"error\": {\n    \"code\": 400,\n    \"message\": \"The input token count (209809)   exceeds the maximum number of tokens allowed (131072).\",\n    \"status\": \"INVALID_ARGUMENT\"\n    }\n}\n","code":400,"status":"Bad Request"}}`), 131072, 209809},
		// https://docs.mistral.ai/resources/known-limitations describes the status; the text is that of
		// the API, as fixtures of several of its clients record it.
		"Mistral": {llmtest.Status(400, `{"object":"error","message":"Prompt contains 40687 tokens and 0 draft tokens, too large for model with 32768 maximum context length","type":"invalid_request_error","param":null,"code":null}`), 32768, 40687},
		// https://github.com/FoundationAgents/OpenManus/issues/79
		"DeepSeek": {openAI("This model's maximum context length is 65536 tokens. However, you requested 66343 tokens (62247 in the messages, 4096 in the completion). Please reduce the length of the messages or completion."), 61440, 62247},
		// https://github.com/bytedance/deer-flow/issues/66
		"DeepSeek, without a completion": {openAI("This model's maximum context length is 65536 tokens. However, you requested 87731 tokens (87731 in the messages, 0 in the completion). Please reduce the length of the messages or completion."), 65536, 87731},
		// https://github.com/UKGovernmentBEIS/inspect_ai/issues/2634
		"vLLM": {llmtest.Status(400, `{"object":"error","message":"This model's maximum context length is 200 tokens. However, your request has 203 input tokens. Please reduce the length of the input messages. None","type":"BadRequestError","param":null,"code":400}`), 200, 203},
		"vLLM, with an output as large as the window": {openAI("'max_tokens' or 'max_completion_tokens' is too large: 1000. This model's maximum context length is 1000 tokens and your request has 203 input tokens (1000 > 1000 - 203). None"), 1000, 203},
		// https://github.com/vllm-project/vllm/issues/42474
		"vLLM, with an output": {openAI("This model's maximum context length is 128000 tokens. However, you requested 65535 output tokens and your prompt contains at least 62466 input tokens, for a total of at least 128001 tokens."), 62465, 62466},
		// https://github.com/agentscope-ai/AgentTeams/issues/346 states characters instead of input tokens.
		"vLLM, with a maximum input": {openAI("You passed 99073 input tokens and requested 32000 output tokens. However, the model's context length is only 131072 tokens, resulting in a maximum input length of 99072 tokens. Please reduce the length of the input prompt. (parameter=input_tokens, value=99073)"), 99072, 99073},
		// https://github.com/ggml-org/llama.cpp/pull/15780
		"llama.cpp": {llmtest.Status(500, `{"error":{"code":500,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"exceed_context_size_error","n_prompt_tokens":1407,"n_ctx":256}}`), 256, 1407},
		// https://github.com/langchain-ai/openwiki/issues/648
		"llama.cpp, since 2026": {openAI("request (131168 tokens) exceeds the available context size (131072 tokens), try increasing it"), 131072, 131168},
		// https://github.com/microsoft/vscode/issues/320558
		"Ollama": {llmtest.Status(400, `{"error":{"message":"{\"error\":{\"code\":400,\"message\":\"request (26528 tokens) exceeds the available context size (16384 tokens), try increasing it\",\"type\":\"exceed_context_size_error\",\"n_prompt_tokens\":26528,\"n_ctx\":16384}}","type":"invalid_request_error","param":null,"code":null}}`), 16384, 26528},
		// https://github.com/dyad-sh/dyad/issues/3498
		"Ollama's cloud": {llmtest.Status(400, `{"error":"prompt too long; exceeded max context length by 540451 tokens (ref: 00ad71bb-fea0-4639-9dc9-3ad800192057)"}`), 0, 0},
		// https://github.com/OpenHands/OpenHands/issues/9937
		"OpenRouter, with an output as large as the window": {openAI("This endpoint's maximum context length is 131072 tokens. However, you requested about 138956 tokens (7884 of text input, 131072 in the output). Please reduce the length of either one, or use the \"middle-out\" transform to compress your prompt automatically."), 131072, 7884},
		// https://github.com/topoteretes/cognee/issues/1061
		"OpenRouter": {openAI("This endpoint's maximum context length is 16384 tokens. However, you requested about 94307 tokens (94307 of text input). Please reduce the length of either one, or use the \"middle-out\" transform to compress your prompt automatically."), 16384, 94307},
		// https://github.com/cline/cline/issues/3120
		"xAI": {openAI("This model's maximum prompt length is 131072 but the request contains 136973 tokens."), 131072, 136973},
		// https://github.com/thepersonalaicompany/amurex-backend/issues/51
		"Groq": {llmtest.Error(400, "context_length_exceeded", "Please reduce the length of the messages or completion."), 0, 0},
		// https://github.com/ITSpecialist111/ai_automation_suggester/issues/61
		"Groq, above the rate": {llmtest.Error(413, "rate_limit_exceeded", "Request too large for model `llama-3.3-70b-versatile` in organization `org_1` service tier `on_demand` on tokens per minute (TPM): Limit 6000, Requested 14810, please reduce your message size and try again."), 6000, 14810},
		// https://github.com/stanford-crfm/helm/issues/2080
		"Together": {llmtest.Error(422, "invalid_request_error", "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 3997 `inputs` tokens and 100 `max_new_tokens`"), 3996, 3997},
		// https://github.com/sgl-project/sglang/issues/4048
		"SGLang": {openAI("Input length (160062 tokens) exceeds the maximum allowed length (59862 tokens)."), 59862, 160062},
		// https://github.com/zed-industries/zed/issues/51443
		"GitHub Copilot": {llmtest.Error(400, "model_max_prompt_tokens_exceeded", "prompt token count of 72458 exceeds the limit of 72000"), 72000, 72458},
		// https://github.com/cline/cline/issues/3664
		"LM Studio":           {openAI("Trying to keep the first 10136 tokens when context the overflows. However, the model is loaded with context length of only 7866 tokens, which is not enough. Try to load the model with a larger context length, or provide a shorter input."), 7866, 10136},
		"numbers with commas": {openAI("prompt is too long: 208,310 tokens > 200,000 maximum"), 200000, 208310},
		"absurd numbers":      {openAI("prompt is too long: 99999999999999999999 tokens > 999999999999 maximum"), 0, 0},
		"no text":             {llmtest.Status(413, ""), 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := target(t, llmtest.Start(t, test.refusal)).Stream(within(t), hello, nil)
			failed := requireKind(t, llm.KindContextTooLong, err)
			require.False(t, failed.Retryable())
			require.Equal(t, test.window, failed.Window, "window")
			require.Equal(t, test.input, failed.InputTokens, "input")
		})
	}
}

func TestOtherRejectionsStateNoWindow(t *testing.T) {
	for _, step := range []llmtest.Step{
		llmtest.Error(429, "rate_limit_exceeded", "Request too large on tokens per minute (TPM): Limit 6000, Requested 14810"),
		llmtest.Error(429, "ThrottlingException", "Too many tokens, please wait before trying again."),
		llmtest.Error(400, "invalid_value", "requested 5 tokens"),
	} {
		_, err := target(t, llmtest.Start(t, step)).Stream(within(t), hello, nil)
		var failed *llm.Error
		require.ErrorAs(t, err, &failed)
		require.NotEqual(t, llm.KindContextTooLong, failed.Kind)
		require.Zero(t, failed.Window)
		require.Zero(t, failed.InputTokens)
	}
}

func TestTheStatedWindowMayFollowALongText(t *testing.T) {
	refusal := fmt.Sprintf("%s prompt is too long: 208310 tokens > 200000 maximum", strings.Repeat("x", 20<<10))
	_, err := target(t, llmtest.Start(t, llmtest.Error(400, "invalid_request_error", refusal))).Stream(within(t), hello, nil)
	failed := requireKind(t, llm.KindContextTooLong, err)
	require.Equal(t, 200000, failed.Window)
}

// Some servers quote the request in their errors.
func TestAQuotedSummaryDoesNotClassifyAnErrorAsTooLong(t *testing.T) {
	quoted := fmt.Sprintf("invalid input: %q, %q", event.SummaryIntroduction+"Trains.", event.DroppedResult)
	_, err := target(t, llmtest.Start(t, llmtest.Error(400, "invalid_request_error", quoted))).Stream(within(t), hello, nil)
	requireKind(t, llm.KindBadRequest, err)
}
