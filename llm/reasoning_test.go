package llm_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/baseurl"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// chunks returns an answer of the given deltas.
func chunks(deltas ...string) llmtest.Step {
	var pieces []string
	for _, delta := range deltas {
		pieces = append(pieces, llmtest.Chunk(delta, ""))
	}
	return llmtest.Raw("text/event-stream", append(pieces, llmtest.Chunk(`{}`, "stop"), llmtest.Done)...)
}

// reasoningForms are the forms in which servers stream reasoning, each with the state of the
// answer.
var reasoningForms = map[string]struct {
	provider string
	deltas   []string
	state    string // "" for none
}{
	"reasoning_content, as DeepSeek, xAI and vLLM": {
		"deepseek", []string{
			`{"role":"assistant","content":null,"reasoning_content":"Hm, "}`, `{"content":null,"reasoning_content":"yes"}`,
			`{"content":"Hel","reasoning_content":null}`, `{"content":"lo"}`,
		}, "",
	},
	"reasoning, as Groq and Ollama": {
		"groq", []string{`{"role":"assistant","reasoning":"Hm, "}`, `{"reasoning": "yes","content":""}`, `{"content":"Hel"}`, `{"content":"lo","reasoning":null}`}, "",
	},
	"both names, as vLLM": {
		"vllm", []string{`{"reasoning":"Hm, ","reasoning_content":"Hm, "}`, `{"reasoning":"yes","reasoning_content":"yes"}`, `{"content":"Hello"}`}, "",
	},
	"reasoning_details, as OpenRouter": {
		"openrouter", []string{
			`{"content":"","reasoning":"Hm, ","reasoning_details":[{"type":"reasoning.text","text":"Hm, ","format":"anthropic-claude-v1","index":0}]}`,
			`{"content":"","reasoning":"yes","reasoning_details":[{"type":"reasoning.text","text":"yes","signature":null,"index":0}]}`,
			`{"content":"","reasoning":null,"reasoning_details":[{"type":"reasoning.text","signature":"c2ln<>","index":0}]}`,
			`{"content":"","reasoning_details":[{"type":"reasoning.encrypted","data":"b25l","id":"rs_1","index":0},{"type":"reasoning.encrypted","data":"dHdv","id":"rs_2","index":0}]}`,
			`{"content":"Hello","reasoning":null,"reasoning_details":[]}`,
		},
		`{"reasoning_details":[{"format":"anthropic-claude-v1","index":0,"signature":"c2ln\u003c\u003e","text":"Hm, yes","type":"reasoning.text"},` +
			`{"data":"b25l","id":"rs_1","index":0,"type":"reasoning.encrypted"},{"data":"dHdv","id":"rs_2","index":0,"type":"reasoning.encrypted"}]}`,
	},
	"thinking parts, as Mistral": {
		"mistral", []string{
			`{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm, "}]}]}`,
			`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"yes"}],"closed":true}]}`,
			`{"content":[{"type":"text","text":"Hel"}]}`, `{"content":"lo"}`,
		},
		`{"thinking":[{"closed":true,"thinking":[{"text":"Hm, yes","type":"text"}],"type":"thinking"}]}`,
	},
}

func TestReasoningIsReadInEveryForm(t *testing.T) {
	for name, form := range reasoningForms {
		t.Run(name, func(t *testing.T) {
			model := llmtest.Start(t, chunks(form.deltas...))
			target := resolve(t, reducer.ProviderConfig{ProviderID: form.provider, Model: "m", BaseURL: model.URL})
			var text, reasoning string
			result, err := target.Stream(within(t), hello, func(d llm.Delta) {
				require.NotEmpty(t, d.Text)
				if d.IsReasoning {
					require.Empty(t, text, "reasoning after the text")
					reasoning += d.Text
				} else {
					text += d.Text
				}
			})
			require.NoError(t, err)
			require.Equal(t, []string{"Hello", "Hm, yes"}, []string{text, reasoning})
			require.Equal(t, []string{"Hello", "Hm, yes"}, []string{result.Text, result.Reasoning})
			if form.state == "" {
				require.Nil(t, result.State)
				return
			}
			require.Equal(t, &event.ProviderState{
				ProviderID: form.provider, Model: "m", BaseURL: model.URL, Data: json.RawMessage(form.state),
			}, result.State)
		})
	}
}

func TestThoughtSignaturesOfGeminiAreKept(t *testing.T) {
	model := llmtest.Start(t, chunks(
		`{"role":"assistant","content":"Hello","extra_content":{"google":{"thought_signature":"c2ln+/=="}}}`,
		`{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"dG9vbA=="}}}]}`))
	result, err := withTools(t, model, reducer.ProviderConfig{ProviderID: "gemini"}).Stream(within(t), hello, nil)
	require.NoError(t, err)
	require.Equal(t, `{"extra_content":{"google":{"thought_signature":"c2ln+/=="}},"tool_calls":[{"google":{"thought_signature":"dG9vbA=="}}]}`,
		string(result.State.Data))
}

func TestAnIncompleteAnswerHasNoState(t *testing.T) {
	form := reasoningForms["reasoning_details, as OpenRouter"]
	var pieces []string
	for _, delta := range form.deltas {
		pieces = append(pieces, llmtest.Chunk(delta, ""))
	}
	model := llmtest.Start(t, llmtest.Raw("text/event-stream", pieces...))
	result, err := resolve(t, reducer.ProviderConfig{ProviderID: form.provider, BaseURL: model.URL}).Stream(within(t), hello, nil)
	requireKind(t, llm.KindTruncated, err)
	require.Equal(t, "Hm, yes", result.Reasoning)
	require.Nil(t, result.State)
}

func TestInvalidProviderStateIsDropped(t *testing.T) {
	for name, detail := range map[string]string{
		"too large":     fmt.Sprintf(`{"type":"reasoning.encrypted","data":%q}`, strings.Repeat("A", event.MaxProviderStateBytes)),
		"too deep":      `{"a":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`,
		"named a key":   `{"type":"reasoning.encrypted","apiKey":"x"}`,
		"not an object": `"text"`,
	} {
		t.Run(name, func(t *testing.T) {
			model := llmtest.Start(t, chunks(`{"content":"Hi","reasoning_details":[`+detail+`]}`))
			result, err := resolve(t, reducer.ProviderConfig{ProviderID: "openrouter", BaseURL: model.URL}).Stream(within(t), hello, nil)
			require.NoError(t, err)
			require.Equal(t, "Hi", result.Text)
			require.Nil(t, result.State)
		})
	}
}

func TestThinkTagsAreReasoningIfConfigured(t *testing.T) {
	tests := map[string]struct{ content, text, reasoning string }{
		"at the start":          {"<think>Hm\n</think>\n\nHello", "Hello", "Hm\n"},
		"after blanks":          {"\n <think>Hm</think>Hello", "Hello", "Hm"},
		"and nothing else":      {"<think>Hm", "", "Hm"},
		"and a part of the end": {"<think>Hm</thi", "", "Hm</thi"},
		"empty":                 {"<think>\n\n</think>\n\nHello", "Hello", "\n\n"},
		"later in the answer":   {"Hello <think>Hm</think>", "Hello <think>Hm</think>", ""},
		"twice":                 {"<think>Hm</think>Hello <think>", "Hello <think>", "Hm"},
		"not quite":             {"<thin", "<thin", ""},
		"none":                  {"Hello", "Hello", ""},

		// Chat templates can open the tag in the prompt.
		"an end tag":              {"Let me see. 5 + 2.\n</think>\n\nSeven.", "Seven.", "Let me see. 5 + 2.\n"},
		"an end tag at the start": {"</think>Seven.", "Seven.", ""},
		"an end tag at the end":   {"Hm</think>", "", "Hm"},
		"two end tags":            {"Hm</think>Use </think>.", "Use </think>.", "Hm"},
		"part of an end tag":      {"Hm</thi", "Hm</thi", ""},
		"tags as a subject":       {"Write <think> before </think>.", "Write <think> before </think>.", ""},
	}
	for name, test := range tests {
		for _, size := range []int{1, 3, 100} {
			t.Run(fmt.Sprintf("%s in pieces of %d", name, size), func(t *testing.T) {
				var deltas []string
				for piece := range slices.Chunk([]byte(test.content), size) {
					deltas = append(deltas, fmt.Sprintf(`{"content":%q}`, piece))
				}
				model := llmtest.Start(t, chunks(deltas...), chunks(deltas...))
				for _, isConfigured := range []bool{true, false} {
					target, err := llm.New(llm.Options{Providers: []llm.Provider{
						{ID: "house", BaseURL: baseurl.MustParse(model.URL), ThinkTags: isConfigured},
					}}).Resolve(reducer.ProviderConfig{ProviderID: "house", Model: "m"})
					require.NoError(t, err)
					var streamed strings.Builder
					result, err := target.Stream(within(t), hello, func(d llm.Delta) { streamed.WriteString(d.Text) })
					require.Contains(t, streamed.String(), result.Text, "the text is streamed before its kind is known")
					if isConfigured && test.text == "" {
						requireKind(t, llm.KindTruncated, err)
					} else {
						require.NoError(t, err)
					}
					if isConfigured {
						require.Equal(t, []string{test.text, test.reasoning}, []string{result.Text, result.Reasoning})
					} else {
						require.Equal(t, []string{test.content, ""}, []string{result.Text, result.Reasoning})
					}
				}
			})
		}
	}
}

// stateful returns a message with a state of the target of a config.
func stateful(m reducer.Message, config reducer.ProviderConfig, data string) reducer.Message {
	m.ProviderState = &event.ProviderState{ProviderID: config.ProviderID, Model: config.Model, BaseURL: config.BaseURL, Data: json.RawMessage(data)}
	return m
}

func TestWhatAProviderGaveGoesBackToIt(t *testing.T) {
	const (
		calls    = `"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}},{"id":"c2","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]`
		asText   = `"content":"Yes\n\n[Called the tool f with {\"x\":1}]\n\n[Called the tool f with {\"x\":1}]"`
		details  = `"reasoning_details":[{"b":1.50e3,"a":"\u003c\u0026\u003e\u00e9é"}]`
		signed   = `"extra_content":{"google":{"thought_signature":"m=="}}`
		thinking = `"content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm"}]},{"type":"text","text":"Yes"}]`
	)
	for _, test := range []struct{ provider, data, plain, calling string }{
		{"scripted", `{}`, `"content":"Yes"`, `"content":"Yes",` + calls},
		{"scripted", `{"role":"system","temperature":1}`, `"content":"Yes"`, `"content":"Yes",` + calls},
		{"scripted", `{"reasoning_content":1,"reasoning_details":"","extra_content":[],"thinking":{}}`, `"content":"Yes"`, `"content":"Yes",` + calls},
		{"scripted", `{"reasoning_content":"Hm \u003cb\u003e"}`, `"content":"Yes","reasoning_content":"Hm \u003cb\u003e"`, `"content":"Yes",` + calls + `,"reasoning_content":"Hm \u003cb\u003e"`},
		{"scripted", `{"reasoning":"Hm"}`, `"content":"Yes","reasoning":"Hm"`, `"content":"Yes",` + calls + `,"reasoning":"Hm"`},
		{"scripted", `{"reasoning_text":"Hm"}`, `"content":"Yes","reasoning_text":"Hm"`, `"content":"Yes",` + calls + `,"reasoning_text":"Hm"`},
		{"scripted", `{` + details + `}`, `"content":"Yes",` + details, `"content":"Yes",` + calls + "," + details},
		{"scripted", `{"thinking":[{"type":"thinking","thinking":[{"type":"text","text":"Hm"}]}]}`, thinking, thinking + "," + calls},
		{"scripted", `{` + signed + `,"tool_calls":[{"google":{"thought_signature":"c=="}},null]}`, `"content":"Yes",` + signed,
			`"content":"Yes",` + strings.Replace(calls, `}"}},`, `}"},"extra_content":{"google":{"thought_signature":"c=="}}},`, 1) + "," + signed},
		{"openrouter", `{` + details + `}`, `"content":"Yes",` + details, `"content":"Yes",` + calls + "," + details},
		{"anthropic", `{}`, `"content":"Yes"`, asText},
		{"mistral", `{"thinking":[{"type":"thinking","thinking":[{"type":"text","text":"Hm"}]}]}`, thinking, asText},
	} {
		t.Run(test.provider+" "+test.data, func(t *testing.T) {
			model := llmtest.Start(t, llmtest.Answer("ok"), llmtest.Answer("ok"))
			config := reducer.ProviderConfig{ProviderID: test.provider, Model: "m", BaseURL: model.URL}
			target := resolve(t, config)
			for i, m := range []reducer.Message{assistant("Yes"), assistant("Yes", call("c1", "f"), call("c2", "f"))} {
				_, err := target.Stream(within(t), []reducer.Message{user("Hi"), stateful(m, config, test.data), user("And?")}, nil)
				require.NoError(t, err)
				require.Contains(t, string(model.Requests()[i].Body), `{"role":"assistant",`+[]string{test.plain, test.calling}[i]+`}`)
			}
		})
	}
}

// A server that thinks demands its reasoning with each of its calls, whatever the id of its provider.
func TestReasoningOfAnAnswerWithCallsGoesBackUnderItsName(t *testing.T) {
	calling := llmtest.Chunk(`{"tool_calls":[{"index":0,"id":"run:0","function":{"name":"weather","arguments":"{}"}}]}`, "tool_calls") + llmtest.Done
	for _, name := range []string{"reasoning_content", "reasoning", "reasoning_text"} {
		t.Run(name, func(t *testing.T) {
			thought := llmtest.Chunk(fmt.Sprintf(`{%q:"I should "}`, name), "") + llmtest.Chunk(fmt.Sprintf(`{%q:"look."}`, name), "")
			refusal := llmtest.Error(400, "invalid_request_error", name+" is not permitted in messages")
			model := llmtest.Start(t, llmtest.Raw("text/event-stream", thought+calling), llmtest.Answer("Rome"), refusal, llmtest.Answer("Rome"), llmtest.Answer("Rome"))
			to := target(t, model)
			to.Tools = tools
			result, err := to.Stream(within(t), hello, nil)
			require.NoError(t, err)
			m := assistant("", reducer.ToolCall{ID: "c1", Name: "weather", Arguments: "{}"})
			m.ProviderState = result.State
			messages := []reducer.Message{hello[0], m, toolResult("c1", "sun")}
			for range 3 {
				_, err = to.Stream(within(t), messages, nil)
				require.NoError(t, err)
				to = target(t, model)
			}
			sent := model.Requests()
			require.Contains(t, string(sent[1].Body), fmt.Sprintf(`%q:"I should look."`, name))
			require.Contains(t, string(sent[1].Body), `"tool_call_id":"run:0"`, "so does the id")
			require.NotContains(t, string(sent[3].Body), name, "a server that refuses the field gets none")
		})
	}
}

func TestCallsWithoutTheirStateAreText(t *testing.T) {
	for _, provider := range []string{"deepseek", "gemini"} {
		for name, data := range map[string]string{"no state": "", "the state of no call": `{}`, "a state of another type": `{"reasoning_content":1,"tool_calls":{"c1":{}}}`} {
			t.Run(provider+" with "+name, func(t *testing.T) {
				model := llmtest.Start(t, llmtest.Answer("ok"))
				config := reducer.ProviderConfig{ProviderID: provider, Model: "m", BaseURL: model.URL}
				m := assistant("", call("c1", "f"))
				if data != "" {
					m = stateful(m, config, data)
				}
				_, err := resolve(t, config).Stream(within(t), []reducer.Message{user("Hi"), m}, nil)
				require.NoError(t, err)
				require.Contains(t, string(model.Requests()[0].Body), "[Called the tool f with")
			})
		}
	}
}

func TestRejectedProviderStateIsSuspected(t *testing.T) {
	model := llmtest.Start(t, llmtest.Error(400, "invalid_request_error", "Corrupted thought signature."), llmtest.Answer("Hi"))
	config := reducer.ProviderConfig{ProviderID: "gemini", Model: "m", BaseURL: model.URL}
	target := resolve(t, config)
	target.Conversation = "demo"
	messages := []reducer.Message{user("Hi"), stateful(assistant("Yes", call("c1", "f")), config, `{"tool_calls":[{"google":{"thought_signature":"c=="}}]}`), user("And?")}
	_, err := target.Stream(within(t), messages, nil)
	require.Equal(t, "state calls", suspects(requireKind(t, llm.KindBadRequest, err)))

	messages = slices.Clone(messages)
	messages[1].ProviderState = nil
	result, err := target.Stream(within(t), messages, nil)
	require.NoError(t, err)
	require.Equal(t, "Hi", result.Text)
	require.Contains(t, string(model.Requests()[0].Body), "thought_signature")
	require.NotContains(t, string(model.Requests()[1].Body), "thought_signature")
	require.Contains(t, string(model.Requests()[1].Body), "[Called the tool f with")
}

// TestProviderStateIsReturnedOnlyToItsOrigin renders random conversations with the states of
// all providers.
func TestProviderStateIsReturnedOnlyToItsOrigin(t *testing.T) {
	var origins []reducer.ProviderConfig
	for _, provider := range llm.Presets() {
		for _, model := range []string{"m", "n"} {
			for _, url := range []string{"http://model.example/v1", "http://model.example/v2"} {
				origins = append(origins, reducer.ProviderConfig{ProviderID: provider, Model: model, BaseURL: url})
			}
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		model := &wall{}
		var configured []llm.Provider
		for _, o := range origins {
			configured = append(configured, llm.Provider{ID: o.ProviderID, BaseURL: baseurl.MustParse(o.BaseURL)})
		}
		adapter := llm.New(llm.Options{HTTPClient: &http.Client{Transport: model}, Providers: configured, AllowBaseURLs: modelExample})
		var messages []reducer.Message
		for range rapid.IntRange(1, 4).Draw(rt, "requests") {
			for range rapid.IntRange(1, 4).Draw(rt, "messages") {
				messages = append(messages, anyMessage().Draw(rt, "message"), withAnyState(rt, origins))
			}
			to := rapid.SampledFrom(origins).Draw(rt, "target")
			target, err := adapter.Resolve(to)
			require.NoError(rt, err)
			before := len(model.bodies)
			_, _ = target.Stream(t.Context(), messages, nil)
			require.Len(rt, model.bodies, before+1)
			for _, o := range origins {
				if o != to {
					require.NotContains(rt, model.bodies[before], marker(o))
				}
			}
		}
	})
}

// withAnyState returns an answer with a state of one of the origins.
func withAnyState(t *rapid.T, origins []reducer.ProviderConfig) reducer.Message {
	o := rapid.SampledFrom(origins).Draw(t, "origin")
	m := assistant("Yes")
	if rapid.Bool().Draw(t, "calls") {
		m = assistant("", call("c1", "f"))
	}
	m.Partial = rapid.IntRange(0, 4).Draw(t, "partial") == 0
	data := `{"reasoning_details":["` + marker(o) + `"],"reasoning_content":"` + marker(o) + `","extra_content":{"a":"` + marker(o) + `"},` +
		`"tool_calls":[{"a":"` + marker(o) + `"}],"thinking":[{"type":"thinking","thinking":[{"type":"text","text":"` + marker(o) + `"}]}]}`
	return stateful(m, o, data)
}

// marker is a text that identifies the states of an origin.
func marker(o reducer.ProviderConfig) string {
	return fmt.Sprintf("state of %s %s %s;", o.ProviderID, o.Model, o.BaseURL)
}
