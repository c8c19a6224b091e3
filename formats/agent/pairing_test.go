package agent_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/formats/agent"
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
		{"a second one", call("a", "Read") + result("a", "Read") + result("a", "Read"), "call a, result a, result a"},
		{"a call that comes again", call("a", "Read") + call("a", "Read") + result("a", "Read"), "call a, call a, result a"},
		{"of no call", call("a", "Read") + result("b", "Read") + result("", "Edit") + result("a", "Read"),
			`call a, result a, warning: the result of call "b" has no matching call, warning: the result of a call to tool "Edit" has no matching call`},
		{"a call without one", call("a", "Read") + call("b", "Edit") + result("b", "Edit"), "call a, call b, result b, unknown a"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			events := read(t, agent.Droid, tc.log)
			require.Equal(t, tc.want, strings.Join(tales(events), ", "))
			requireTaken(t, events)
		})
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
			require.Equal(t, []string{`warning: the result of call "0" has no matching call`, "call 0", "call 1", "result 1"}, tales(events[:4]))
			require.Contains(t, string(events[0].Extra["value"]), wait.value[:1000%len(wait.value)])
			requireTaken(t, events)
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
	require.Equal(t, []string{"call 200", "unknown 0", "call 201", "unknown 1"}, tales(events[200:204]))
	require.Contains(t, tales(events), "result 0", "the actual result replaces the placeholder")
	requireTaken(t, events)
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
	told := tales(read(t, agent.Droid, log.String()))
	require.Equal(t, []string{"result open", `warning: the result of call "0" has no matching call`}, told[len(told)-2:])
}

// tales summarizes each event in a word or two.
func tales(events []event.Event) []string {
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
