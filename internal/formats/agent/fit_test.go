package agent_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/formats/agent"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

func TestLimitsAreWithinThoseOfAContext(t *testing.T) {
	require.LessOrEqual(t, agent.MaxEventBytes, wire.MaxEventBytes)
	require.Less(t, agent.MaxOpenCalls, reducer.MaxOpenToolCalls)
}

func TestLongTextsLoseTheirMiddle(t *testing.T) {
	output := "first line\n" + strings.Repeat("a line like many others\n", 150_000) + "[Process exited with code 3]"
	require.Greater(t, len(output), 3*agent.MaxEventBytes)
	for _, tc := range []struct {
		name  string
		value any
		want  string // also part of the value
	}{
		{"a text", output, "bytes omitted]"},
		{"a text in an object", map[string]any{"output": output[len(output)-1_200_000:], "exitCode": 3}, `"exitCode":3`},
		{"characters that are long in JSON", strings.Repeat("\x01", 200_000) + "[Process exited with code 3]", "bytes omitted]"},
		{"characters of several bytes", strings.Repeat("ä", 600_000) + "[Process exited with code 3]", "bytes omitted]"},
		{"more items than fit", append(slices.Repeat([]string{output[:500]}, 3000), "the last"), "the last"},
		{"a number", json.Number(strings.Repeat("1", 1_200_000)), "bytes omitted]"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			value, err := json.Marshal(tc.value)
			require.NoError(t, err)
			log := call("a", "Execute") + `{"type":"tool_result","id":"a","value":` + string(value) + "}\n" + message("user", "Hello")
			events := read(t, agent.Droid, log)
			require.Equal(t, []string{"call a", "result a", "user"}, summaries(events))
			kept := string(events[1].Body.(event.ToolResult).Value)
			require.Contains(t, kept, tc.want)
			require.Greater(t, len(kept), 200_000, "more was cut than needed")
			require.True(t, strings.Contains(string(value), "exited with code 3") == strings.Contains(kept, "exited with code 3"))
			data, err := events[1].MarshalJSON()
			require.NoError(t, err)
			require.LessOrEqual(t, len(data), agent.MaxEventBytes)
		})
	}
}

func TestAnOversizedLineKeepsItsBeginning(t *testing.T) {
	log := `{"type":"message","role":"user","text":"` + strings.Repeat("x", agent.MaxLineBytes) + "\"}\n" + message("user", "Hello")
	events := read(t, agent.Droid, log)
	require.Equal(t, []string{"warning: line 1 has 16777258 bytes (at most 16777216)", "user"}, summaries(events))
	require.Contains(t, string(events[0].Extra["line"]), `"{\"type\":\"message\"`)
}
