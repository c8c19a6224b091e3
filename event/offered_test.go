package event_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
)

func TestErrorsOfOfferedToolsNameTheField(t *testing.T) {
	for want, tool := range map[string]event.OfferedTool{
		"ToolsOfferedEvent.tools.0.timeoutMs: want 0 or more, got -1": {Name: "fetch", TimeoutMs: -1},
		"ToolsOfferedEvent.tools.0.attempts: want 0 or more, got -1":  {Name: "fetch", Attempts: -1},
	} {
		body := event.ToolsOffered{RequestID: "demo:r0001", Attempt: 1, Patterns: []string{"fetch"}, Tools: []event.OfferedTool{tool}}
		require.EqualError(t, event.New(body).Validate(), want)
	}
	for want, tool := range map[string]event.WithheldTool{
		"ToolsOfferedEvent.withheld.0.name: empty":                     {Reason: "of type array"},
		"ToolsOfferedEvent.withheld.0.reason: 501 bytes (at most 500)": {Name: "mcp:files/sum", Reason: strings.Repeat("x", 501)},
	} {
		body := event.ToolsOffered{RequestID: "demo:r0001", Attempt: 1, Patterns: []string{"fetch"}, Withheld: []event.WithheldTool{tool}}
		require.EqualError(t, event.New(body).Validate(), want)
	}
}

func TestAWithheldToolChangesTheHash(t *testing.T) {
	body := event.ToolsOffered{Patterns: []string{"mcp:*"}}
	before := body.Hash()
	body.Withheld = []event.WithheldTool{{Name: "mcp:files/sum", Reason: "of type array"}}
	require.NotEqual(t, before, body.Hash())
	require.Equal(t, "none of mcp:*; not offered: mcp:files/sum (of type array)", body.String())
}
