package event_test

import (
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
}
