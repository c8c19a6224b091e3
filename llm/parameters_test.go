package llm_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// sentTo returns the fields of a request with settings, without the messages, the model and the
// fields of a stream.
func sentTo(t *testing.T, cfg reducer.ProviderConfig, settings event.RequestSettings) (string, llmtest.Request) {
	t.Helper()
	model := llmtest.Start(t, llmtest.Answer("{}"))
	cfg.BaseURL = model.URL
	to := resolve(t, cfg)
	to.Settings = settings
	_, err := to.Stream(within(t), hello, nil)
	require.NoError(t, err)
	request := model.Requests()[0]
	var fields map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(request.Body, &fields), "%s", request.Body)
	for _, name := range []string{"messages", "model", "stream", "stream_options"} {
		delete(fields, name)
	}
	sent, err := json.Marshal(fields)
	require.NoError(t, err)
	return string(sent), request
}

func TestEachSettingIsSent(t *testing.T) {
	for name, test := range map[string]struct {
		settings event.RequestSettings
		want     string
	}{
		"none":                 {event.RequestSettings{}, `{}`},
		"temperature":          {event.RequestSettings{Temperature: new(0.7)}, `{"temperature":0.7}`},
		"a zero temperature":   {event.RequestSettings{Temperature: new(0.0)}, `{"temperature":0}`},
		"maxTokens":            {event.RequestSettings{MaxTokens: new(5)}, `{"max_tokens":5}`},
		"topP":                 {event.RequestSettings{TopP: new(0.9)}, `{"top_p":0.9}`},
		"a zero topP":          {event.RequestSettings{TopP: new(0.0)}, `{"top_p":0}`},
		"stop":                 {event.RequestSettings{Stop: []string{"<END>", "\n"}}, `{"stop":["<END>","\n"]}`},
		"seed":                 {event.RequestSettings{Seed: new(int64(9007199254740993))}, `{"seed":9007199254740993}`},
		"a zero seed":          {event.RequestSettings{Seed: new(int64(0))}, `{"seed":0}`},
		"penalties":            {event.RequestSettings{FrequencyPenalty: new(-1.5), PresencePenalty: new(2.0)}, `{"frequency_penalty":-1.5,"presence_penalty":2}`},
		"zero penalties":       {event.RequestSettings{FrequencyPenalty: new(0.0), PresencePenalty: new(0.0)}, `{"frequency_penalty":0,"presence_penalty":0}`},
		"reasoningEffort":      {event.RequestSettings{ReasoningEffort: "high"}, `{"reasoning_effort":"high"}`},
		"recorded reasoning":   {event.RequestSettings{Reasoning: event.ReasoningFull}, `{}`},
		"no tools are offered": {event.RequestSettings{ToolChoice: &event.ToolChoice{Mode: "auto"}, ParallelToolCalls: new(true)}, `{}`},
		"text":                 {event.RequestSettings{ResponseFormat: &event.ResponseFormat{Type: event.FormatText}}, `{"response_format":{"type":"text"}}`},
		"any JSON":             {event.RequestSettings{ResponseFormat: &event.ResponseFormat{Type: event.FormatJSONObject}}, `{"response_format":{"type":"json_object"}}`},
		"a schema": {
			event.RequestSettings{ResponseFormat: &event.ResponseFormat{Type: event.FormatJSONSchema, Schema: event.Object(`{"title":"<x>"}`)}},
			`{"response_format":{"json_schema":{"name":"answer","schema":{"title":"<x>"},"strict":false},"type":"json_schema"}}`,
		},
		"a strict schema with a name": {
			event.RequestSettings{ResponseFormat: &event.ResponseFormat{Type: event.FormatJSONSchema, Name: "n", Schema: event.Object(`{}`), Strict: true}},
			`{"response_format":{"json_schema":{"name":"n","schema":{},"strict":true},"type":"json_schema"}}`,
		},
		"extra": {
			event.RequestSettings{Extra: event.Object(`{"chat_template_kwargs":{"enable_thinking":false},"top_k":40,"x":null}`)},
			`{"chat_template_kwargs":{"enable_thinking":false},"top_k":40,"x":null}`,
		},
		"extra overrides the others": {
			event.RequestSettings{Temperature: new(0.7), Extra: event.Object(`{"temperature":3}`)}, `{"temperature":3}`,
		},
		"extra text that looks like the body": {
			event.RequestSettings{Extra: event.Object(`{"x":"\"messages\":null"}`)}, `{"x":"\"messages\":null"}`,
		},
		"labels": {event.RequestSettings{Labels: map[string]string{"user": "u-17", "team": "a"}}, `{"user":"u-17"}`},
	} {
		t.Run(name, func(t *testing.T) {
			sent, request := sentTo(t, reducer.ProviderConfig{}, test.settings)
			require.JSONEq(t, test.want, sent)
			require.Equal(t, "model-1", request.Model)
			require.True(t, request.Stream)
			require.Equal(t, "Hello", request.LastUser())
		})
	}
}

func TestSettingsOverrideThoseOfTheProviderConfig(t *testing.T) {
	cfg := reducer.ProviderConfig{Temperature: new(0.7), MaxTokens: new(100)}
	sent, _ := sentTo(t, cfg, event.RequestSettings{})
	require.JSONEq(t, `{"temperature":0.7,"max_tokens":100}`, sent)
	sent, _ = sentTo(t, cfg, event.RequestSettings{Temperature: new(0.0)})
	require.JSONEq(t, `{"temperature":0,"max_tokens":100}`, sent)
}

// all sets each setting that providers treat differently.
var all = event.RequestSettings{
	Temperature: new(0.0), MaxTokens: new(5), TopP: new(0.5), Stop: []string{"x"}, Seed: new(int64(7)),
	FrequencyPenalty: new(1.0), PresencePenalty: new(1.0), ReasoningEffort: "low",
	ResponseFormat: &event.ResponseFormat{Type: event.FormatJSONSchema, Schema: event.Object(`{}`)},
	Labels:         map[string]string{"user": "u", "team": "t"},
}

func TestProvidersReceiveTheSettingsThatTheySupport(t *testing.T) {
	const schema = `"response_format":{"json_schema":{"name":"answer","schema":{},"strict":false},"type":"json_schema"}`
	const object = `"response_format":{"type":"json_object"}`
	const sampling = `"temperature":0,"top_p":0.5,"stop":["x"],`
	const penalties = `"frequency_penalty":1,"presence_penalty":1,`
	const rest = `"max_tokens":5,"reasoning_effort":"low",`
	none, stored := all, all
	none.ReasoningEffort = event.ReasoningNone
	stored.Extra = event.Object(`{"store":true}`)
	for name, test := range map[string]struct {
		provider, model string
		settings        event.RequestSettings
		want            string
	}{
		"another provider": {settings: all, want: sampling + penalties + rest + schema + `,"seed":7,"user":"u"`},
		"openai":           {provider: "openai", settings: all, want: sampling + penalties + rest + schema + `,"seed":7,"user":"u"`},
		"openai that stores answers": {provider: "openai", settings: stored,
			want: sampling + penalties + rest + schema + `,"seed":7,"user":"u","metadata":{"team":"t"},"store":true`},
		"openrouter": {provider: "openrouter", settings: all, want: sampling + penalties + rest + schema + `,"seed":7,"user":"u","metadata":{"team":"t"}`},
		"mistral":    {provider: "mistral", settings: all, want: sampling + penalties + rest + schema + `,"random_seed":7,"metadata":{"team":"t"}`},
		"cerebras":   {provider: "cerebras", settings: all, want: sampling + rest + schema + `,"seed":7,"user":"u"`},
		"gemini":     {provider: "gemini", settings: all, want: sampling + rest + schema + `,"user":"u"`},
		"deepseek":   {provider: "deepseek", settings: all, want: sampling + penalties + rest + object + `,"seed":7,"user":"u"`},
		"anthropic":  {provider: "anthropic", settings: all, want: sampling + penalties + rest + object + `,"seed":7,"user":"u"`},
		"a model that reasons": {model: "openai/gpt-5-mini", settings: all,
			want: `"max_completion_tokens":5,"reasoning_effort":"low",` + schema + `,"seed":7,"user":"u"`},
		"a model that reasons, without reasoning": {model: "gpt-5.2", settings: none,
			want: sampling + penalties + `"max_completion_tokens":5,"reasoning_effort":"none",` + schema + `,"seed":7,"user":"u"`},
	} {
		t.Run(name, func(t *testing.T) {
			sent, request := sentTo(t, reducer.ProviderConfig{ProviderID: test.provider, Model: test.model}, test.settings)
			require.JSONEq(t, `{`+test.want+`}`, sent)
			require.Equal(t, test.provider == "mistral", request.StreamOptions == nil)
		})
	}
}

func TestAProviderWithoutJSONSchemaReceivesTheSchemaAsText(t *testing.T) {
	format := event.RequestSettings{ResponseFormat: &event.ResponseFormat{
		Type: event.FormatJSONSchema, Schema: event.Object(`{"type":"object"}`),
	}}
	const text = "Answer with JSON that matches this JSON Schema, and with nothing else:\n" + `{"type":"object"}`
	_, request := sentTo(t, reducer.ProviderConfig{ProviderID: "deepseek"}, format)
	require.Len(t, request.Messages, 2)
	require.Equal(t, text, request.Messages[0].Content)

	model := llmtest.Start(t, llmtest.Answer("{}"))
	to := resolve(t, reducer.ProviderConfig{ProviderID: "anthropic", BaseURL: model.URL})
	to.Settings = format
	messages := []reducer.Message{{Role: reducer.RoleSystem, Content: "Be brief."}, hello[0]}
	_, err := to.Stream(within(t), messages, nil)
	require.NoError(t, err)
	request = model.Requests()[0]
	require.Len(t, request.Messages, 2)
	require.Equal(t, "Be brief.\n\n"+text, request.Messages[0].Content)
	require.Equal(t, "Be brief.", messages[0].Content, "the messages are not modified")
}
