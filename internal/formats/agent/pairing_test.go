package agent_test

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/formats/agent"
)

func TestResultsFollowTheirCalls(t *testing.T) {
	for _, tc := range []struct {
		name, log, want string
	}{
		{"in order", call("a", "Read") + result("a", "Read"), "call a, result a"},
		{"before the call", result("a", "Read") + message("user", "Hello") + call("a", "Read"), "user, call a, result a"},
		{"without an id, the oldest of the tool", call("a", "Read") + call("b", "Edit") + call("c", "Edit") + result("", "Edit") + result("", "Edit") + result("", "Read"),
			"call a, call b, call c, result b, result c, result a"},
		{"without an id, before the call", result("", "Edit") + call("a", "Read") + call("b", "Edit") + result("a", "Read"),
			"call a, call b, result b, result a"},
		{"a second result", call("a", "Read") + result("a", "Read") + result("a", "Read"), "call a, result a, result a"},
		{"a repeated call", call("a", "Read") + call("a", "Read") + result("a", "Read"), "call a, call a, result a"},
		{"without a call", call("a", "Read") + result("b", "Read") + result("", "Edit") + result("a", "Read"),
			`call a, result a, warning: the result of call "b" has no matching call, warning: the result of a call to tool "Edit" has no matching call`},
		{"a call without one", call("a", "Read") + call("b", "Edit") + result("b", "Edit"), "call a, call b, result b, unknown a"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			events := read(t, agent.Droid, tc.log)
			require.Equal(t, tc.want, strings.Join(summaries(events), ", "))
			requireAccepted(t, events)
		})
	}
}

func TestResultsBelongToTheCallsOfTheirSession(t *testing.T) {
	in := func(session, line string) string {
		if session == "" {
			return line
		}
		return strings.Replace(line, "{", `{"session_id":"`+session+`",`, 1)
	}
	callOf := func(session, id string) string { return in(session, call(id, session+"-tool")) }
	resultOf := func(session, id string) string {
		return in(session, fmt.Sprintf(`{"type":"tool_result","id":"%s","toolId":"Read","value":"%s"}`+"\n", id, session))
	}
	for _, tc := range []struct{ name, log, want string }{
		{"interleaved", callOf("s1", "a") + callOf("s2", "a") + resultOf("s1", "a") + resultOf("s2", "a"), "s1-tool: s1, s2-tool: s2"},
		{"in reverse order", callOf("s1", "a") + callOf("s2", "a") + resultOf("s2", "a") + resultOf("s1", "a"), "s1-tool: s1, s2-tool: s2"},
		{"before the call, while another session has one", callOf("s1", "a") + resultOf("s2", "a") + callOf("s2", "a") + resultOf("s1", "a"), "s1-tool: s1, s2-tool: s2"},
		{"after the result of another session", callOf("s1", "a") + resultOf("s1", "a") + callOf("s2", "a") + resultOf("s2", "a"), "s1-tool: s1, s2-tool: s2"},
		{"a second result", callOf("s1", "a") + callOf("s2", "a") + resultOf("s1", "a") + resultOf("s2", "a") + resultOf("s1", "a"), "s1-tool: s1, s2-tool: s2"},
		{"a session that the call does not name", callOf("", "a") + resultOf("s1", "a"), "-tool: s1"},
		{"a session that the result does not name", callOf("s1", "a") + resultOf("", "a"), "s1-tool: "},
		{"no session, after a line of another one", callOf("s1", "a") + callOf("s2", "b") + resultOf("", "a"), "s1-tool: , s2-tool: unknown"},
		{"of a session without the call", callOf("s1", "a") + resultOf("s2", "a"), "s1-tool: unknown"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			events := read(t, agent.Droid, tc.log)
			requireAccepted(t, events)
			tools, results := map[string]string{}, map[string]string{}
			var ids []string
			for _, e := range events {
				switch body := e.Body.(type) {
				case event.ToolCall:
					ids = append(ids, body.ToolCallID)
					tools[body.ToolCallID] = body.ToolName
				case event.ToolResult:
					value, err := strconv.Unquote(string(body.Value))
					if err != nil {
						value = "unknown"
					}
					results[body.ToolCallID] = value
				}
			}
			var got []string
			for _, id := range ids {
				got = append(got, tools[id]+": "+results[id])
			}
			require.Equal(t, tc.want, strings.Join(got, ", "))
		})
	}
}

func TestCallsAndResultsNameTheirSession(t *testing.T) {
	events := read(t, agent.Droid, `{"type":"tool_call","id":"a","toolId":"Read","session_id":"s1"}`+"\n"+result("a", "Read")+call("b", "Read"))
	require.Len(t, events, 4)
	for _, e := range events {
		require.Equal(t, `"s1"`, string(e.Extra["sessionId"]), "%s", e.ClientEventID)
	}
}

func TestMalformedCallsAndResultsLeaveAWarning(t *testing.T) {
	nameless := `{"type":"tool_call","id":"a","parameters":{}}`
	events := read(t, agent.Droid, nameless+"\n"+result("a", "Read"))
	require.Equal(t, []string{"call a", "warning: line 1: tool call without a tool name", "result a"}, summaries(events))
	require.Equal(t, strconv.Quote(nameless), string(events[1].Extra["line"]))
	requireAccepted(t, events)

	events = read(t, agent.Claude, `{"type":"assistant","message":{"content":[{"type":"tool_use","id":"a"},{"type":"tool_use","id":"b","name":"Read"}]}}`+"\n"+
		`{"type":"user","message":{"content":[{"type":"tool_result","content":"lost"},{"type":"tool_result","tool_use_id":"b","content":"found"}]}}`)
	require.Equal(t, []string{
		"call a", "call b", "warning: line 1: tool call without a tool name",
		"result b", "warning: line 2: tool result without a tool_use_id", "unknown a",
	}, summaries(events))
	require.Contains(t, string(events[4].Extra["line"]), "lost")
	requireAccepted(t, events)
}

func TestMessagesWithoutReadableContentLeaveAWarning(t *testing.T) {
	for message, want := range map[string]string{
		`{}`:              "warning: line 1: message.content: missing",
		`{"content":5}`:   "warning: line 1: message.content: want a text or a list of blocks",
		`{"content":"a"}`: "user",
		`{"content":[5]}`: "system: not recorded: content/ (1)",
	} {
		require.Equal(t, []string{want}, summaries(read(t, agent.Claude, `{"type":"user","message":`+message+"}")), message)
	}
}

func TestACallWithoutAnIDGetsOne(t *testing.T) {
	events := read(t, agent.Droid, call("", "Read")+call("", "Read")+result("", "Read")+result("", "Read"))
	require.Len(t, events, 4)
	first, second := events[0].Body.(event.ToolCall).ToolCallID, events[1].Body.(event.ToolCall).ToolCallID
	require.NotEqual(t, first, second)
	require.Equal(t, first, events[2].Body.(event.ToolResult).ToolCallID)
	require.Equal(t, second, events[3].Body.(event.ToolResult).ToolCallID)
}

func TestExcessWaitingResultsBecomeWarnings(t *testing.T) {
	for name, wait := range map[string]struct {
		results int
		value   string
	}{
		"many": {1001, "x"},
		"long": {5, strings.Repeat("x", 900<<10)},
	} {
		t.Run(name, func(t *testing.T) {
			var log strings.Builder
			for n := range wait.results {
				fmt.Fprintf(&log, `{"type":"tool_result","id":"%d","value":"%s"}`+"\n", n, wait.value)
			}
			log.WriteString(call("0", "Read") + call("1", "Read"))
			events := read(t, agent.Droid, log.String())
			require.Equal(t, []string{`warning: the result of call "0" has no matching call`, "call 0", "call 1", "result 1"}, summaries(events[:4]))
			require.Contains(t, string(events[0].Extra["value"]), wait.value[:1000%len(wait.value)])
			requireAccepted(t, events)
		})
	}
}

func TestExcessOpenCallsEndOldestFirst(t *testing.T) {
	var log strings.Builder
	for n := range 1100 {
		log.WriteString(call(fmt.Sprint(n), "Read"))
	}
	log.WriteString(result("0", "Read"))
	events := read(t, agent.Droid, log.String())
	require.Equal(t, []string{"call 200", "unknown 0", "call 201", "unknown 1"}, summaries(events[200:204]))
	require.Contains(t, summaries(events), "result 0", "the actual result replaces the placeholder")
	requireAccepted(t, events)
}

func TestOldFinishedCallsAreForgotten(t *testing.T) {
	log := strings.Builder{}
	log.WriteString(call("open", "Edit"))
	for n := range 2001 {
		log.WriteString(call(fmt.Sprint(n), "Read"))
		log.WriteString(result(fmt.Sprint(n), "Read"))
	}
	log.WriteString(result("0", "Read"))
	log.WriteString(result("open", "Edit"))
	all := summaries(read(t, agent.Droid, log.String()))
	require.Equal(t, []string{"result open", `warning: the result of call "0" has no matching call`}, all[len(all)-2:])
}

// summaries describes each event in a word or two.
func summaries(events []event.Event) []string {
	var out []string
	for _, e := range events {
		switch body := e.Body.(type) {
		case event.ToolCall:
			out = append(out, "call "+body.ToolCallID)
		case event.ToolResult:
			if reflect.DeepEqual(body, event.UnknownResult(body.ToolCallID)) {
				out = append(out, "unknown "+body.ToolCallID)
				continue
			}
			out = append(out, "result "+body.ToolCallID)
		case event.UserMessage:
			out = append(out, "user")
		case event.Note:
			out = append(out, string(body.Kind)+": "+body.Content)
		}
	}
	return out
}
