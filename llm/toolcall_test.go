package llm_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// A server may call tools that nobody offered, in each of the forms.
func TestUnexpectedToolCalls(t *testing.T) {
	before, after := llmtest.Chunk(`{"content":"Let me "}`, ""), llmtest.Chunk(`{"content":"look."}`, "")
	for name, test := range streamedCalls {
		for _, finish := range []string{"tool_calls", "stop", "length"} {
			t.Run(name+", ended by "+finish, func(t *testing.T) {
				calls, end := strings.Join(test.pieces(), ""), llmtest.Chunk(`{}`, finish)

				step := llmtest.Raw(sse, before, calls, after, end, llmtest.UsageChunk(7, 9), llmtest.Done)
				result, err := target(t, llmtest.Start(t, step)).Stream(within(t), hello, nil)
				require.NoError(t, err, "the text before and after the calls is the answer")
				require.Contains(t, result.Quirks, "call_unasked")
				result.Quirks = nil
				require.Equal(t, llm.Result{Text: "Let me look.", FinishReason: finish, Usage: event.Usage{InputTokens: 7, OutputTokens: 9}}, result)

				step = llmtest.Raw(sse, calls, end, llmtest.UsageChunk(7, 9), llmtest.Done)
				result, err = target(t, llmtest.Start(t, step)).Stream(within(t), hello, nil)
				failed := requireKind(t, llm.KindToolCall, err)
				require.False(t, failed.Retryable())
				require.ErrorContains(t, err, ", although no tools were offered")
				require.Empty(t, result.FinishReason)

				step = llmtest.Raw(sse, before, calls, end).CutAt(len(before) + len(calls))
				result, err = target(t, llmtest.Start(t, step)).Stream(within(t), hello, nil)
				requireKind(t, llm.KindTruncated, err)
				require.Equal(t, "Let me ", result.Text)
			})
		}
	}
}

// tools are offered in the tests below.
var tools = []llm.Tool{
	{Name: "weather", Description: "Look at the sky", Parameters: event.Object(`{"type":"object","properties":{"city":{"type":"string"}}}`)},
	{Name: "time"},
}

// withTools returns a target that offers tools.
func withTools(t testing.TB, model *llmtest.Server, config reducer.ProviderConfig) *llm.Target {
	config.BaseURL = model.URL
	to := resolve(t, config)
	to.Tools = tools
	return to
}

func TestAnAnswerWithCallsIsComplete(t *testing.T) {
	model := llmtest.Start(t, llmtest.Answer("Let me ", "look.").Thinking("Hm").Calls(
		llmtest.Call{ID: "c1", Name: "weather", Arguments: `{"city":"Rome"}`},
		llmtest.Call{ID: "c2", Name: "time", Arguments: `{}`},
	).Offered("weather", "time"))
	var deltas []llm.Delta
	result, err := withTools(t, model, reducer.ProviderConfig{}).Stream(within(t), hello, func(d llm.Delta) { deltas = append(deltas, d) })
	require.NoError(t, err)
	require.Equal(t, []llm.Delta{{Text: "Hm", IsReasoning: true}, {Text: "Let me "}, {Text: "look."}}, deltas, "calls are no deltas")
	require.Equal(t, llm.Result{
		Text: "Let me look.", Reasoning: "Hm", FinishReason: "tool_calls", Usage: event.Usage{InputTokens: 7, OutputTokens: 4},
		Calls: []reducer.ToolCall{{ID: "c1", Name: "weather", Arguments: `{"city":"Rome"}`}, {ID: "c2", Name: "time", Arguments: `{}`}},
		State: &event.ProviderState{
			ProviderID: "scripted", Model: "model-1", BaseURL: model.URL, Data: json.RawMessage(`{"reasoning_content":"Hm"}`), CallIDs: []string{"c1", "c2"},
		},
	}, result)
}

type callTest struct {
	deltas []string
	want   string
}

// pieces returns an event for each delta.
func (c callTest) pieces() (pieces []string) {
	for _, delta := range c.deltas {
		pieces = append(pieces, llmtest.Chunk(`{"tool_calls":[{`+delta+`}]}`, ""))
	}
	return pieces
}

// streamedCalls are the pieces of calls as servers send them, with the calls in the form
// id:name(arguments); a generated id is a question mark.
var streamedCalls = map[string]callTest{
	"with indexes, interleaved": {[]string{
		`"index":0,"id":"a","type":"function","function":{"name":"weather","arguments":""}`, `"index":1,"id":"b","function":{"name":"time","arguments":""}`,
		`"index":0,"function":{"arguments":"{\"city\":"}`, `"index":1,"function":{"arguments":"{}"}`, `"index":0,"function":{"arguments":"1}"}`,
	}, `a:weather({"city":1}) b:time({})`},
	"without indexes": {[]string{
		`"id":"a","function":{"name":"weather","arguments":"{"}`, `"function":{"arguments":"}"}`, `"id":"b","function":{"name":"time","arguments":"{}"}`,
	}, `a:weather({}) b:time({})`},
	"without indexes, with the id in every piece": {[]string{
		`"id":"a","function":{"name":"weather","arguments":"{"}`, `"id":"b","function":{"name":"time","arguments":"{"}`, `"id":"a","function":{"arguments":"}"}`, `"id":"b","function":{"arguments":"}"}`,
	}, `a:weather({}) b:time({})`},
	"without indexes and ids": {[]string{
		`"function":{"name":"weather","arguments":"{"}`, `"function":{"arguments":"}"}`, `"function":{"name":"time","arguments":"{}"}`,
	}, `?:weather({}) ?:time({})`},
	"with indexes and no ids": {[]string{
		`"index":0,"function":{"name":"weather","arguments":"{}"}`, `"index":1,"id":"","function":{"name":"time","arguments":"{}"}`,
	}, `?:weather({}) ?:time({})`},
	"with index 0 for every call, as older versions of Gemini": {[]string{
		`"index":0,"id":"a","function":{"name":"weather","arguments":"{}"}`, `"index":0,"id":"b","function":{"name":"time","arguments":"{}"}`,
	}, `a:weather({}) b:time({})`},
	"with index 0 for every call and no id": {[]string{
		`"index":0,"id":"","function":{"name":"weather","arguments":"{\"city\":1}"}`, `"index":0,"id":"","function":{"name":"weather","arguments":"{\"city\":2}"}`,
	}, `?:weather({"city":1}) ?:weather({"city":2})`},
	"with the id and the name in every piece": {[]string{
		`"index":0,"id":"a","function":{"name":"weather","arguments":""}`, `"index":0,"id":"a","function":{"name":"weather","arguments":"{"}`, `"index":0,"id":"a","function":{"name":"weather","arguments":"}"}`,
	}, `a:weather({})`},
	"with another id in every piece": {[]string{
		`"index":0,"id":"a","function":{"name":"weather","arguments":"{"}`, `"index":0,"id":"b","function":{"arguments":"}"}`,
	}, `a:weather({})`},
	"with the name in pieces": {[]string{
		`"index":0,"id":"a","function":{"name":"wea","arguments":""}`, `"index":0,"function":{"name":"ther","arguments":""}`, `"index":0,"function":{"arguments":"{}"}`,
	}, `a:weather({})`},
	"with a complete call again at the end": {[]string{
		`"index":0,"id":"a","function":{"name":"weather","arguments":""}`, `"index":0,"function":{"arguments":"{}"}`, `"index":0,"id":"a","function":{"name":"weather","arguments":"{}"}`,
	}, `a:weather({})`},
	"with a repeated id": {[]string{
		`"index":0,"id":"a","function":{"name":"weather","arguments":"{}"}`, `"index":1,"id":"a","function":{"name":"time","arguments":"{}"}`,
	}, `a:weather({}) ?:time({})`},
	"with an id that is too long":   {[]string{`"index":0,"id":"` + strings.Repeat("x", 65) + `","function":{"name":"time","arguments":"{}"}`}, `?:time({})`},
	"without arguments":             {[]string{`"index":0,"id":"a","function":{"name":"time"}`}, `a:time()`},
	"with arguments of null":        {[]string{`"index":0,"id":"a","function":{"name":"time","arguments":null}`}, `a:time()`},
	"with invalid arguments":        {[]string{`"index":0,"id":"a","function":{"name":"time","arguments":"{now"}`}, `a:time({now)`},
	"of a tool that does not exist": {[]string{`"index":0,"id":"a","function":{"name":"functions.weather<|x|>","arguments":"{}"}`}, `a:functions_weather__x__({})`},
	"without a name":                {[]string{`"index":0,"id":"a","function":{"arguments":"{}"}`}, `a:tool({})`},
}

func format(calls []reducer.ToolCall) string {
	var texts []string
	for _, call := range calls {
		id := call.ID
		if strings.HasPrefix(id, "call_") && len(id) > 20 {
			id = "?"
		}
		texts = append(texts, fmt.Sprintf("%s:%s(%s)", id, call.Name, call.Arguments))
	}
	return strings.Join(texts, " ")
}

func TestCallsAreReadInEveryForm(t *testing.T) {
	for name, test := range streamedCalls {
		for _, isSplit := range []bool{true, false} {
			for _, finish := range []string{"tool_calls", "stop", "function_call", "eos"} {
				t.Run(fmt.Sprintf("%s, in one event: %v, ended by %s", name, !isSplit, finish), func(t *testing.T) {
					pieces := test.pieces()
					if !isSplit {
						pieces = []string{llmtest.Chunk(`{"tool_calls":[{`+strings.Join(test.deltas, "},{")+`}]}`, "")}
					}
					model := llmtest.Start(t, llmtest.Raw("text/event-stream", append(pieces, llmtest.Chunk(`{}`, finish), llmtest.Done)...))
					result, err := withTools(t, model, reducer.ProviderConfig{}).Stream(within(t), hello, nil)
					require.NoError(t, err)
					require.Equal(t, test.want, format(result.Calls))
					require.Equal(t, "tool_calls", result.FinishReason)
					require.Positive(t, result.OutputTokens, "calls count as output")
					ids := map[string]bool{}
					for _, call := range result.Calls {
						require.False(t, ids[call.ID], "ids are unique")
						ids[call.ID] = true
					}
				})
			}
		}
	}
}

func TestAnAnswerNeverHasAnIncompleteCall(t *testing.T) {
	call := llmtest.Call{ID: "c1", Name: "weather", Arguments: `{"city":"Rome"}`}
	for name, test := range map[string]struct {
		step   llmtest.Step
		kind   llm.Kind // "" for an answer
		says   string
		text   string
		finish string
	}{
		"cut by its length without text": {llmtest.Calls(call).Finish("length"), llm.KindInvalidAnswer, `reached the maximum length in the call of the tool "weather" (raise maxTokens)`, "", ""},
		"cut by its length after text":   {llmtest.Answer("Hm").Calls(call).Finish("length"), "", "", "Hm", "length"},
		"stopped by a filter":            {llmtest.Calls(call).Finish("content_filter"), llm.KindContentFilter, "content filter", "", ""},
		"stopped by a filter after text": {llmtest.Answer("Hm").Calls(call).Finish("content_filter"), "", "", "Hm", "content_filter"},
		"failed":                         {llmtest.Answer("Hm").Calls(call).Finish("error"), llm.KindServer, "failed in the middle", "Hm", ""},
		"without a finish reason":        {llmtest.Answer("Hm").Calls(llmtest.Call{ID: "c1", Name: "weather", Arguments: `{"city":`}).Finish(""), llm.KindTruncated, "without a finish reason", "Hm", ""},
		"too many calls": {
			llmtest.Calls(make([]llmtest.Call, llm.MaxCalls+1)...), llm.KindInvalidAnswer, "has more than 128 tool calls", "", "",
		},
		"too large arguments": {
			llmtest.Calls(llmtest.Call{Name: "weather", Arguments: strings.Repeat("1", llm.MaxArgumentBytes+1)}), llm.KindInvalidAnswer, "exceed 768 KiB", "", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := withTools(t, llmtest.Start(t, test.step), reducer.ProviderConfig{}).Stream(within(t), hello, nil)
			require.Empty(t, result.Calls)
			require.Equal(t, []string{test.text, test.finish}, []string{result.Text, result.FinishReason})
			if test.kind == "" {
				require.NoError(t, err)
				return
			}
			failed := requireKind(t, test.kind, err)
			require.ErrorContains(t, err, test.says)
			require.Empty(t, failed.Problem, "a repair would not help")
		})
	}
}

func TestAnAnswerWithCallsNeedsNoFormat(t *testing.T) {
	model := llmtest.Start(t, llmtest.Answer("Let me look.").Calls(llmtest.Call{ID: "c1", Name: "time"}), llmtest.Answer("It is late."))
	to := withTools(t, model, reducer.ProviderConfig{})
	to.Settings.ResponseFormat = &event.ResponseFormat{Type: event.FormatJSONObject}
	result, err := to.Stream(within(t), hello, nil)
	require.NoError(t, err)
	require.Equal(t, "c1:time()", format(result.Calls))
	_, err = to.Stream(within(t), hello, nil)
	requireKind(t, llm.KindInvalidAnswer, err)
}

func TestTheStateOfCallsIsFoundByTheirPosition(t *testing.T) {
	const signature = `"extra_content":{"google":{"thought_signature":"c2ln"}}`
	for name, test := range map[string]struct {
		deltas []string
		want   string
	}{
		"without ids":      {[]string{`"index":0,"id":"","function":{"name":"weather","arguments":"{}"},` + signature, `"index":1,"id":"","function":{"name":"time","arguments":"{}"}`}, `[{"google":{"thought_signature":"c2ln"}},null]`},
		"of a later call":  {[]string{`"index":0,"id":"a","function":{"name":"weather","arguments":"{}"}`, `"index":0,"id":"b","function":{"name":"time","arguments":"{}"},` + signature}, `[null,{"google":{"thought_signature":"c2ln"}}]`},
		"after its pieces": {[]string{`"index":0,"id":"a","function":{"name":"weather","arguments":"{"}`, `"index":0,"function":{"arguments":"}"},` + signature}, `[{"google":{"thought_signature":"c2ln"}}]`},
	} {
		t.Run(name, func(t *testing.T) {
			var pieces []string
			for _, delta := range test.deltas {
				pieces = append(pieces, `{"tool_calls":[{`+delta+`}]}`)
			}
			model := llmtest.Start(t, chunks(pieces...), llmtest.Answer("ok"))
			to := withTools(t, model, reducer.ProviderConfig{ProviderID: "gemini", Model: "gemini-3-pro"})
			result, err := to.Stream(within(t), hello, nil)
			require.NoError(t, err)
			require.Equal(t, `{"tool_calls":`+test.want+`}`, string(result.State.Data))

			// The log can give the calls other ids.
			answer := reducer.Message{Role: reducer.RoleAssistant, ProviderState: result.State}
			for i, call := range result.Calls {
				answer.ToolCalls = append(answer.ToolCalls, reducer.ToolCall{ID: fmt.Sprint("renamed", i), Name: call.Name, Arguments: call.Arguments})
			}
			_, err = to.Stream(within(t), append(hello, answer), nil)
			require.NoError(t, err)
			body := string(model.Requests()[1].Body)
			if strings.HasPrefix(test.want, "[null") {
				require.Contains(t, body, "[Called the tool weather", "Gemini signs the first call")
				return
			}
			id := "renamed0" // unless the server gave one
			if test.want == `[{"google":{"thought_signature":"c2ln"}}]` {
				id = "a"
			}
			require.Contains(t, body, `"id":"`+id+`","type":"function","function":{"name":"weather","arguments":"{}"},`+signature)
		})
	}
}

func TestReasoningOfDeepSeekIsKeptInTurnsWithTools(t *testing.T) {
	call := assistant("", call("c1", "f"))
	for name, test := range map[string]struct {
		messages []reducer.Message
		step     llmtest.Step
		want     string
	}{
		"of an answer with calls":         {hello, llmtest.Calls(llmtest.Call{ID: "c1", Name: "time"}).Thinking("Hm"), "Hm"},
		"even if it is empty":             {hello, llmtest.Calls(llmtest.Call{ID: "c1", Name: "time"}), ""},
		"of the answer after the results": {[]reducer.Message{user("Hi"), call, toolResult("c1", "one")}, llmtest.Answer("Yes").Thinking("Hm"), "Hm"},
		"but not of later answers":        {[]reducer.Message{user("Hi"), call, toolResult("c1", "one"), user("And?")}, llmtest.Answer("Yes").Thinking("Hm"), "none"},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := withTools(t, llmtest.Start(t, test.step), reducer.ProviderConfig{ProviderID: "deepseek"}).Stream(within(t), test.messages, nil)
			require.NoError(t, err)
			if test.want == "none" {
				require.Nil(t, result.State)
				return
			}
			require.Equal(t, fmt.Sprintf(`{"reasoning_content":%q}`, test.want), string(result.State.Data))
		})
	}
}
