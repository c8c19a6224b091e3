package llm_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

func TestErrorsAreClassifiedInEveryForm(t *testing.T) {
	text := llmtest.Chunk(`{"content":"Mind"}`, "")
	tests := map[string]struct {
		step      llmtest.Step
		kind      llm.Kind
		retryable bool
		says      string
	}{
		"400":                  {step: llmtest.Error(400, "invalid_value", "temperature is off"), kind: llm.KindBadRequest, says: "temperature is off"},
		"401":                  {step: llmtest.Error(401, "invalid_api_key", "who are you"), kind: llm.KindUnauthorized, says: "who are you (the key in env:TEST_API_KEY was rejected)"},
		"402":                  {step: llmtest.Error(402, "", "Insufficient Balance"), kind: llm.KindQuota},
		"403":                  {step: llmtest.Error(403, "", "not in your country"), kind: llm.KindUnauthorized},
		"404":                  {step: llmtest.Error(404, "model_not_found", "no such model"), kind: llm.KindNotFound, says: `no such model (model "model-1" at http://127.0.0.1:`},
		"408":                  {step: llmtest.Error(408, "", ""), kind: llm.KindTimeout, retryable: true, says: "Request Timeout"},
		"409":                  {step: llmtest.Error(409, "", ""), kind: llm.KindServer, retryable: true},
		"413":                  {step: llmtest.Status(413, "too large"), kind: llm.KindContextTooLong},
		"418":                  {step: llmtest.Status(418, ""), kind: llm.KindBadRequest, says: "I'm a teapot"},
		"422":                  {step: llmtest.Status(422, `{"detail":[{"loc":["body","x"],"msg":"extra"}]}`), kind: llm.KindBadRequest, says: "body.x: extra"},
		"425":                  {step: llmtest.Error(425, "", ""), kind: llm.KindServer, retryable: true},
		"429":                  {step: llmtest.Error(429, "rate_limit_exceeded", "slow down"), kind: llm.KindRateLimited, retryable: true, says: "scripted: rate limited (429): slow down"},
		"429 without quota":    {step: llmtest.Error(429, "insufficient_quota", "You exceeded your current quota"), kind: llm.KindQuota},
		"500":                  {step: llmtest.Status(500, "<html>oops</html>"), kind: llm.KindServer, retryable: true, says: "Internal Server Error"},
		"502 without a body":   {step: llmtest.Status(502, ""), kind: llm.KindServer, retryable: true, says: "Bad Gateway"},
		"503":                  {step: llmtest.Error(503, "overloaded", "busy"), kind: llm.KindServer, retryable: true},
		"529":                  {step: llmtest.Error(529, "overloaded_error", "Overloaded"), kind: llm.KindServer, retryable: true},
		"too long, by code":    {step: llmtest.Error(400, "context_length_exceeded", "too big"), kind: llm.KindContextTooLong},
		"too long, llama.cpp":  {step: llmtest.Error(400, "exceed_context_size_error", "the request exceeds it"), kind: llm.KindContextTooLong},
		"too long, Anthropic":  {step: llmtest.Error(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"), kind: llm.KindContextTooLong},
		"too long, vLLM":       {step: llmtest.Error(400, "BadRequestError", "This model's maximum context length is 4096 tokens."), kind: llm.KindContextTooLong},
		"too long by Gemini":   {step: llmtest.Status(400, `[{"error":{"code":400,"message":"The input token count (9) exceeds the maximum number of tokens allowed (8).","status":"INVALID_ARGUMENT"}}]`), kind: llm.KindContextTooLong, says: "The input token count"},
		"filtered by Azure":    {step: llmtest.Status(400, `{"error":{"message":"no","code":"content_filter","innererror":{"code":"ResponsibleAIPolicyViolation"}}}`), kind: llm.KindContentFilter},
		"filtered, OpenRouter": {step: llmtest.Error(403, "403", "Your input was flagged as violence"), kind: llm.KindContentFilter},
		"a provider behind OpenRouter": {
			step: llmtest.Status(502, `{"error":{"message":"Provider returned error","code":502,"metadata":{"raw":"gpu on fire"}}}`),
			kind: llm.KindServer, retryable: true, says: "Provider returned error: gpu on fire",
		},
		"a code that is a number":     {step: llmtest.Status(400, `{"error":{"message":"no","code":7}}`), kind: llm.KindBadRequest},
		"a code that is null":         {step: llmtest.Status(400, `{"error":{"message":"no","code":null}}`), kind: llm.KindBadRequest},
		"no code at all":              {step: llmtest.Status(400, `{"error":{"message":"no"}}`), kind: llm.KindBadRequest},
		"an error that is a string":   {step: llmtest.Status(404, `{"error":"model \"x\" not found, try pulling it first"}`), kind: llm.KindNotFound, says: `model "x" not found`},
		"a message that is an array":  {step: llmtest.Status(400, `{"error":{"message":["a","b"]}}`), kind: llm.KindBadRequest, says: `["a","b"]`},
		"a message at the top level":  {step: llmtest.Status(422, `{"object":"error","message":{"detail":[{"msg":"Extra inputs are not permitted"}]}}`), kind: llm.KindBadRequest, says: "Extra inputs are not permitted"},
		"400 for an unknown model":    {step: llmtest.Error(400, "invalid_request_error", "Model Not Exist"), kind: llm.KindNotFound, says: `(model "model-1" at`},
		"no such model, says a 500":   {step: llmtest.Status(500, `{"error":{"message":"model \"x\" not found, try pulling it first","code":500}}`), kind: llm.KindNotFound},
		"status only in the code":     {step: llmtest.Error(503, "model_not_found", "No available channel"), kind: llm.KindNotFound},
		"a loading model":             {step: llmtest.Error(503, "unavailable_error", "Loading model"), kind: llm.KindServer, retryable: true},
		"500 for a long conversation": {step: llmtest.Error(500, "server_error", "the request exceeds the available context size"), kind: llm.KindContextTooLong},
		"an error that is null":       {step: llmtest.Status(400, `{"error":null}`), kind: llm.KindBadRequest, says: "Bad Request"},
		"half an error":               {step: llmtest.Status(400, `{"error":{"mess`), kind: llm.KindBadRequest, says: "Bad Request"},

		"a field named error": {
			llmtest.Raw(sse, `error: {"code":400,"message":"the request (512 tokens) exceeds the available context size (256 tokens)","type":"exceed_context_size_error"}`+"\n\n", llmtest.Done), llm.KindContextTooLong, false, "exceeds the available context size",
		},
		"a field named error with a text":     {llmtest.Raw(sse, text, "error: out of memory\n\n"), llm.KindServer, true, "out of memory"},
		"an event named error with a text":    {llmtest.Raw(sse, text, "event: error\ndata: out of memory\n\n"), llm.KindServer, true, "out of memory"},
		"an event named error without a name": {llmtest.Raw(sse, "event: error\ndata: {\"message\":\"slow down\",\"code\":429}\n\n"), llm.KindRateLimited, true, "slow down"},
		"an event named error of many lines":  {llmtest.Raw(sse, "event: error\ndata: {\"error\":\ndata: {\"message\":\"slow down\",\"status_code\":429}}\n\n"), llm.KindRateLimited, true, "slow down"},
		"an object of the type error":         {llmtest.Raw(sse, text, `data: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`+"\n\n"), llm.KindServer, true, "Overloaded"},
		"an object named error":               {llmtest.Raw(sse, `data: {"object":"error","message":"max_tokens is too large","type":"BadRequestError","code":400}`+"\n\n"), llm.KindBadRequest, false, "max_tokens is too large"},
		"a base_resp, as MiniMax":             {llmtest.Raw("application/json", `{"base_resp":{"status_code":1004,"status_msg":"login fail"}}`), llm.KindServer, true, "login fail"},
		"an error_code, as Baidu":             {llmtest.Raw("application/json", `{"error_code":336003,"error_msg":"the conversation is too wide"}`), llm.KindServer, true, "the conversation is too wide"},
		"a detail, as FastAPI":                {llmtest.Status(400, `{"detail":"no such field"}`), llm.KindBadRequest, false, "no such field"},
		"an error in an array in the stream":  {llmtest.Raw(sse, text, `data: [{"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}]`+"\n\n"), llm.KindServer, true, "busy"},
		"a call that Groq cannot parse":       {llmtest.Raw(sse, text, "event: error\n"+`data: {"error":{"message":"no valid call","type":"invalid_request_error","code":"tool_use_failed","status_code":400}}`+"\n\n"), llm.KindMalformed, true, "no valid call"},
		"such a call with a status":           {llmtest.Status(400, `{"error":{"message":"no valid call","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"<f>"}}`), llm.KindMalformed, true, "no valid call"},
		"a text":                              {llmtest.Status(400, "top_k is unknown"), llm.KindBadRequest, false, "top_k is unknown"},
		"a JSON text":                         {llmtest.Status(429, `"slow down"`), llm.KindRateLimited, true, "slow down"},
		"a text with status 200":              {llmtest.Raw("text/plain", "no model is loaded"), llm.KindTruncated, true, "no model is loaded"},
		"events of text alone":                {llmtest.Raw(sse, "data: no model is loaded\n\n", llmtest.Done), llm.KindTruncated, true, "no model is loaded"},
		"a page":                              {llmtest.Status(502, "<html><h1>Bad gateway</h1></html>"), llm.KindServer, true, "the response has no message of a model server"},
		"an exhausted resource, as Google":    {llmtest.Raw(sse, `data: {"error":{"message":"used up","status":"RESOURCE_EXHAUSTED"}}`+"\n\n"), llm.KindRateLimited, true, "used up"},
		"an invalid argument, as Google":      {llmtest.Raw(sse, `data: {"error":{"message":"bad part","status":"INVALID_ARGUMENT"}}`+"\n\n"), llm.KindBadRequest, false, "bad part"},
		"throttling, as Bedrock":              {llmtest.Raw(sse, `data: {"error":{"message":"wait","type":"ThrottlingException"}}`+"\n\n"), llm.KindRateLimited, true, "wait"},
		"an exceeded quota, as Moonshot":      {llmtest.Error(429, "exceeded_current_quota_error", "recharge"), llm.KindQuota, false, "recharge"},
		"an overloaded engine, as Moonshot":   {llmtest.Error(429, "engine_overloaded_error", "busy"), llm.KindRateLimited, true, "busy"},
		"a request too large, as Anthropic":   {llmtest.Raw(sse, `data: {"error":{"message":"big","type":"request_too_large"}}`+"\n\n"), llm.KindContextTooLong, false, "big"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := target(t, llmtest.Start(t, test.step)).Stream(within(t), hello, nil)
			failed := requireKind(t, test.kind, err)
			require.Equal(t, test.retryable, failed.Retryable())
			require.ErrorContains(t, err, test.says)
		})
	}
}

func TestErrorsDoNotContainTheKey(t *testing.T) {
	const other = "sk-proj-abcdefghijklmnopqrstuvwxyz"
	leak := fmt.Sprintf(`your key %s and "authorization: Bearer %s" and %s`, testKey, testKey, other)
	steps := map[string]llmtest.Step{
		"refusal":         llmtest.Error(401, "invalid_api_key", leak),
		"text":            llmtest.Status(500, leak),
		"no event stream": llmtest.Raw("text/plain", leak),
		"in the stream":   llmtest.Raw("text/event-stream", "data: {\"error\":{\"message\":\""+testKey+"\"}}\n\n"),
		"redirect":        llmtest.Status(302, "").Header("Location", "/?key="+testKey),
	}
	for name, step := range steps {
		t.Run(name, func(t *testing.T) {
			_, err := target(t, llmtest.Start(t, step)).Stream(within(t), hello, nil)
			require.Error(t, err)
			requireNoSecret(t, err, testKey, other)
		})
	}
	t.Run("in an unreachable URL", func(t *testing.T) {
		_, err := resolve(t, reducer.ProviderConfig{BaseURL: "http://127.0.0.1:1/" + testKey}).Stream(within(t), hello, nil)
		requireKind(t, llm.KindConnection, err)
		requireNoSecret(t, err, testKey)
	})
	t.Run("in a printed target", func(t *testing.T) {
		target := target(t, llmtest.Start(t))
		for _, verb := range []string{"%v", "%+v", "%#v"} {
			require.NotContains(t, fmt.Sprintf(verb, target), testKey)
			require.NotContains(t, fmt.Sprintf(verb, *target), testKey)
		}
	})
}

// requireNoSecret checks everything that would be stored of an error: its text and those of the
// errors that it wraps.
func requireNoSecret(t testing.TB, err error, secrets ...string) {
	t.Helper()
	for _, secret := range secrets {
		require.NotContains(t, fmt.Sprintf("%v %+v %#v", err, err, err), secret)
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		requireNoSecret(t, e.Unwrap(), secrets...)
	case interface{ Unwrap() []error }:
		for _, cause := range e.Unwrap() {
			requireNoSecret(t, cause, secrets...)
		}
	}
}

func TestLongErrorIsCut(t *testing.T) {
	_, err := target(t, llmtest.Start(t, llmtest.Error(500, "", strings.Repeat("é", 30<<10)))).Stream(within(t), hello, nil)
	require.Less(t, len(err.Error()), 600)
	require.ErrorContains(t, err, "bytes in total")
}

func TestEndlessStreamIsBounded_Alone(t *testing.T) {
	endless := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		// An endless line.
		junk := strings.Repeat("x", 1<<20)
		for {
			if _, err := io.WriteString(w, junk); err != nil {
				return
			}
		}
	})
	server := serve(t, endless)
	_, err := resolve(t, reducer.ProviderConfig{BaseURL: server}).Stream(t.Context(), hello, nil)
	requireKind(t, llm.KindTruncated, err)
	require.ErrorContains(t, err, "more than 64 MiB")
}
