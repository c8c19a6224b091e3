package event_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
)

func TestToolsAreDecoded(t *testing.T) {
	for in, want := range map[string]event.Body{
		`{"_tag":"SetTools"}`:                            event.SetTools{},
		`{"_tag":"SetTools","tools":[],"approve":[]}`:    event.SetTools{},
		`{"_tag":"SetTools","tools":["a","mcp:b/*"]}`:    event.SetTools{Tools: event.ToolList{{Pattern: "a"}, {Pattern: "mcp:b/*"}}},
		`{"_tag":"SetTools","tools":[{"name":"ask"}]}`:   event.SetTools{Tools: event.ToolList{{Name: "ask"}}},
		`{"_tag":"SetTools","approve":[{"tool":"ask"}]}`: event.SetTools{Approve: event.ApprovalRules{{Tool: "ask"}}},
		`{"_tag":"SetTools","tools":[{"name":"ask","description":"d","parameters":{ "b":1,"a":2 }}],"approve":["x",{"tool":"ask","when":{}}],"maxSteps":100,"parallel":16,"maxRepeats":10,"expiryMs":2592000000}`: event.SetTools{
			Tools:    event.ToolList{{Name: "ask", Description: "d", Parameters: event.Object(`{"b":1,"a":2}`)}},
			Approve:  event.ApprovalRules{{Tool: "x"}, {Tool: "ask", When: event.Object(`{}`)}},
			MaxSteps: new(100), Parallel: new(16), MaxRepeats: new(10), ExpiryMs: new(int64(2592000000)),
		},
		`{"_tag":"ApprovalDecided","decision":"deny"}`: event.ApprovalDecided{Decision: event.Deny},
		`{"_tag":"ApprovalDecided","toolCallId":"c","decision":"approve","parameters":{"b":1,"a":2}}`: event.ApprovalDecided{
			ToolCallID: "c", Decision: event.Approve, Parameters: json.RawMessage(`{"a":2,"b":1}`),
		},
	} {
		got, err := event.DecodeInput([]byte(in))
		require.NoError(t, err, in)
		require.Equal(t, []event.Event{event.New(want)}, got, in)
	}
}

func TestInvalidToolsAreRejected(t *testing.T) {
	list := func(n int, format string) string {
		var items []string
		for i := range n {
			items = append(items, fmt.Sprintf(format, i))
		}
		return "[" + strings.Join(items, ",") + "]"
	}
	large := `{"name":"t%d","description":"` + strings.Repeat("x", event.MaxDescriptionBytes) + `"}`
	for in, field := range map[string]string{
		`"tools":"fetch"`:   "tools",
		`"tools":[7]`:       "tools.0",
		`"tools":[""]`:      "tools.0",
		`"tools":["a","a"]`: "tools.1",
		`"tools":["a\nb"]`:  "tools.0",
		`"tools":["` + strings.Repeat("x", 129) + `"]`:     "tools.0",
		`"tools":` + list(129, `"t%d"`):                    "tools",
		`"tools":` + list(16, large):                       "tools",
		`"tools":[{"name":"a b"}]`:                         "tools.0.name",
		`"tools":[{"description":"no name"}]`:              "tools.0.name",
		`"tools":[{"name":"a","parameters":[]}]`:           "tools.0.parameters",
		`"tools":[{"name":"a","parameters":{"apiKey":1}}]`: "tools.0.parameters",
		`"tools":[{"name":"a","description":"` + strings.Repeat("x", event.MaxDescriptionBytes+1) + `"}]`: "tools.0.description",
		`"approve":[{"when":{}}]`:            "approve.0",
		`"approve":[{"tool":"a","when":[]}]`: "approve.0.when",
		`"approve":` + list(129, `"t%d"`):    "approve",
		`"maxSteps":0`:                       "maxSteps",
		`"maxSteps":101`:                     "maxSteps",
		`"parallel":0`:                       "parallel",
		`"parallel":17`:                      "parallel",
		`"maxRepeats":1`:                     "maxRepeats",
		`"maxRepeats":11`:                    "maxRepeats",
		`"expiryMs":999`:                     "expiryMs",
		`"expiryMs":2592000001`:              "expiryMs",
	} {
		_, err := event.DecodeInput([]byte(`{"_tag":"SetTools",` + in + `}`))
		var failed *event.FieldError
		require.ErrorAs(t, err, &failed, in)
		require.True(t, strings.HasPrefix(failed.Field, field), "%s: %v", in, err)
	}
}

func TestInvalidDecisionsAreRejected(t *testing.T) {
	for in, field := range map[string]string{
		`"decision":"maybe"`:                                                                       "decision",
		`"toolCallId":"c"`:                                                                         "decision",
		`"decision":"approve","parameters":{}`:                                                     "parameters",
		`"decision":"deny","toolCallId":"c","parameters":{}`:                                       "parameters",
		`"decision":"approve","toolCallId":"c","parameters":[]`:                                    "parameters",
		`"decision":"approve","toolCallId":"c","parameters":{"a":{"apiKey":"abc"}}`:                "parameters",
		`"decision":"approve","toolCallId":"c","parameters":` + object(event.MaxArgumentBytes+1):   "parameters",
		`"decision":"deny","reason":"` + strings.Repeat("x", event.MaxApprovalReasonBytes+1) + `"`: "reason",
		`"decision":"deny","decidedBy":"a\u001bb"`:                                                 "decidedBy",
	} {
		_, err := event.DecodeInput([]byte(`{"_tag":"ApprovalDecided",` + in + `}`))
		var failed *event.FieldError
		require.ErrorAs(t, err, &failed, in)
		require.True(t, strings.HasPrefix(failed.Field, field), "%s: %v", in, err)
	}
}

func TestToolPatterns(t *testing.T) {
	for _, test := range []struct {
		pattern, name string
		want          bool
	}{
		{"fetch", "fetch", true}, {"fetch", "fetched", false}, {"fetch", "", false}, {"*", "", true}, {"*", "a/b", true},
		{"mcp:files/*", "mcp:files/read", true}, {"mcp:files/*", "mcp:files/a/b", true}, {"mcp:files/*", "mcp:file/read", false},
		{"mcp:*/write_*", "mcp:files/write_file", true}, {"mcp:*/write_*", "mcp:files/read_file", false},
		{"*file", "read_file", true}, {"*file", "files", false}, {"a*a", "a", false}, {"a*a", "aa", true}, {"a*b*c", "abbc", true},
		{"a*b*c", "acb", false}, {"a**b", "axb", true}, {"[a]", "a", false}, {"?", "a", false},
	} {
		require.Equal(t, test.want, event.MatchTool(test.pattern, test.name), "%s %s", test.pattern, test.name)
	}
}

func TestLimitsHaveDefaults(t *testing.T) {
	defaults := event.ToolLimits{MaxSteps: 16, Parallel: 4, MaxRepeats: 3, Expiry: 24 * time.Hour}
	require.Equal(t, defaults, (*event.SetTools)(nil).Limits())
	require.Equal(t, defaults, (&event.SetTools{}).Limits())
	set := event.SetTools{MaxSteps: new(1), Parallel: new(2), MaxRepeats: new(4), ExpiryMs: new(int64(5000))}
	require.Equal(t, event.ToolLimits{MaxSteps: 1, Parallel: 2, MaxRepeats: 4, Expiry: 5 * time.Second}, set.Limits())
}

func TestToolsInWords(t *testing.T) {
	for want, tools := range map[string]event.SetTools{
		"none": {},
		"fetch, client tool ask; approve fetch, ask (conditionally); at most 8 steps; 2 calls in parallel; identical calls: at most 3 per turn; expiry 1h0m0s": {
			Tools:    event.ToolList{{Pattern: "fetch"}, {Name: "ask"}},
			Approve:  event.ApprovalRules{{Tool: "fetch"}, {Tool: "ask", When: event.Object(`{}`)}},
			MaxSteps: new(8), Parallel: new(2), MaxRepeats: new(4), ExpiryMs: new(int64(3_600_000)),
		},
	} {
		require.Equal(t, want, tools.String())
	}
}

// Models and tools produce any bytes; an event holds only valid ones.
func TestAnyBytesOfAToolFitIntoAnEvent(t *testing.T) {
	for in, want := range map[string]string{
		``: ``, ` `: ``, `null`: ``, ` null `: ``, `{ "b":1, "a":"<" }`: `{"a":"<","b":1}`, `{"n":`: `"{\"n\":"`, "\xff": "\"\uFFFD\"",
		`{"apiKey":"abc","x":"sk-0123456789abcdef"}`: `{"apiKey [removed]":null,"x":"[removed]"}`, `1e3`: `1e3`,
	} {
		require.Equal(t, want, string(event.ToolValue(json.RawMessage(in))), in)
	}
	deep := strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
	require.Equal(t, `"`+deep+`"`, string(event.ToolValue(json.RawMessage(deep))))
	rapid.Check(t, func(t *rapid.T) {
		raw := rapid.OneOf(
			rapid.SliceOf(rapid.Byte()), rapid.Map(eventtest.Value(), func(v json.RawMessage) []byte { return v }),
			rapid.SampledFrom([][]byte{[]byte(`{"a":{"x_api_key":[1]}}`), []byte(`"\ud800"`), []byte("\"\xff\"")}),
		).Draw(t, "raw")
		value := event.ToolValue(raw)
		require.Equal(t, value, event.ToolValue(value), "the value of a value")
		e := event.New(event.ToolCall{ToolCallID: "c", ToolName: "n", Parameters: value})
		require.NoError(t, e.Validate())
		data, err := json.Marshal(e)
		require.NoError(t, err)
		got, err := event.DecodeInput(data)
		require.NoError(t, err)
		require.Equal(t, []event.Event{e}, got)
	})
}

func TestARuleThatCanMatchNoToolIsIdle(t *testing.T) {
	for _, test := range []struct {
		tools string // the tools of the event
		rule  string
		want  bool
	}{
		{`["fetch"]`, "fetch", false},
		{`["fetch"]`, "fecth", true},
		{`["fetch"]`, "f*", false},
		{`["fetch"]`, "mcp:*", true},
		{`["fetch"]`, "*", false},
		{`["*"]`, "anything", false},
		{`["*"]`, "mcp:files/*", false},
		{`["mcp:files/*"]`, "mcp:files/wirte_*", false}, // a server may have such tools
		{`["mcp:files/*"]`, "mcp:web/*", true},
		{`["mcp:files/*"]`, "*/write", false},
		{`["mcp:*/read"]`, "mcp:files/*", false},
		{`["mcp:*/read"]`, "mcp:*/write", true},
		{`["mcp:files/read"]`, "mcp__files__read", false}, // its name for models
		{`["mcp:files/read"]`, "mcp:files/write", true},
		{`[{"name":"ask"}]`, "ask", false},
		{`[{"name":"ask"}]`, "asks", true},
		{`["fetch",{"name":"ask"}]`, "a*", false},
		{`[]`, "fetch", false},
	} {
		var set event.SetTools
		require.NoError(t, json.Unmarshal([]byte(`{"tools":`+test.tools+`}`), &set))
		require.Equal(t, test.want, set.IsIdle(event.ApprovalRule{Tool: test.rule}), "%s %s", test.tools, test.rule)
	}
}

// A warning about a rule with an effect would mislead.
func TestARuleThatMatchesAToolIsNeverIdle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringMatching(`[ab:*]{1,5}`)
		offered, rule, name := pattern.Draw(t, "tool"), pattern.Draw(t, "rule"), rapid.StringMatching(`[ab:]{1,4}`).Draw(t, "name")
		set := event.SetTools{Tools: event.ToolList{{Pattern: offered}}}
		if event.MatchTool(offered, name) && event.MatchTool(rule, name) {
			require.False(t, set.IsIdle(event.ApprovalRule{Tool: rule}))
		}
	})
}
