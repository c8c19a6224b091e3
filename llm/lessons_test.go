package llm_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// Forms of errors about a parameter %s, as servers of these kinds send them.
var parameterErrors = map[string]func(name string) llmtest.Step{
	"OpenAI": func(name string) llmtest.Step {
		return llmtest.Status(400, fmt.Sprintf(`{"error":{"message":"Unsupported parameter: '%s' is not supported with this model.","type":"invalid_request_error","param":%q,"code":"unsupported_parameter"}}`, name, name))
	},
	"an old OpenAI": func(name string) llmtest.Step {
		return llmtest.Status(400, fmt.Sprintf(`{"error":{"message":"Unrecognized request argument supplied: %s","type":"invalid_request_error"}}`, name))
	},
	"only the field param": func(name string) llmtest.Step {
		return llmtest.Status(400, fmt.Sprintf(`{"error":{"message":"This request field is not supported","param":"body.%s"}}`, name))
	},
	"Pydantic": func(name string) llmtest.Step {
		return llmtest.Status(422, fmt.Sprintf(`{"detail":[{"type":"extra_forbidden","loc":["body",%q],"msg":"Extra inputs are not permitted","input":{"model":1}}]}`, name))
	},
	"vLLM": func(name string) llmtest.Step {
		return llmtest.Status(400, fmt.Sprintf(`{"object":"error","message":"[{'type': 'extra_forbidden', 'loc': ('body', '%s'), 'msg': 'Extra inputs are not permitted'}]","type":"BadRequestError","code":400}`, name))
	},
	"Anthropic": func(name string) llmtest.Step {
		return llmtest.Status(400, fmt.Sprintf(`{"type":"error","error":{"type":"invalid_request_error","message":"%s: Extra inputs are not permitted"}}`, name))
	},
	"Google": func(name string) llmtest.Step {
		return llmtest.Status(400, fmt.Sprintf(`[{"error":{"code":400,"message":"Invalid JSON payload received. Unknown name \"%s\": Cannot find field.","status":"INVALID_ARGUMENT"}}]`, name))
	},
	"a server in Go": func(name string) llmtest.Step {
		return llmtest.Status(400, fmt.Sprintf(`{"error":"json: unknown field \"%s\""}`, name))
	},
	"a server in Python": func(name string) llmtest.Step {
		return llmtest.Error(500, "", fmt.Sprintf("create() got an unexpected keyword argument '%s'", name))
	},
}

func fieldsOf(t *testing.T, request llmtest.Request) []string {
	var fields map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(request.Body, &fields))
	return slices.Sorted(maps.Keys(fields))
}

func TestAParameterThatNoSettingAsksForIsOmittedAfterAnError(t *testing.T) {
	labels := event.RequestSettings{Labels: map[string]string{"user": "u-17"}}
	for form, refuses := range parameterErrors {
		for name, request := range map[string]struct {
			settings  event.RequestSettings
			maxOutput int
			renamed   string
		}{
			"stream_options": {},
			"user":           {settings: labels},
			"max_tokens":     {maxOutput: 50, renamed: "max_completion_tokens"},
			"tool_choice":    {settings: event.RequestSettings{ToolChoice: &event.ToolChoice{Mode: "none"}}},
		} {
			t.Run(form+" refuses "+name, func(t *testing.T) {
				model := llmtest.Start(t, refuses(name), llmtest.Answer("Hi"), llmtest.Answer("Hi"))
				adapter := llm.New(llm.Options{AllowLoopback: true})
				for range 2 {
					to, err := adapter.Resolve(reducer.ProviderConfig{ProviderID: "scripted", Model: "m", BaseURL: model.URL})
					require.NoError(t, err)
					to.Settings, to.MaxOutput, to.Tools = request.settings, request.maxOutput, tools
					result, err := to.Stream(within(t), hello, nil)
					require.NoError(t, err)
					require.Equal(t, "Hi", result.Text)
					if request.renamed != "" {
						require.Contains(t, result.Quirks, "parameter_renamed")
					} else {
						require.Contains(t, result.Quirks, "parameter_dropped")
					}
				}
				sent := model.Requests()
				require.Len(t, sent, 3, "the second request is right at once")
				require.Contains(t, fieldsOf(t, sent[0]), name)
				for _, r := range sent[1:] {
					require.NotContains(t, fieldsOf(t, r), name)
					if request.renamed != "" {
						require.Contains(t, fieldsOf(t, r), request.renamed)
					}
				}
			})
		}
	}
}

func TestLessonsAreOfOneModelAtOneURL(t *testing.T) {
	adapter := llm.New(llm.Options{AllowLoopback: true})
	ask := func(model *llmtest.Server, name string) {
		to, err := adapter.Resolve(reducer.ProviderConfig{ProviderID: "scripted", Model: name, BaseURL: model.URL})
		require.NoError(t, err)
		_, err = to.Stream(within(t), hello, nil)
		require.NoError(t, err)
	}
	one := llmtest.Start(t, parameterErrors["OpenAI"]("stream_options"), llmtest.Answer("Hi"), llmtest.Answer("Hi"))
	ask(one, "m")
	ask(one, "other")
	two := llmtest.Start(t, llmtest.Answer("Hi"))
	ask(two, "m")
	require.Contains(t, fieldsOf(t, one.Requests()[2]), "stream_options")
	require.Contains(t, fieldsOf(t, two.Requests()[0]), "stream_options")
}

func TestSeveralParametersAreOmittedOneAfterAnother(t *testing.T) {
	refuses := parameterErrors["an old OpenAI"]
	model := llmtest.Start(t, refuses("stream_options"), refuses("user"), refuses("max_tokens"), refuses("max_completion_tokens"), llmtest.Answer("Hi"))
	to := target(t, model)
	to.Settings, to.MaxOutput = event.RequestSettings{Labels: map[string]string{"user": "u-17"}}, 50
	_, err := to.Stream(within(t), hello, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"messages", "model", "stream"}, fieldsOf(t, model.Requests()[4]))
}

func TestAServerThatRefusesTheSameParameterAgainIsNotAskedForEver(t *testing.T) {
	refuses := parameterErrors["an old OpenAI"]("stream_options")
	model := llmtest.Start(t, refuses, refuses)
	_, err := target(t, model).Stream(within(t), hello, nil)
	requireKind(t, llm.KindBadRequest, err)
	require.Len(t, model.Requests(), 2)
}

func TestAParameterOfASettingIsNotOmitted(t *testing.T) {
	for name, test := range map[string]struct {
		settings event.RequestSettings
		field    string
		message  string
		want     string
	}{
		"a temperature": {event.RequestSettings{Temperature: new(0.3)}, "temperature",
			"'temperature' does not support 0.3 with this model. Only the default (1) value is supported.", "--temperature"},
		"a temperature out of range": {event.RequestSettings{Temperature: new(1.9)}, "temperature", "temperature: range: 0..1", "--temperature"},
		"parallel calls":             {event.RequestSettings{ParallelToolCalls: new(false)}, "parallel_tool_calls", "Unsupported parameter: parallel_tool_calls", "--parallel-tool-calls"},
		"a tool choice":              {event.RequestSettings{ToolChoice: &event.ToolChoice{Mode: "required"}}, "tool_choice", "tool_choice is not supported", "--tool-choice"},
		"an effort":                  {event.RequestSettings{ReasoningEffort: "low"}, "reasoning_effort", "Unrecognized request argument supplied: reasoning_effort", "--reasoning-effort"},
		"stop sequences":             {event.RequestSettings{Stop: []string{"x"}}, "stop", "Unknown parameter: 'stop'", "--stop"},
		"an extra field":             {event.RequestSettings{Extra: event.Object(`{"store":true}`)}, "store", "Unknown parameter: 'store'", "--extra"},
		"a limit in an extra field":  {event.RequestSettings{Extra: event.Object(`{"max_tokens":9}`)}, "max_tokens", "Unsupported parameter: 'max_tokens'", "--extra"},
		"a limit that is too large":  {event.RequestSettings{MaxTokens: new(999999)}, "max_tokens", "max_tokens is too large: 999999", "--max-tokens"},
	} {
		t.Run(name, func(t *testing.T) {
			model := llmtest.Start(t, llmtest.Error(400, "invalid_request_error", test.message))
			to := target(t, model)
			to.Settings, to.Tools = test.settings, tools
			_, err := to.Stream(within(t), hello, nil)
			failed := requireKind(t, llm.KindBadRequest, err)
			require.ErrorContains(t, err, test.field+" comes from the settings: change it with starter set request "+test.want)
			require.Empty(t, suspects(failed), "the error has another reason")
		})
	}
}

func TestALimitOfASettingIsRenamed(t *testing.T) {
	model := llmtest.Start(t, llmtest.Error(400, "invalid_request_error", "Use 'max_completion_tokens' instead of max_tokens."), llmtest.Answer("Hi"))
	to := target(t, model)
	to.Settings = event.RequestSettings{MaxTokens: new(70)}
	_, err := to.Stream(within(t), hello, nil)
	require.NoError(t, err)
	require.Contains(t, string(model.Requests()[1].Body), `"max_completion_tokens":70`)

	back := llmtest.Start(t, llmtest.Error(400, "invalid_request_error", "unknown field `max_completion_tokens`"), llmtest.Answer("Hi"))
	to = resolve(t, reducer.ProviderConfig{ProviderID: "openai", Model: "o3-mini", BaseURL: back.URL})
	to.Settings = event.RequestSettings{MaxTokens: new(70)}
	_, err = to.Stream(within(t), hello, nil)
	require.NoError(t, err)
	require.Contains(t, string(back.Requests()[1].Body), `"max_tokens":70`)
}

func TestALimitOfABudgetIsLowered(t *testing.T) {
	for name, message := range map[string]string{
		"Anthropic": "max_tokens: 4096 > 1024, which is the maximum allowed number of output tokens for small",
		"OpenAI":    "max_tokens is too large: 4096. This model supports at most 1024 completion tokens, whereas you provided 4096.",
	} {
		t.Run(name, func(t *testing.T) {
			model := llmtest.Start(t, llmtest.Error(400, "invalid_request_error", message), llmtest.Answer("Hi"))
			to := target(t, model)
			to.MaxOutput = 4096
			result, err := to.Stream(within(t), hello, nil)
			require.NoError(t, err)
			require.Contains(t, result.Quirks, "output_limit_lowered")
			require.Equal(t, 1024, model.Requests()[1].OutputLimit())
		})
	}
	model := llmtest.Start(t, llmtest.Error(400, "invalid_request_error", "max_tokens is invalid"))
	to := target(t, model)
	to.MaxOutput = 4096
	_, err := to.Stream(within(t), hello, nil)
	require.Error(t, err)
	require.NotContains(t, err.Error(), "starter set request", "no setting has the limit")
}

func TestAnEmptyAnswerIsAFailure(t *testing.T) {
	for name, delta := range map[string]string{"no text": `{"content":""}`, "a blank text": `{"content":"\n\n"}`, "only reasoning": `{"reasoning_content":"Hm"}`} {
		t.Run(name, func(t *testing.T) {
			step := llmtest.Raw(sse, llmtest.Chunk(delta, "stop"), llmtest.Done)
			_, err := target(t, llmtest.Start(t, step)).Stream(within(t), hello, nil)
			require.True(t, requireKind(t, llm.KindTruncated, err).Retryable())
			_, err = target(t, llmtest.Start(t, llmtest.Raw(sse, llmtest.Chunk(delta, "length"), llmtest.Done))).Stream(within(t), hello, nil)
			require.False(t, requireKind(t, llm.KindInvalidAnswer, err).Retryable())
			require.ErrorContains(t, err, "raise maxTokens")

			called := []reducer.Message{
				{Role: reducer.RoleUser, Content: "Run it"},
				{Role: reducer.RoleAssistant, ToolCalls: []reducer.ToolCall{{ID: "c1", Name: "run", Arguments: "{}"}}},
				{Role: reducer.RoleTool, ToolCallID: "c1", Content: "done"},
			}
			to := target(t, llmtest.Start(t, step))
			to.Tools = []llm.Tool{{Name: "run"}}
			_, err = to.Stream(within(t), called, nil)
			require.NoError(t, err, "after the results of tools, a model may have nothing to add")
		})
	}
}

func TestAKeywordOfAToolSchemaIsOmitted(t *testing.T) {
	schema := event.Object(`{"type":"object","properties":{"format":{"type":"string","format":"uri"},"list":{"type":"array","uniqueItems":true,"items":{"type":"integer"}}},"additionalProperties":false}`)
	for keyword, message := range map[string]string{
		"uniqueItems":          "Invalid schema for function 'run': In context=('properties', 'list'), 'uniqueItems' is not permitted.",
		"additionalProperties": `Invalid JSON payload received. Unknown name "additionalProperties" at 'tools[0].function_declarations[0].parameters': Cannot find field.`,
		"format":               "tools.0.function.parameters: unsupported keyword format",
	} {
		t.Run(keyword, func(t *testing.T) {
			model := llmtest.Start(t, llmtest.Error(400, "invalid_request_error", message), llmtest.Answer("Hi"))
			to := target(t, model)
			to.Tools = []llm.Tool{{Name: "run", Parameters: schema}}
			_, err := to.Stream(within(t), hello, nil)
			require.NoError(t, err)
			before, after := string(model.Requests()[0].Body), string(model.Requests()[1].Body)
			require.Contains(t, after, `"properties":{"format":{`, "the name of an argument is no keyword")
			require.Less(t, strings.Count(after, fmt.Sprintf("%q:", keyword)), strings.Count(before, fmt.Sprintf("%q:", keyword)))
		})
	}
}

func TestLessonsAreBounded(t *testing.T) {
	adapter := llm.New(llm.Options{})
	for n := range 3000 {
		adapter.Remember("http://model.example/v1", fmt.Sprint("m", n), "-stream_options")
	}
	require.LessOrEqual(t, adapter.Remembered(), 1000)
}

func TestAChatTemplateThatRefusesRolesGetsOtherMessages(t *testing.T) {
	briefly := system("Be brief.")
	for message, c := range map[string]struct {
		messages []reducer.Message
		want     []string
	}{
		"Jinja Exception: System role not supported":                                {[]reducer.Message{briefly, user("Hi")}, []string{"user: Be brief.\n\nHi"}},
		"Value is not callable: null: Only user and assistant roles are supported!": {[]reducer.Message{briefly, user("Hi")}, []string{"user: Be brief.\n\nHi"}},
		"Conversation roles must alternate user/assistant/user/assistant/...":       {[]reducer.Message{briefly, user("Hi"), user("You?")}, []string{"system: Be brief.", "user: Hi\n\nYou?"}},
		"After the optional system message, conversation roles must alternate user and assistant roles except for tool calls and results.": {
			[]reducer.Message{user("Hi"), user("You?")}, []string{"user: Hi\n\nYou?"}},
	} {
		for _, status := range []int{400, 500} {
			t.Run(fmt.Sprint(status, " ", message), func(t *testing.T) {
				model := llmtest.Start(t, llmtest.Error(status, "", message), llmtest.Answer("Hello"), llmtest.Answer("Hello"))
				adapter := llm.New(llm.Options{AllowLoopback: true})
				for range 2 {
					to, err := adapter.Resolve(reducer.ProviderConfig{ProviderID: "scripted", Model: "m", BaseURL: model.URL})
					require.NoError(t, err)
					result, err := to.Stream(within(t), c.messages, nil)
					require.NoError(t, err)
					require.Equal(t, "Hello", result.Text)
					require.Equal(t, []string{"messages_adapted"}, result.Quirks)
				}
				requests := model.Requests()
				require.Len(t, requests, 3, "the second turn knows the template")
				for _, request := range requests[1:] {
					require.Equal(t, c.want, lines(request.Messages))
				}
			})
		}
	}
}
