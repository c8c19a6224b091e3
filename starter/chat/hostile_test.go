package chat_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/terminal"
)

func TestNoTextOnTheScreenControlsTheTerminal(t *testing.T) {
	const (
		hostile = "X\x1b]0;t\x07\x1b[2J\u009b31m\r\x7f\u0085\u202e\u2066\u2028\x9b5mY"
		request = "demo:r0001"
	)
	rows := ""
	for i := range 12 {
		rows += fmt.Sprint(hostile, i, "\n")
	}
	s := open(t, event.UserMessage{Content: hostile}, event.AssistantMessage{Content: hostile},
		event.ToolCall{ToolCallID: hostile, ToolName: hostile, Parameters: []byte(`"` + "\u009b" + `"`)})
	check := func() {
		t.Helper()
		// The cursor is a reversed cell.
		view := strings.NewReplacer("\x1b[7m", "", ansi.ResetStyle, "").Replace(s.model.View().Content)
		for _, text := range []string{s.printed(), view} {
			require.Equal(t, terminal.Clean(text), text)
		}
	}
	s.record(
		event.UserMessage{Content: hostile},
		event.LLMRequestStarted{RequestID: request, ProviderID: hostile, Model: hostile, ThroughEventID: "demo:0004", Attempt: 1},
		event.TextDelta{RequestID: request, Attempt: 1, Delta: rows + hostile, ThroughEventID: "demo:0004"},
		event.UserMessage{Content: hostile}, event.Note{Kind: hostile, Content: hostile}, event.SystemPrompt{Content: hostile},
	)
	s.untilViewed(`X\u001b]0;t`)
	check()
	s.record(
		event.LLMRequestFellBack{RequestID: request, FromProvider: hostile, ToProvider: hostile, Error: hostile},
		event.AssistantMessage{RequestID: request, Content: hostile, ThroughEventID: "demo:0004"},
		event.LLMRequestFailed{RequestID: request, Error: hostile},
		event.InputRejected{Reason: hostile}, event.SessionEnded{Reason: hostile},
	)
	s.untilPrinted("session ended:\nX\\u001b]0;t")
	check()
	s.fake.eventsErr.set(errors.New(hostile))
	s.enter("/events")
	s.enter("/attach " + hostile)
	s.enter("/" + hostile)
	s.untilPrinted("✗\nX\\u001b]0;t")
	check()
	s.typed(hostile)
	check()
	s.update(tea.PasteMsg{Content: hostile})
	check()
	s.press(tea.KeyEnter, 0)
	s.fake.sendErr.set(errors.New(hostile))
	s.takeSent()
	s.untilPrinted("not sent:\nX\\u001b]0;t")
	check()
	close(s.fake.log)
	s.untilPrinted("follow the log: ")
	check()
}
