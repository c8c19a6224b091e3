package llm_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/baseurl"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

const sse = "text/event-stream"

// indented returns an event whose JSON takes several data lines.
func indented(event string) string {
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(strings.TrimPrefix(strings.TrimSpace(event), "data: ")), "", "  "); err != nil {
		panic(err)
	}
	return "data: " + strings.ReplaceAll(b.String(), "\n", "\ndata: ") + "\n\n"
}

// bare returns the JSON of an event.
func bare(event string) string {
	return strings.TrimPrefix(strings.TrimSpace(event), "data: ")
}

func TestEventsAreReadInEveryForm(t *testing.T) {
	first, second, end := llmtest.Chunk(`{"content":"Mind "}`, ""), llmtest.Chunk(`{"content":"the gap"}`, ""), llmtest.Chunk(`{}`, "stop")
	all := first + second + end + llmtest.UsageChunk(3, 2) + llmtest.Done
	tests := map[string]struct {
		step   llmtest.Step
		quirks string
	}{
		"empty data lines":                       {step: llmtest.Raw(sse, first, "data: \n\n", "data:\n\n", second, "data\n\n", end, llmtest.UsageChunk(3, 2), llmtest.Done)},
		"several data lines in an event":         {step: llmtest.Raw(sse, indented(first), indented(second), indented(end), indented(llmtest.UsageChunk(3, 2)), llmtest.Done)},
		"a byte order mark":                      {step: llmtest.Raw(sse, "\uFEFF"+all)},
		"a byte order mark and a blank line":     {step: llmtest.Raw(sse, "\uFEFF", "\n"+all)},
		"CR":                                     {step: llmtest.Raw(sse, strings.ReplaceAll(all, "\n", "\r"))},
		"CR and several data lines":              {step: llmtest.Raw(sse, strings.ReplaceAll(indented(first)+indented(second)+indented(end)+llmtest.UsageChunk(3, 2), "\n", "\r"))},
		"CRLF in single bytes":                   {step: llmtest.Raw(sse, strings.Split(strings.ReplaceAll(all, "\n", "\r\n"), "")...)},
		"all kinds of line ends":                 {step: llmtest.Raw(sse, first+strings.ReplaceAll(second, "\n", "\r")+strings.ReplaceAll(end+llmtest.UsageChunk(3, 2), "\n", "\r\n"))},
		"an event that the end of the body cuts": {step: llmtest.Raw(sse, first, second, llmtest.UsageChunk(3, 2), strings.TrimSpace(indented(end)))},
		"no empty lines":                         {step: llmtest.Raw(sse, strings.ReplaceAll(all, "\n\n", "\n"))},
		"[DONE] with spaces":                     {step: llmtest.Raw(sse, first, second, end, llmtest.UsageChunk(3, 2), "data:   [DONE]  \n\n")},
		"[DONE] before the finish reason":        {step: llmtest.Raw(sse, first, second, llmtest.Done, end, llmtest.UsageChunk(3, 2))},
		"keep-alive events":                      {step: llmtest.Raw(sse, "event: ping\ndata: {\"type\":\"ping\"}\n\n", first, "retry: 3000\nid: 7\n: hm\n\n", second, end, llmtest.UsageChunk(3, 2))},
		"keep-alive events that are not JSON":    {step: llmtest.Raw(sse, "event: ping\ndata: alive\n\n", first, second, "data: alive\ndata: still\n\n", end, llmtest.UsageChunk(3, 2)), quirks: "event_not_json"},
		"an event that breaks off":               {step: llmtest.Raw(sse, first, second, "data: {\"choices\":[\n\n", end, llmtest.UsageChunk(3, 2)), quirks: "event_not_json"},
		"events of other JSON":                   {step: llmtest.Raw(sse, "data: 5\n\n", first, second, "data: \"x\"\n\n", end, llmtest.UsageChunk(3, 2)), quirks: "event_not_json"},
		"an object per line":                     {step: llmtest.Raw("application/x-ndjson", bare(first)+"\n", bare(second)+"\n", bare(end)+"\n", bare(llmtest.UsageChunk(3, 2))+"\n"), quirks: "answer_not_streamed"},
		"one JSON answer": {step: llmtest.Raw("application/json",
			`{"object":"chat.completion","choices":[{"message":{"role":"assistant","content":"Mind the gap"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}`),
			quirks: "answer_not_streamed message_for_delta"},
		"one indented JSON answer": {step: llmtest.Raw("application/json", "\n{\n \"choices\": [{\"message\":\n\n{\"content\":\n\"Mind the gap\"},\n\"finish_reason\":\"stop\"}],\"usage\":\n{\"prompt_tokens\":3,\"completion_tokens\":2}}"),
			quirks: "answer_not_streamed message_for_delta"},
		"gzip": {step: llmtest.Raw(sse, gzipped(all)).Header("Content-Encoding", "gzip")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var deltas strings.Builder
			result, err := target(t, llmtest.Start(t, test.step)).Stream(within(t), hello, func(d llm.Delta) { deltas.WriteString(d.Text) })
			require.NoError(t, err)
			require.Equal(t, "Mind the gap", result.Text)
			require.Equal(t, "Mind the gap", deltas.String())
			require.Equal(t, "stop", result.FinishReason)
			require.Equal(t, event.Usage{InputTokens: 3, OutputTokens: 2}, withoutQuirks(result.Usage))
			require.Equal(t, strings.Fields(test.quirks), append([]string{}, result.Quirks...))
		})
	}
}

func gzipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return b.String()
}

// An event must not wait for the next one.
func TestAnEventIsReadAtItsEnd(t *testing.T) {
	first := llmtest.Chunk(`{"content":"Mind"}`, "")
	for name, event := range map[string]string{
		"LF":                 first,
		"CR":                 strings.ReplaceAll(first, "\n", "\r"),
		"no empty line":      strings.TrimSpace(first) + "\n",
		"several data lines": strings.ReplaceAll(indented(first), "\n", "\r"),
		"an object per line": bare(first) + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			gate := llmtest.NewGate()
			end := llmtest.Chunk(`{}`, "stop")
			if !strings.HasPrefix(event, "data:") {
				end = bare(end)
			}
			model := llmtest.Start(t, llmtest.Raw(sse, event, end).HoldAfter(1, gate))
			result, err := target(t, model).Stream(within(t), hello, func(llm.Delta) { gate.Open() })
			require.NoError(t, err)
			require.Equal(t, "Mind", result.Text)
		})
	}
}

// answers are deltas as servers send them, with the answer in the form of [answerOf].
var answers = map[string]struct {
	events []string
	want   string
	quirks string
}{
	"a content that is a number": {
		[]string{`{"content":"Row "}`, `{"content":12}`, `{"content":", "}`, `{"content":0.50}`, `{"content":-1e3}`}, "Row 12, 0.50-1e3", "text_not_string",
	},
	"a content that is a boolean": {[]string{`{"content":"It is "}`, `{"content":true}`}, "It is true", "text_not_string"},
	"a content that is an object": {[]string{`{"content":{"type":"text","text":"Mind"}}`, `{"content":{"content":" it"}}`}, "Mind it", "text_not_string"},
	"a content of parts": {
		[]string{`{"content":[{"type":"text","text":"Mi"},{"type":"new_kind","text":"nd"},"!",{"type":"image","image":{}},null,{"type":"output_text","text":{"value":"?"}}]}`}, "Mind!?", "",
	},
	"a refusal part":                    {[]string{`{"content":[{"type":"refusal","refusal":"No."}]}`}, "No.", ""},
	"thinking parts with a text":        {[]string{`{"content":[{"type":"thinking","thinking":"Hm"}]}`, `{"content":[{"type":"reasoning","text":"?"}]}`, `{"content":"Yes"}`}, "(Hm?)Yes", ""},
	"reasoning_text, as GitHub Copilot": {[]string{`{"reasoning_text":"Hm"}`, `{"content":"Yes"}`}, "(Hm)Yes", ""},
	"thinking":                          {[]string{`{"thinking":"Hm"}`, `{"content":"Yes"}`}, "(Hm)Yes", ""},
	"reasoning that is an object":       {[]string{`{"reasoning":{"content":"Hm"}}`, `{"content":"Yes"}`}, "(Hm)Yes", ""},
	"details alone":                     {[]string{`{"reasoning_details":[{"type":"reasoning.text","text":"H"}]}`, `{"reasoning_details":[{"type":"reasoning.summary","summary":"m"}]}`, `{"content":"Yes"}`}, "(Hm)Yes", ""},
	"thinking blocks, as LiteLLM":       {[]string{`{"thinking_blocks":[{"type":"thinking","thinking":"Hm","signature":"s"}]}`, `{"content":"Yes"}`}, "(Hm)Yes", ""},
	"thinking blocks that repeat":       {[]string{`{"reasoning_content":"Hm","thinking_blocks":[{"type":"thinking","thinking":"Hm"}]}`, `{"thinking_blocks":[{"thinking":"Hm"}]}`, `{"content":"Yes"}`}, "(Hm)Yes", ""},
	"fields of unexpected types": {
		[]string{`{"role":["assistant"],"refusal":null,"tool_calls":null,"function_call":[],"extra_content":4,"content":"Mind","audio":{"id":[]},"reasoning_details":"none"}`}, "Mind", "",
	},
	"a delta of null": {[]string{`null`, `{"content":"Mind"}`, `[]`, `"x"`}, "Mind", ""},

	"half of a surrogate pair":             {[]string{`{"content":"Up \ud83d"}`, `{"content":"\ude80 and \ud83c"}`, `{"content":"\udf19"}`}, "Up 🚀 and 🌙", "character_split"},
	"half of a pair in reasoning":          {[]string{`{"reasoning":"\ud83d"}`, `{"content":"\ud83c"}`, `{"reasoning":"\ude80"}`, `{"content":"\udf19"}`}, "(🚀)🌙", "character_split"},
	"half of a pair before an empty piece": {[]string{`{"content":"\ud83d"}`, `{"content":""}`, `{"content":null}`, `{"content":"\ude80"}`}, "🚀", "character_split"},
	"bytes of a character":                 {[]string{"{\"content\":\"caf\xc3\"}", "{\"content\":\"\xa9 \xf0\x9f\"}", "{\"content\":\"\x8c\x99\"}"}, "café 🌙", "character_split"},
	"half of a pair alone":                 {[]string{`{"content":"Up \ud83d"}`, `{"content":"!"}`}, "Up \uFFFD!", "character_split text_not_utf8"},
	"half of a pair at the end":            {[]string{`{"content":"Up \ud83d"}`}, "Up \uFFFD", "text_not_utf8"},
	"bytes that are not UTF-8":             {[]string{"{\"content\":\"a\xff\xfeb\"}"}, "a\uFFFDb", "text_not_utf8"},

	"a call whose arguments have half of a pair": {
		[]string{`{"tool_calls":[{"index":0,"id":"a","function":{"name":"weather","arguments":"{\"city\":\"\ud83d"}}]}`, `{"tool_calls":[{"index":0,"function":{"arguments":"\ude80\"}"}}]}`}, `a:weather({"city":"🚀"})`, "",
	},
	"a call with an object": {
		[]string{`{"tool_calls":[{"index":0,"id":"a","function":{"name":"weather","arguments":{"city":"Rome"}}}]}`}, `a:weather({"city":"Rome"})`, "arguments_not_string",
	},
	"a call with a string in a string": {
		[]string{`{"tool_calls":[{"index":0,"id":"a","function":{"name":"weather","arguments":"\"{\\\"city\\\":"}}]}`, `{"tool_calls":[{"index":0,"function":{"arguments":" \\\"Rome\\\"}\""}}]}`},
		`a:weather({"city": "Rome"})`, "arguments_encoded_twice",
	},
	"a call with a string in a string in a string": {
		[]string{`{"tool_calls":[{"index":0,"id":"a","function":{"name":"weather","arguments":"\"\\\"{}\\\"\""}}]}`}, `a:weather({})`, "arguments_encoded_twice",
	},
	"a call with {} before its arguments": {
		[]string{`{"tool_calls":[{"index":0,"id":"a","function":{"name":"weather","arguments":"{}"}}]}`, `{"tool_calls":[{"index":0,"function":{"arguments":"{\"city\""}}]}`, `{"tool_calls":[{"index":0,"function":{"arguments":":\"Rome\"}"}}]}`},
		`a:weather({"city":"Rome"})`, "arguments_repeated",
	},
	"a call with an empty object before its arguments": {
		[]string{`{"tool_calls":[{"index":0,"id":"a","function":{"name":"weather","arguments":{}}}]}`, `{"tool_calls":[{"index":0,"function":{"arguments":"{\"city\":\"Rome\"}"}}]}`},
		`a:weather({"city":"Rome"})`, "arguments_not_string arguments_repeated",
	},
	"a call with its arguments twice": {
		[]string{`{"tool_calls":[{"index":0,"id":"a","function":{"name":"weather","arguments":"{\"city\":1}"}}]}`, `{"tool_calls":[{"index":0,"function":{"arguments":"{\"city\":1}"}}]}`},
		`a:weather({"city":1})`, "arguments_repeated",
	},
	"a call with two objects":          {[]string{`{"tool_calls":[{"index":0,"id":"a","function":{"name":"weather","arguments":"{\"city\":1}{\"city\":2}"}}]}`}, `a:weather({"city":1}{"city":2})`, ""},
	"a call with the text null":        {[]string{`{"tool_calls":[{"index":0,"id":"a","function":{"name":"time","arguments":"null"}}]}`}, `a:time()`, ""},
	"a call with a string":             {[]string{`{"tool_calls":[{"index":0,"id":"a","function":{"name":"time","arguments":"\"now\""}}]}`}, `a:time("now")`, ""},
	"a call with a number":             {[]string{`{"tool_calls":[{"index":0,"id":7,"function":{"name":"time","arguments":8}}]}`}, `7:time(8)`, ""},
	"calls with indexes from one":      {[]string{`{"tool_calls":[{"index":1,"id":"a","function":{"name":"time","arguments":"{"}},{"index":2,"id":"b","function":{"name":"time"}}]}`, `{"tool_calls":[{"index":1,"function":{"arguments":"}"}}]}`}, `a:time({}) b:time()`, ""},
	"calls with indexes that are text": {[]string{`{"tool_calls":[{"index":"0","id":"a","function":{"name":"time"}},{"index":"1","id":"b","function":{"name":"time"}}]}`, `{"tool_calls":[{"index":"0","function":{"arguments":"{}"}}]}`}, `a:time({}) b:time()`, ""},
	"a call twice with two indexes":    {[]string{`{"tool_calls":[{"index":0,"id":"a","function":{"name":"time","arguments":"{}"}}]}`, `{"tool_calls":[{"index":1,"id":"a","function":{"name":"time","arguments":"{}"}}]}`}, `a:time({})`, "call_repeated"},
	"two calls without ids":            {[]string{`{"tool_calls":[{"index":0,"function":{"name":"time","arguments":"{}"}},{"index":1,"function":{"name":"time","arguments":"{}"}}]}`}, `?:time({}) ?:time({})`, "call_id_replaced"},
	"a call in the deprecated form":    {[]string{`{"function_call":{"name":"weather","arguments":"{"}}`, `{"function_call":{"arguments":"}"}}`}, `?:weather({})`, "call_id_replaced"},
	"such a call with an object":       {[]string{`{"content":null,"function_call":{"name":"weather","arguments":{}}}`}, `?:weather({})`, "arguments_not_string call_id_replaced"},
	"a call that is no array":          {[]string{`{"tool_calls":{"index":0,"id":"a","function":{"name":"time","arguments":"{}"}}}`}, `a:time({})`, ""},
}

// answerOf formats an answer: its reasoning in parentheses, its text and its calls.
func answerOf(result llm.Result) string {
	text := result.Text + format(result.Calls)
	if result.Reasoning != "" {
		return "(" + result.Reasoning + ")" + text
	}
	return text
}

func TestFieldsAreReadLeniently(t *testing.T) {
	for name, test := range answers {
		t.Run(name, func(t *testing.T) {
			var pieces []string
			for _, delta := range test.events {
				pieces = append(pieces, llmtest.Chunk(delta, ""))
			}
			model := llmtest.Start(t, llmtest.Raw(sse, append(pieces, llmtest.Chunk(`{}`, "stop"), llmtest.UsageChunk(7, 9), llmtest.Done)...))
			var text, reasoning strings.Builder
			result, err := withTools(t, model, reducer.ProviderConfig{}).Stream(within(t), hello, func(d llm.Delta) {
				require.NotEmpty(t, d.Text)
				if d.IsReasoning {
					reasoning.WriteString(d.Text)
				} else {
					text.WriteString(d.Text)
				}
			})
			require.NoError(t, err)
			require.Equal(t, test.want, answerOf(result))
			require.Equal(t, []string{result.Text, result.Reasoning}, []string{text.String(), reasoning.String()})
			require.Equal(t, strings.Fields(test.quirks), append([]string{}, result.Quirks...))
		})
	}
}

func TestChunksAreReadLeniently(t *testing.T) {
	const usage = `"usage":{"prompt_tokens":7,"completion_tokens":9}`
	call := `"tool_calls":[{"index":0,"id":"a","function":{"name":"time","arguments":"{}"}}]`
	for name, test := range map[string]struct {
		events []string
		want   string
		finish string
		quirks string
	}{
		"choices of null": {[]string{`{"choices":null}`, `{"choices":[{"delta":{"content":"Mind"},"finish_reason":"stop"}],` + usage + `}`}, "Mind", "stop", ""},
		"unused fields of other types": {
			[]string{`{"id":4,"created":"now","model":null,"object":[],"system_fingerprint":{},"choices":[{"index":"0","delta":{"content":"Mind"},"logprobs":"none","finish_reason":false}],"usage":"none"}`, `{"choices":[{"finish_reason":"stop"}],` + usage + `}`}, "Mind", "stop", "",
		},
		"escaped names":                {[]string{`{"\u0063hoices":[{"delta":{"conten\u0074":"Mind"},"finish_reason":"stop"}],` + usage + `}`}, "Mind", "stop", ""},
		"a message instead of a delta": {[]string{`{"choices":[{"message":{"content":"Mi"}}]}`, `{"choices":[{"message":{"content":"nd"},"finish_reason":"stop"}],` + usage + `}`}, "Mind", "stop", "message_for_delta"},
		"the whole message at the end": {
			[]string{`{"choices":[{"delta":{"reasoning_content":"Hm","content":"Mi"}}]}`, `{"choices":[{"delta":{"content":"nd",` + call + `}}]}`, `{"choices":[{"message":{"reasoning_content":"Hm","content":"Mind",` + call + `},"finish_reason":"tool_calls"}],` + usage + `}`},
			"(Hm)Minda:time({})", "tool_calls", "message_for_delta",
		},
		"a longer message at the end":      {[]string{`{"choices":[{"delta":{"content":"Mi"}}]}`, `{"choices":[{"message":{"content":"Mind"},"finish_reason":"stop"}],` + usage + `}`}, "Mind", "stop", "message_for_delta"},
		"the message so far in each chunk": {[]string{`{"choices":[{"delta":{"content":"Mi"},"message":{"content":"Mi"}}]}`, `{"choices":[{"delta":{"content":"nd"},"message":{"content":"Mind"},"finish_reason":"stop"}],` + usage + `}`}, "Mind", "stop", ""},
		"a text without a delta":           {[]string{`{"choices":[{"text":"Mi"}]}`, `{"choices":[{"text":"nd","finish_reason":"stop"}],` + usage + `}`}, "Mind", "stop", ""},
		"an index from one":                {[]string{`{"choices":[{"index":1,"delta":{"content":"Mind"},"finish_reason":"stop"}],` + usage + `}`}, "Mind", "stop", ""},
		"two alternatives": {
			[]string{`{"choices":[{"index":0,"delta":{"content":"Mi"}},{"index":1,"delta":{"content":"Go"}}]}`, `{"choices":[{"index":1,"delta":{"content":"ne"},"finish_reason":"length"}]}`, `{"choices":[{"index":0,"delta":{"content":"nd"},"finish_reason":"stop"}],` + usage + `}`},
			"Mind", "stop", "other_choices",
		},
		"two alternatives with calls": {
			[]string{`{"choices":[{"index":0,"delta":{` + call + `},"finish_reason":"tool_calls"},{"index":1,"delta":{` + strings.Replace(call, `"a"`, `"b"`, 1) + `},"finish_reason":"tool_calls"}],` + usage + `}`},
			"a:time({})", "tool_calls", "other_choices",
		},
		"a text and a call in two choices, as GitHub Copilot": {
			[]string{`{"choices":[{"index":0,"delta":{"content":"Mind"}}]}`, `{"choices":[{"index":1,"delta":{` + call + `}}]}`, `{"choices":[{"index":0,"finish_reason":"tool_calls"}]}`, `{"choices":[{"index":1,"finish_reason":"tool_calls"}],` + usage + `}`},
			"Minda:time({})", "tool_calls", "",
		},
		"an empty error in each chunk":  {[]string{`{"error":{},"base_resp":{"status_code":0,"status_msg":""},"choices":[{"delta":{"content":"Mind"}}]}`, `{"error":null,"error_code":0,"choices":[{"finish_reason":"stop"}],` + usage + `}`}, "Mind", "stop", ""},
		"a finish reason in an object":  {[]string{`{"choices":[{"delta":{"content":"Mind"},"finish_reason":{"type":"stop","matched":2}}],` + usage + `}`}, "Mind", "stop", ""},
		"a finish reason named null":    {[]string{`{"choices":[{"delta":{"content":"Mi"},"finish_reason":"null"}]}`, `{"choices":[{"delta":{"content":"nd"},"finish_reason":"stop"}],` + usage + `}`}, "Mind", "stop", ""},
		"a finish reason in each chunk": {[]string{`{"choices":[{"delta":{"content":"Mi"},"finish_reason":"stop"}]}`, `{"choices":[{"delta":{"content":"nd"},"finish_reason":"stop"}],` + usage + `}`}, "Mind", "stop", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var pieces []string
			for _, event := range test.events {
				pieces = append(pieces, "data: "+event+"\n\n")
			}
			model := llmtest.Start(t, llmtest.Raw(sse, append(pieces, llmtest.Done)...))
			result, err := withTools(t, model, reducer.ProviderConfig{}).Stream(within(t), hello, nil)
			require.NoError(t, err)
			require.Equal(t, test.want, answerOf(result))
			require.Equal(t, test.finish, result.FinishReason)
			require.Equal(t, event.Usage{InputTokens: 7, OutputTokens: 9}, withoutQuirks(result.Usage))
			require.Equal(t, strings.Fields(test.quirks), append([]string{}, result.Quirks...))
		})
	}
}

func TestUsageIsReadInEveryForm(t *testing.T) {
	plain := event.Usage{InputTokens: 50, OutputTokens: 9}
	full := event.Usage{InputTokens: 50, OutputTokens: 9, CachedTokens: 40, ReasoningTokens: 5}
	for name, test := range map[string]struct {
		chunk string
		want  event.Usage
	}{
		"OpenAI":                 {`"usage":{"prompt_tokens":50,"completion_tokens":9,"total_tokens":59,"prompt_tokens_details":{"cached_tokens":40},"completion_tokens_details":{"reasoning_tokens":5}}`, full},
		"DeepSeek":               {`"usage":{"prompt_tokens":50,"completion_tokens":9,"prompt_cache_hit_tokens":40,"prompt_cache_miss_tokens":10,"completion_tokens_details":{"reasoning_tokens":5}}`, full},
		"Moonshot":               {`"usage":null,"choices":[{"index":0,"delta":{},"finish_reason":null,"usage":{"prompt_tokens":50,"completion_tokens":9,"cached_tokens":40,"reasoning_tokens":5}}]`, full},
		"Groq":                   {`"x_groq":{"id":"r","usage":{"prompt_tokens":50,"completion_tokens":9,"queue_time":0.1}}`, plain},
		"OpenAI's Responses API": {`"usage":{"input_tokens":50,"output_tokens":9,"input_tokens_details":{"cached_tokens":40},"output_tokens_details":{"reasoning_tokens":5}}`, full},
		"Anthropic":              {`"usage":{"input_tokens":6,"output_tokens":9,"cache_read_input_tokens":40,"cache_creation_input_tokens":4}`, event.Usage{InputTokens: 50, OutputTokens: 9, CachedTokens: 40}},
		"Gemini's own API":       {`"usageMetadata":{"promptTokenCount":50,"candidatesTokenCount":4,"thoughtsTokenCount":5,"totalTokenCount":59,"cachedContentTokenCount":40}`, full},
		"texts":                  {`"usage":{"prompt_tokens":"50","completion_tokens":"9"}`, plain},
		"fractions":              {`"usage":{"prompt_tokens":50.0,"completion_tokens":9.0,"total_tokens":null}`, plain},
		"details of other types": {`"usage":{"prompt_tokens":50,"completion_tokens":9,"prompt_tokens_details":[],"completion_tokens_details":"none","cost":{}}`, plain},
		"negative numbers":       {`"usage":{"prompt_tokens":50,"completion_tokens":9,"cached_tokens":-4,"reasoning_tokens":-1e300}`, plain},
	} {
		t.Run(name, func(t *testing.T) {
			model := llmtest.Start(t, llmtest.Raw(sse, llmtest.Chunk(`{"content":"Mind"}`, "stop"), "data: {"+test.chunk+"}\n\n", llmtest.Done))
			result, err := target(t, model).Stream(within(t), hello, nil)
			require.NoError(t, err)
			require.Equal(t, test.want, withoutQuirks(result.Usage))
			require.Empty(t, result.Quirks)
		})
	}
	t.Run("none", func(t *testing.T) {
		for _, usage := range []string{`null`, `{}`, `[]`, `{"prompt_tokens":0,"completion_tokens":0}`, `"unknown"`} {
			model := llmtest.Start(t, llmtest.Raw(sse, llmtest.Chunk(`{"content":"Mind"}`, "stop"), `data: {"usage":`+usage+"}\n\n"))
			result, err := target(t, model).Stream(within(t), hello, nil)
			require.NoError(t, err)
			require.True(t, result.Estimated)
			require.Equal(t, []string{"usage_missing"}, result.Quirks)
		}
	})
}

func TestFinishReasons(t *testing.T) {
	const (
		stop, cut, filtered, other = "stop", "length", "content_filter", "other"
		calls                      = "tool_calls"
	)
	for _, test := range []struct {
		reasons string
		// What the reason means for an answer with a text, and for one without: a finish reason, or the kind of the error.
		text, empty string
		retryable   bool // the errors
	}{
		{"stop end_turn stop_sequence eos eos_token COMPLETE completed STOP FinishReason.STOP", stop, string(llm.KindTruncated), true},
		{"tool_calls function_call tool_use tool-calls", calls, string(llm.KindTruncated), true},
		{"length max_tokens MAX_TOKENS model_length max_output_tokens pause_turn incomplete", cut, string(llm.KindInvalidAnswer), false},
		{"model_context_window_exceeded ERROR_LIMIT", cut, string(llm.KindContextTooLong), false},
		{
			"content_filter content-filter refusal sensitive guardrail_intervened content_filtered SAFETY RECITATION PROHIBITED_CONTENT BLOCKLIST SPII ERROR_TOXIC",
			filtered, string(llm.KindContentFilter), false,
		},
		{"error failed abort cancelled network_error engine_overloaded insufficient_system_resource load", string(llm.KindServer), string(llm.KindServer), true},
		{
			"function_call_filter:_MALFORMED_FUNCTION_CALL function_call_filter:_UNEXPECTED_TOOL_CALL MALFORMED_FUNCTION_CALL malformed_tool_use function_call_filter:_NEW",
			string(llm.KindMalformed), string(llm.KindMalformed), true,
		},
		{"content_filter:_NEW", filtered, string(llm.KindContentFilter), false},
		{"LANGUAGE MISSING_THOUGHT_SIGNATURE", string(llm.KindBadRequest), string(llm.KindBadRequest), false},
		{"OTHER FINISH_REASON_UNSPECIFIED brand_new ::::", other, string(llm.KindTruncated), true},
	} {
		for reason := range strings.FieldsSeq(test.reasons) {
			reason = strings.ReplaceAll(reason, ":_", ": ")
			for text, want := range map[string]string{"Mind": test.text, "": test.empty} {
				t.Run(fmt.Sprintf("%s of the text %q", reason, text), func(t *testing.T) {
					model := llmtest.Start(t, llmtest.Raw(sse, llmtest.Chunk(`{"content":"`+text+`"}`, reason), llmtest.UsageChunk(5, 0), llmtest.Done))
					result, err := target(t, model).Stream(within(t), hello, nil)
					require.Equal(t, text, result.Text)
					switch want {
					case stop, cut, filtered, other, calls:
						require.NoError(t, err)
						require.Equal(t, want, result.FinishReason)
					default:
						failed := requireKind(t, llm.Kind(want), err)
						require.Equal(t, test.retryable, failed.Retryable())
						require.ErrorContains(t, err, reason)
						require.Empty(t, result.FinishReason)
					}
				})
			}
		}
	}
	t.Run("behind OpenRouter", func(t *testing.T) {
		model := llmtest.Start(t,
			llmtest.Raw(sse, `data: {"choices":[{"delta":{"content":""},"finish_reason":"stop","native_finish_reason":"MALFORMED_FUNCTION_CALL"}]}`+"\n\n"),
			llmtest.Raw(sse, `data: {"choices":[{"delta":{"content":"Mind"},"finish_reason":"stop","native_finish_reason":"OTHER"}]}`+"\n\n"))
		_, err := target(t, model).Stream(within(t), hello, nil)
		requireKind(t, llm.KindMalformed, err)
		result, err := target(t, model).Stream(within(t), hello, nil)
		require.NoError(t, err)
		require.Equal(t, stop, result.FinishReason)
	})
	t.Run("none before [DONE]", func(t *testing.T) {
		whole := llmtest.Call{ID: "a", Name: "time", Arguments: `{}`}
		model := llmtest.Start(t, llmtest.Answer("Mind").Finish(""), llmtest.Calls(whole).Finish(""), llmtest.Answer().Finish(""),
			llmtest.Calls(whole, llmtest.Call{ID: "b", Name: "weather"}).Finish(""))
		for _, want := range []string{"Mind", "a:time({})"} {
			result, err := withTools(t, model, reducer.ProviderConfig{}).Stream(within(t), hello, nil)
			require.NoError(t, err)
			require.Equal(t, want, answerOf(result))
			require.Equal(t, []string{"finish_reason_missing"}, result.Quirks)
		}
		for range 2 {
			_, err := withTools(t, model, reducer.ProviderConfig{}).Stream(within(t), hello, nil)
			requireKind(t, llm.KindTruncated, err)
		}
	})
	t.Run("after events that are not JSON", func(t *testing.T) {
		model := llmtest.Start(t, llmtest.Raw(sse, "data: {\"choices\":[{\"delta\":{\"con\n\n", llmtest.Chunk(`{}`, "stop")))
		result, err := target(t, model).Stream(within(t), hello, nil)
		requireKind(t, llm.KindTruncated, err)
		require.Contains(t, result.Quirks, "event_not_json")
	})
}

func TestDelaysAreFoundWhereverTheyStand(t *testing.T) {
	const google = `{"error":{"code":429,"message":"used up","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"17.5s"}]}}`
	for name, test := range map[string]struct {
		step llmtest.Step
		want string
	}{
		"in RetryInfo":                {llmtest.Status(429, "["+google+"]"), "17.5s"},
		"in RetryInfo in a stream":    {llmtest.Raw(sse, "data: "+google+"\n\n"), "17.5s"},
		"in a sentence":               {llmtest.Error(429, "rate_limit_exceeded", "Please try again in 1m3.25s. Thanks"), "1m3.25s"},
		"in x-ratelimit-reset":        {llmtest.Error(429, "", "slow down").Header("x-ratelimit-reset-tokens", "450ms").Header("x-ratelimit-remaining-tokens", "0"), "450ms"},
		"not of another limit":        {llmtest.Error(429, "", "slow down").Header("x-ratelimit-reset-tokens", "450ms").Header("x-ratelimit-remaining-tokens", "9"), "0s"},
		"not of an error of a server": {llmtest.Error(500, "", "oops").Header("x-ratelimit-reset-requests", "450ms"), "0s"},
		"in the headers of metadata":  {llmtest.Status(429, `{"error":{"message":"slow down","code":429,"metadata":{"headers":{"X-RateLimit-Reset-Requests":"2s","X-RateLimit-Remaining-Requests":"0"}}}}`), "2s"},
		"in Retry-After first":        {llmtest.Status(429, google).RetryAfter("3"), "3s"},
		"in retry-after-ms first":     {llmtest.Status(503, "").Header("retry-after-ms", "250").RetryAfter("1"), "250ms"},
		"nowhere":                     {llmtest.Status(503, ""), "0s"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := target(t, llmtest.Start(t, test.step)).Stream(within(t), hello, nil)
			var failed *llm.Error
			require.ErrorAs(t, err, &failed)
			require.Equal(t, test.want, failed.RetryAfter.String())
		})
	}
}

func TestA401SaysEitherThatNoKeyWasSentOrThatItWasRejected(t *testing.T) {
	refusal := llmtest.Error(http.StatusUnauthorized, "invalid_api_key", "Who is it?")
	_, err := target(t, llmtest.Start(t, refusal)).Stream(within(t), hello, nil)
	require.EqualError(t, err, "scripted: unauthorized (401): Who is it? (the key in env:TEST_API_KEY was rejected)")

	model := llmtest.Start(t, refusal)
	keyless, err := llm.New(llm.Options{Providers: []llm.Provider{{ID: "scripted", BaseURL: baseurl.MustParse(model.URL)}}}).
		Resolve(reducer.ProviderConfig{ProviderID: "scripted", Model: "m"})
	require.NoError(t, err)
	_, err = keyless.Stream(within(t), hello, nil)
	require.EqualError(t, err, "scripted: unauthorized (401): Who is it? (no key was sent: none is configured for "+model.URL+")")
}

func TestEventsThatAreNotJSONAreLoggedOnce(t *testing.T) {
	var logged bytes.Buffer
	model := llmtest.Start(t, llmtest.Raw(sse, "data: alive\n\n", llmtest.Chunk(`{"content":"Mind"}`, ""), strings.Repeat("data: "+testKey+"\n\n", 50), llmtest.Chunk(`{}`, "stop")))
	target, err := llm.New(llm.Options{
		Getenv: func(string) string { return testKey }, Logger: slog.New(slog.NewTextHandler(&logged, nil)),
		Providers: []llm.Provider{{ID: "scripted", BaseURL: baseurl.MustParse(model.URL), KeyRef: "env:TEST_API_KEY"}},
	}).Resolve(reducer.ProviderConfig{ProviderID: "scripted", Model: "m"})
	require.NoError(t, err)
	result, err := target.Stream(within(t), hello, nil)
	require.NoError(t, err)
	require.Equal(t, "Mind", result.Text)
	require.Equal(t, 1, strings.Count(logged.String(), "\n"), logged.String())
	require.Contains(t, logged.String(), "alive")
	require.Contains(t, logged.String(), "events=51")
	require.NotContains(t, logged.String(), testKey)
}
