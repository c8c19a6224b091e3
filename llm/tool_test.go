package llm_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/baseurl"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// toolFields sends a request with tools and returns its fields that concern them.
func toolFields(t *testing.T, config reducer.ProviderConfig, settings event.RequestSettings, offered ...llm.Tool) map[string]string {
	t.Helper()
	model := llmtest.Start(t, llmtest.Answer("ok"))
	to := withTools(t, model, config)
	to.Settings = settings
	if offered != nil {
		to.Tools = offered
	}
	_, err := to.Stream(within(t), hello, nil)
	require.NoError(t, err)
	var sent map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(model.Requests()[0].Body, &sent))
	found := map[string]string{}
	for _, name := range []string{"tools", "tool_choice", "parallel_tool_calls"} {
		if sent[name] != nil {
			found[name] = string(sent[name])
		}
	}
	return found
}

func TestToolsAreOffered(t *testing.T) {
	require.Equal(t, map[string]string{
		"tools": `[{"function":{"description":"Look at the sky","name":"weather","parameters":{"type":"object","properties":{"city":{"type":"string"}}}},"type":"function"},` +
			`{"function":{"name":"time","parameters":{"type":"object","properties":{}}},"type":"function"}]`,
	}, toolFields(t, reducer.ProviderConfig{}, event.RequestSettings{}))
}

func TestEachProviderReceivesTheToolSettingsThatItSupports(t *testing.T) {
	const named = `{"function":{"name":"time"},"type":"function"}`
	isOff := event.Object(`{"thinking":{"type":"disabled"}}`)
	// choices are those sent for auto, none, required and a named tool; "" for none, "-" for no tools
	// at all, "only" for required with only the named tool.
	everything := [4]string{`"auto"`, `"none"`, `"required"`, named}
	for name, test := range map[string]struct {
		provider, model string
		extra           event.Object
		choices         [4]string
		parallel        bool
	}{
		"another provider":           {"", "", nil, everything, true},
		"openai":                     {"openai", "", nil, everything, true},
		"openai with a newer model":  {"openai", "gpt-5.2", nil, everything, true},
		"a model of the o series":    {"openai", "o4-mini", nil, everything, false},
		"openrouter":                 {"openrouter", "", nil, everything, true},
		"groq":                       {"groq", "", nil, everything, true},
		"cerebras":                   {"cerebras", "", nil, everything, true},
		"together":                   {"together", "", nil, everything, false},
		"mistral":                    {"mistral", "", nil, everything, true},
		"deepseek":                   {"deepseek", "deepseek-reasoner", nil, [4]string{`"auto"`, `"none"`, "", ""}, false},
		"deepseek without reasoning": {"deepseek", "deepseek-chat", isOff, everything, false},
		"gemini":                     {"gemini", "gemini-3-pro", nil, everything, false},
		"anthropic":                  {"anthropic", "", nil, everything, true},
		"ollama":                     {"ollama", "", nil, [4]string{"", "-", "", ""}, false},
		"vllm":                       {"vllm", "", nil, everything, true},
		"llamacpp":                   {"llamacpp", "", nil, [4]string{`"auto"`, `"none"`, `"required"`, "only"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			for i, choice := range []event.ToolChoice{{Mode: "auto"}, {Mode: "none"}, {Mode: "required"}, {Name: "time"}} {
				sent := toolFields(t, reducer.ProviderConfig{ProviderID: test.provider, Model: test.model},
					event.RequestSettings{ToolChoice: &choice, ParallelToolCalls: new(false), Extra: test.extra})
				want := test.choices[i]
				if want == "-" {
					require.Empty(t, sent)
					continue
				}
				if want == "only" {
					require.NotContains(t, sent["tools"], "weather")
					want = `"required"`
				}
				require.Contains(t, sent["tools"], `"time"`)
				require.Equal(t, want, sent["tool_choice"])
				require.Equal(t, test.parallel, sent["parallel_tool_calls"] == "false")
			}
		})
	}
}

func TestToolsKeepTheLimitsOfAProvider(t *testing.T) {
	long := llm.Tool{Name: "9-lives", Description: strings.Repeat("é", 1025), Parameters: event.Object(`{"additionalProperties":false,"properties":{"b":{"type":["integer","null"]},"a":{}}}`)}
	required := event.RequestSettings{ToolChoice: &event.ToolChoice{Name: "9-lives"}}

	sent := toolFields(t, reducer.ProviderConfig{ProviderID: "openai"}, required, long)
	require.Contains(t, sent["tools"], `"description":"`+strings.Repeat("é", 1023)+`…"`)
	require.Contains(t, sent["tools"], `"name":"9-lives","parameters":{"type":"object","additionalProperties":false,"properties":{"b":{"type":["integer","null"]},"a":{}}}`)

	sent = toolFields(t, reducer.ProviderConfig{ProviderID: "gemini"}, required, long)
	require.Contains(t, sent["tools"], strings.Repeat("é", 1025))
	require.Contains(t, sent["tools"], `"name":"_9-lives","parameters":{"type":"object","properties":{"b":{"nullable":true,"type":"integer"},"a":{}}}`)
	require.Contains(t, sent["tool_choice"], `"_9-lives"`)

	model := llmtest.Start(t, llmtest.Calls(llmtest.Call{ID: "c1", Name: "_9-lives"}), llmtest.Answer("ok"))
	to := withTools(t, model, reducer.ProviderConfig{ProviderID: "gemini", Model: "gemini-2.5-flash"})
	to.Tools = []llm.Tool{long}
	result, err := to.Stream(within(t), hello, nil)
	require.NoError(t, err)
	require.Equal(t, "c1:9-lives()", format(result.Calls), "a call has the name of the tool")
	_, err = to.Stream(within(t), append(hello, assistant("", call("c1", "9-lives"))), nil)
	require.NoError(t, err)
	require.Contains(t, string(model.Requests()[1].Body), `"function":{"name":"_9-lives","arguments":`)
}

func TestInvalidToolsAreNotSent(t *testing.T) {
	for name, test := range map[string]struct {
		tools  []llm.Tool
		choice string
		says   string
	}{
		"an invalid name":              {[]llm.Tool{{Name: "files/read"}}, "", `the name of the tool "files/read" is invalid (want 1 to 64 of A-Z a-z 0-9 _ -)`},
		"no name":                      {[]llm.Tool{{}}, "", `the name of the tool "" is invalid`},
		"a name twice":                 {[]llm.Tool{{Name: "a"}, {Name: "a"}}, "", `the tool "a" is offered twice`},
		"no schema":                    {[]llm.Tool{{Name: "a", Parameters: event.Object(`[]`)}}, "", `the parameters of the tool "a" are not a JSON Schema (want an object)`},
		"a choice that is not offered": {[]llm.Tool{{Name: "a"}, {Name: "b"}}, "c", `toolChoice names the tool "c", which is not offered (want one of a, b)`},
	} {
		t.Run(name, func(t *testing.T) {
			to := withTools(t, llmtest.Start(t), reducer.ProviderConfig{})
			to.Tools = test.tools
			if test.choice != "" {
				to.Settings.ToolChoice = &event.ToolChoice{Name: test.choice}
			}
			_, err := to.Stream(within(t), hello, nil)
			requireKind(t, llm.KindBadRequest, err)
			require.ErrorContains(t, err, test.says)
			require.ErrorContains(t, to.Check(), test.says)
		})
	}
}

func TestSchemasAreAdapted(t *testing.T) {
	deep := strings.Repeat(`{"type":"array","items":`, 100) + "{}" + strings.Repeat("}", 100)
	wide := `{"properties":{"a":{"$ref":"#/$defs/l0"}},"$defs":{`
	for i := range 30 {
		if i > 0 {
			wide += ","
		}
		next := `"l` + string(rune('0'+(i+1)/10)) + string(rune('0'+(i+1)%10)) + `"`
		name := `"l` + string(rune('0'+i/10)) + string(rune('0'+i%10)) + `"`
		ref := `{"$ref":"#/$defs/` + strings.Trim(next, `"`) + `"}`
		wide += name + `:{"type":"object","properties":{"x":` + ref + `,"y":` + ref + `}}`
	}
	wide = strings.Replace(wide+"}}", "#/$defs/l0\"", "#/$defs/l00\"", 1)
	for name, test := range map[string]struct{ schema, openai, gemini string }{
		"no arguments":           {``, `{"type":"object","properties":{}}`, ``},
		"no type":                {`{"properties":{"b":{"type":"string"},"a":{"type":"number"}}}`, `{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"number"}}}`, `{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"number"}}}`},
		"an array without items": {`{"properties":{"a":{"type":"array"}}}`, `{"type":"object","properties":{"a":{"type":"array","items":{}}}}`, `{"type":"object","properties":{"a":{"type":"array","items":{}}}}`},
		"a combination at the top": {
			`{"anyOf":[{"properties":{"a":{}},"required":["a"]},{"$ref":"#/$defs/b"}],"$defs":{"b":{"properties":{"b":{}}}}}`,
			`{"type":"object","$defs":{"b":{"properties":{"b":{}}}},"properties":{"a":{},"b":{}}}`, `{"type":"object","properties":{"a":{},"b":{}}}`,
		},
		"all of several": {
			`{"allOf":[{"properties":{"a":{}},"required":["a"]},{"properties":{"b":{}},"required":["b"]}]}`,
			`{"type":"object","properties":{"a":{},"b":{}},"required":["a","b"]}`, `{"type":"object","properties":{"a":{},"b":{}},"required":["a","b"]}`,
		},
		"fields that Gemini rejects": {
			`{"$schema":"x","additionalProperties":false,"properties":{"a":{"const":"x"},"b":{"oneOf":[{"type":"string","format":"uri"},{"type":"null"}]},"c":{"enum":[1,2],"type":"integer","exclusiveMinimum":0},"d":true},"required":["a","z"]}`,
			`{"type":"object","$schema":"x","additionalProperties":false,"properties":{"a":{"const":"x"},"b":{"oneOf":[{"type":"string","format":"uri"},{"type":"null"}]},"c":{"enum":[1,2],"type":"integer","exclusiveMinimum":0},"d":true},"required":["a","z"]}`,
			`{"type":"object","properties":{"a":{"enum":["x"],"type":"string"},"b":{"anyOf":[{"type":"string"},{"type":"null"}]},"c":{"type":"integer"},"d":{}},"required":["a"]}`,
		},
		"a reference to itself": {
			`{"properties":{"next":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"object","properties":{"next":{"$ref":"#/$defs/n"}}}}}`,
			`{"type":"object","properties":{"next":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"object","properties":{"next":{"$ref":"#/$defs/n"}}}}}`,
			`{"type":"object","properties":{"next":{"type":"object","properties":{"next":{"type":"object"}}}}}`,
		},
		"a deep one":             {`{"properties":{"a":` + deep + `}}`, "bounded", "bounded"},
		"references that double": {wide, "bounded", "bounded"},
	} {
		t.Run(name, func(t *testing.T) {
			for provider, want := range map[string]string{"openai": test.openai, "gemini": test.gemini} {
				sent := toolFields(t, reducer.ProviderConfig{ProviderID: provider}, event.RequestSettings{}, llm.Tool{Name: "f", Parameters: event.Object(test.schema)})["tools"]
				if want == "bounded" {
					require.Less(t, len(sent), 1<<20)
					continue
				}
				if want != "" {
					want = `,"parameters":` + want
				}
				require.Equal(t, `[{"function":{"name":"f"`+want+`},"type":"function"}]`, sent, provider)
			}
		})
	}
}

func TestAModelWithoutToolsIsOfferedNone(t *testing.T) {
	model := llmtest.Start(t, llmtest.Answer("ok").Offered())
	to, err := llm.New(llm.Options{Providers: []llm.Provider{{ID: "house", BaseURL: baseurl.MustParse(model.URL), NoTools: true}}}).
		Resolve(reducer.ProviderConfig{ProviderID: "house", Model: "m"})
	require.NoError(t, err)
	to.Tools = tools
	_, err = to.Stream(within(t), []reducer.Message{user("Go"), assistant("", call("c1", "run")), toolResult("c1", "one")}, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"user: Go", `assistant: [Called the tool run with {"x":1}]`, "user: [The tool run returned: one]"}, lines(model.Requests()[0].Messages))
}

func TestToolsCountAsInput(t *testing.T) {
	model := llmtest.Start(t, llmtest.Answer("ok").NoUsage(), llmtest.Answer("ok").NoUsage())
	without, err := target(t, model).Stream(within(t), hello, nil)
	require.NoError(t, err)
	with, err := withTools(t, model, reducer.ProviderConfig{}).Stream(within(t), hello, nil)
	require.NoError(t, err)
	require.Greater(t, with.InputTokens, without.InputTokens+10)
}

func TestCallsAreSentAsSuchIfToolsAreOffered(t *testing.T) {
	const asText = `assistant: [Called the tool run with {"x":1}]`
	interrupted := []reducer.Message{user("Go"), assistant("Right.", call("call_1", "run")), toolResult("call_1", "one"), user("Stop")}
	repeated := []reducer.Message{user("Go"), assistant("", call("c1", "run")), toolResult("c1", "one"), assistant("", call("c1", "run")), toolResult("c1", "two")}
	for name, test := range map[string]struct {
		provider, model string
		messages        []reducer.Message
		want            []string
	}{
		"anthropic": {"anthropic", "", interrupted, []string{"user: Go", `assistant: Right.{call_1=run({"x":1})}`, "tool: one for call_1", "user: Stop"}},
		"mistral, with short ids and an answer before the user": {"mistral", "", interrupted, []string{
			"user: Go", `assistant: Right.{rwU906w5h=run({"x":1})}`, "tool: one for rwU906w5h", "assistant: (interrupted)", "user: Stop",
		}},
		"mistral, with an id of its own": {"mistral", "", []reducer.Message{user("Go"), assistant("", call("AbCdEfGh1", "run")), toolResult("AbCdEfGh1", "one")}, []string{
			"user: Go", `assistant: {AbCdEfGh1=run({"x":1})}`, "tool: one for AbCdEfGh1",
		}},
		"deepseek, without its reasoning": {"deepseek", "", repeated[:3], []string{"user: Go", asText, "user: [The tool run returned: one]"}},
		"gemini 3, without its signature": {"gemini", "gemini-3-pro", repeated[:3], []string{"user: Go", asText, "user: [The tool run returned: one]"}},
		"gemini 2, which has none":        {"gemini", "gemini-2.5-flash", repeated[:3], []string{"user: Go", `assistant: {c1=run({"x":1})}`, "tool: one for c1"}},
		"with a repeated id":              {"anthropic", "", repeated, []string{"user: Go", `assistant: {c1=run({"x":1})}`, "tool: one for c1", `assistant: {faf5c41d8876fffd280866d9e463cb67=run({"x":1})}`, "tool: two for faf5c41d8876fffd280866d9e463cb67"}},
		"gemini, after an answer":         {"gemini", "gemini-2.5-flash", []reducer.Message{assistant("Welcome"), assistant("", call("c1", "run"))}, []string{"user: (The conversation begins with the assistant.)", `assistant: Welcome{c1=run({"x":1})}`, "tool: interrupted, outcome unknown for c1"}},
	} {
		t.Run(name, func(t *testing.T) {
			model := llmtest.Start(t, llmtest.Answer("ok"))
			to := withTools(t, model, reducer.ProviderConfig{ProviderID: test.provider, Model: test.model})
			_, err := to.Stream(within(t), test.messages, nil)
			require.NoError(t, err)
			require.Equal(t, test.want, lines(model.Requests()[0].Messages))
		})
	}
}

func TestAConversationEndsWithTheUserWhereTheProviderRequiresIt(t *testing.T) {
	for provider, isRequired := range map[string]bool{"anthropic": true, "deepseek": true, "gemini": true, "mistral": true, "openai": false, "vllm": false} {
		t.Run(provider, func(t *testing.T) {
			model := llmtest.Start(t, llmtest.Answer("ok"), llmtest.Answer("ok"))
			to := withTools(t, model, reducer.ProviderConfig{ProviderID: provider})
			messages := []reducer.Message{user("Hi"), assistant("Yes")}
			want := []string{"user: Hi", "assistant: Yes"}
			if isRequired {
				want = append(want, "user: (Continue.)")
			}
			_, err := to.Stream(within(t), messages, nil)
			require.NoError(t, err)
			require.Equal(t, want, lines(model.Requests()[0].Messages))

			_, err = to.Stream(within(t), append(messages, user("And?")), nil)
			require.NoError(t, err)
			require.Equal(t, []string{"user: Hi", "assistant: Yes", "user: And?"}, lines(model.Requests()[1].Messages), "it is not kept")
		})
	}
}
