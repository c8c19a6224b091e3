package chat_test

import (
	"encoding/json"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
)

func asks(parameters string) event.Body {
	return event.SetTools{Tools: []event.Tool{{Name: "ask_user", Parameters: event.Object(parameters)}}}
}

func question(id, arguments string) event.Body {
	return event.ToolCall{ToolCallID: id, ToolName: "ask_user", Parameters: json.RawMessage(arguments), RequestID: request}
}

// questioned is a screen with calls that ask questions, whose first prompt accepts keys.
func questioned(t *testing.T, tools event.Body, questions ...string) *screen {
	s := open(t, tools)
	s.record(event.UserMessage{Content: "Plan"}, started(2), event.AssistantMessage{RequestID: request, ThroughEventID: "demo:0002"})
	for i, arguments := range questions {
		s.record(question([]string{"call_1", "call_2"}[i], arguments))
	}
	s.record(event.LLMAttemptEnded{RequestID: request, Attempt: 1, Outcome: event.AttemptToolCalls})
	s.untilViewed("answer ask_user: ")
	return s
}

func (s *screen) screenText() string {
	return strings.Join(strings.Fields(s.printed()+s.view()), " ")
}

func TestALineIsConvertedByTheSchemaOfAQuestion(t *testing.T) {
	const object = `{"type":"object","properties":{"question":{"type":"string"},"answer":`
	for name, test := range map[string]struct {
		tool, arguments string
		line, want      string
		problem         string // shown for a line that is not accepted; then the prompt remains
	}{
		"a text":                          {`{"type":"object"}`, `{"question":"Where to?"}`, "Rome, or 7", `"Rome, or 7"`, ""},
		"a text that is a number":         {object + `{"type":"string"}}}`, `{"question":"Code?"}`, "0042", `"0042"`, ""},
		"a text that begins with a slash": {`{}`, `{"question":"Path?"}`, "//tmp", `"/tmp"`, ""},
		"a number":                        {object + `{"type":"number"}}}`, `{"question":"Price?"}`, "2.50", `2.50`, ""},
		"a number, not a text":            {object + `{"type":"number"}}}`, `{"question":"Price?"}`, "cheap", "", "not a number"},
		"a whole number":                  {object + `{"type":"integer","minimum":3}}}`, `{"question":"How many?"}`, "2", "", "not accepted: "},
		"a boolean":                       {object + `{"type":"boolean"}}}`, `{"question":"Sure?"}`, "Yes", `true`, ""},
		"a boolean, not a text":           {object + `{"type":"boolean"}}}`, `{"question":"Sure?"}`, "perhaps", "", "not yes or no"},
		"a choice by number":              {object + `{"enum":["red",7,true]}}}`, `{"question":"Which?"}`, "2", `7`, ""},
		"a choice by text":                {object + `{"enum":["red",7,true]}}}`, `{"question":"Which?"}`, "RED", `"red"`, ""},
		"no choice":                       {object + `{"enum":["red",7,true]}}}`, `{"question":"Which?"}`, "blue", "", "not a number or a choice"},
		"a choice of the arguments":       {`{}`, `{"question":"Which?","options":["tea","coffee"]}`, "2", `"coffee"`, ""},
		"a choice with hidden characters": {`{}`, "{\"question\":\"Who?\",\"options\":[\"bank\u202eknab\u202c\"]}", "1", "\"bank\u202eknab\u202c\"", ""},
		"not one of the suggestions":      {`{}`, `{"question":"Which?","drinks":["tea","coffee"]}`, "water", `"water"`, ""},
		"an object":                       {object + `{"type":"object","required":["a"]}}}`, `{"question":"What?"}`, `{"a":[1]}`, `{"a":[1]}`, ""},
		"an object, not a text":           {object + `{"type":"object"}}}`, `{"question":"What?"}`, `a`, "", "not JSON"},
		"a number or a text":              {object + `{"type":["integer","string"]}}}`, `{"question":"What?"}`, `12`, `12`, ""},
		"a schema of the arguments":       {`{}`, `{"message":"Sure?","requestedSchema":{"type":"boolean"}}`, `n`, `false`, ""},
		"a schema that is none":           {object + `{"type":"boolean","pattern":"("}}}`, `{"question":"What?","schema":"public"}`, `x`, `"x"`, ""},
		"no line":                         {`{}`, `{"question":"Where to?"}`, "", "", "no answer (type text, or /deny)"},
	} {
		t.Run(name, func(t *testing.T) {
			s := questioned(t, asks(test.tool), test.arguments)
			s.resize(100, 30)
			s.enter(test.line)
			if test.problem != "" {
				s.untilViewed(test.problem)
				require.Contains(t, s.view(), "answer ask_user: ")
				require.Contains(t, s.view(), "› "+test.line)
				return
			}
			require.Equal(t, event.ToolResult{ToolCallID: "call_1", Value: json.RawMessage(test.want)}, s.takeSent()[0].Body)
			s.record(event.ToolResult{ToolCallID: "call_1", Value: json.RawMessage(test.want)})
			s.until("answered", func() bool { return !strings.Contains(s.view(), "answer ask_user") })
		})
	}
}

func TestAQuestionIsShownInFullWithItsChoices(t *testing.T) {
	s := questioned(t, asks(`{}`), `{"question":"Which\u001b[2J way\ndo you prefer?","options":["left","right"],"urgent":true}`)
	require.Contains(t, s.printed(), "? Which\\u001b[2J way\ndo you prefer?\nurgent: true\n  1. left\n  2. right\n")
	require.NotContains(t, s.view(), "▸")
}

func TestAQuestionIsAnsweredOnce(t *testing.T) {
	t.Run("and the next one follows", func(t *testing.T) {
		s := questioned(t, asks(`{}`), `{"question":"First?"}`, `{"question":"Second?"}`)
		s.resize(120, 30)
		s.untilViewed("1 more wait")
		require.NotContains(t, s.printed(), "Second?")
		s.enter("one")
		require.Equal(t, "call_1", s.takeSent()[0].Body.(event.ToolResult).ToolCallID)
		s.record(event.ToolResult{ToolCallID: "call_1", Value: json.RawMessage(`"one"`)})
		s.untilPrinted(`✓ ask_user {"question":"First?"}: one`)
		s.untilPrinted("? Second?")
		s.enter("two")
		require.Equal(t, "call_2", s.takeSent()[0].Body.(event.ToolResult).ToolCallID)
	})
	t.Run("unless another client answers", func(t *testing.T) {
		s := questioned(t, asks(`{}`), `{"question":"First?"}`)
		s.typed("on")
		s.record(event.ToolResult{ToolCallID: "call_1", Value: json.RawMessage(`"elsewhere"`)})
		s.until("prompt gone", func() bool { return !strings.Contains(s.view(), "answer ask_user") })
		require.NotContains(t, s.view(), "› on")
		s.press(tea.KeyUp, 0)
		require.Contains(t, s.view(), "› on", "the line is in the history")
		require.Empty(t, s.fake.sent)
	})
	t.Run("or declined", func(t *testing.T) {
		s := questioned(t, asks(`{}`), `{"question":"First?"}`)
		s.enter("/deny Not my trip.")
		require.Equal(t, event.ToolResult{
			ToolCallID: "call_1", Error: json.RawMessage(`"the user declined to answer: Not my trip."`), IsError: true,
		}, s.takeSent()[0].Body)
	})
	t.Run("or postponed to write a message", func(t *testing.T) {
		s := questioned(t, asks(`{}`), `{"question":"First?"}`)
		s.typed("Stop")
		s.press(tea.KeyEscape, 0)
		require.Contains(t, s.view(), "/answer asks again")
		s.enter(" it")
		require.Equal(t, event.UserMessage{Content: "Stop it"}, s.takeSent()[0].Body)
		s.enter("/answer")
		s.untilViewed("answer ask_user: ")
		require.Equal(t, 1, strings.Count(s.printed(), "? First?"))
	})
	t.Run("or interrupted", func(t *testing.T) {
		s := questioned(t, asks(`{}`), `{"question":"First?"}`)
		s.press('c', tea.ModCtrl)
		s.until("interrupted", func() bool { return len(s.fake.interrupts) == 1 })
	})
	t.Run("and asked again if the answer is not sent", func(t *testing.T) {
		s := questioned(t, asks(`{}`), `{"question":"First?"}`)
		s.fake.sendErr.set(client.ErrUnreachable)
		s.enter("one")
		s.takeSent()
		s.untilPrinted("✗ answer not sent: temporal is")
		s.untilViewed("answer ask_user: ")
	})
}

func TestALineThatIsBeingTypedIsNotTheAnswer(t *testing.T) {
	s := open(t, asks(`{}`))
	s.typed("By the w")
	s.record(event.UserMessage{Content: "Plan"}, started(2), event.AssistantMessage{RequestID: request, ThroughEventID: "demo:0002"},
		question("call_1", `{"question":"Where to?"}`))
	s.untilViewed("waiting for your answer")
	s.enter("ay")
	require.Equal(t, event.UserMessage{Content: "By the way"}, s.takeSent()[0].Body)
	s.untilViewed("answer ask_user: ")
}

func TestJoiningAContextThatAsksAQuestion(t *testing.T) {
	s := open(t, asks(`{}`), event.UserMessage{Content: "Plan"}, started(2),
		event.AssistantMessage{RequestID: request, ThroughEventID: "demo:0002"}, question("call_1", `{"question":"Where to?"}`),
		event.LLMAttemptEnded{RequestID: request, Attempt: 1, Outcome: event.AttemptToolCalls})
	s.untilViewed("answer ask_user: ")
	s.untilPrinted("? Where to?\n")
}

func TestAQuestionThatNeedsAnApprovalIsAskedAfterIt(t *testing.T) {
	s := open(t, asks(`{}`))
	s.record(event.UserMessage{Content: "Plan"}, started(2), event.AssistantMessage{RequestID: request, ThroughEventID: "demo:0002"},
		question("call_1", `{"question":"Where to?"}`), approvalRequested("call_1"))
	s.untilViewed("approve ask_user?")
	s.record(event.ApprovalDecided{ToolCallID: "call_1", Decision: event.Approve})
	s.untilViewed("answer ask_user: ")
	s.record(event.UserMessage{Content: "Plan"}, question("call_2", `{"question":"When?"}`), approvalRequested("call_2"))
	s.enter("Rome")
	s.takeSent()
	s.record(event.ApprovalDecided{ToolCallID: "call_2", Decision: event.Deny})
	s.until("denied", func() bool { return strings.Contains(s.screenText(), "denied ask_user") })
	require.NotContains(t, s.view(), "answer ask_user: ")
}
