package chat_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/starter/chat"
	"github.com/seed-9ed7edd4/chronicle/starter/show"
)

// timeout is a generous hang bound; recordTimeout is short.
const (
	timeout       = time.Minute
	recordTimeout = time.Millisecond
)

const request = "demo:r0001"

func started(through int) event.Body {
	return event.LLMRequestStarted{RequestID: request, ProviderID: "p", Model: "m", ThroughEventID: event.FormatID("demo", through), Attempt: 1}
}

func delta(index int, text string) event.Body {
	return event.TextDelta{RequestID: request, Attempt: 1, Index: index, Delta: text}
}

func TestAnAnswer(t *testing.T) {
	t.Run("is in view until its lines are finished, and printed then", func(t *testing.T) {
		s := open(t)
		s.record(event.UserMessage{Content: "Hi"}, started(1), delta(0, "one\ntw"))
		s.untilPrinted("› Hi\none\n")
		s.untilViewed("tw\n")
		require.NotContains(t, s.printed(), "tw")
		s.record(event.AssistantMessage{RequestID: request, Content: "one\ntwo", ThroughEventID: "demo:0001"},
			event.LLMRequestCompleted{RequestID: request})
		s.untilPrinted("one\ntwo\n")
		require.Equal(t, 1, strings.Count(s.printed(), "two"))
	})
	t.Run("never fills more than a few rows of the view", func(t *testing.T) {
		s := open(t)
		s.record(event.UserMessage{Content: "Hi"}, started(1), delta(0, strings.Repeat("word ", 200)+"end"))
		s.untilViewed("end")
		require.LessOrEqual(t, strings.Count(s.view(), "\n"), 8)
		s.until("nothing is lost", func() bool { return strings.Count(s.printed()+s.view(), "word") == 200 })
	})
	t.Run("leaves a row of a small window free", func(t *testing.T) {
		s := open(t)
		s.resize(40, 4)
		s.record(event.UserMessage{Content: "Hi"}, started(1), delta(0, strings.Repeat("word ", 200)+"end"))
		s.untilViewed("end")
		require.Equal(t, 2, strings.Count(s.view(), "\n"))
		require.Contains(t, s.view(), "\n› ")
	})
	t.Run("that restarts replaces the text in view", func(t *testing.T) {
		s := open(t)
		s.record(event.UserMessage{Content: "Hi"}, started(1), delta(0, "bad"))
		s.untilViewed("bad")
		s.record(event.TextDelta{RequestID: request, Attempt: 2, Delta: "good", Reset: true})
		s.untilViewed("good")
		require.NotContains(t, s.view()+s.printed(), "bad")
		require.NotContains(t, s.printed(), "void")
	})
	t.Run("that restarts says so if a part was printed", func(t *testing.T) {
		s := open(t)
		s.record(event.UserMessage{Content: "Hi"}, started(1), delta(0, "bad\n"),
			event.TextDelta{RequestID: request, Attempt: 2, Delta: "good", Reset: true})
		s.untilPrinted("bad\n[the answer restarts")
	})
	t.Run("is preceded by the last line of its reasoning, then by a note", func(t *testing.T) {
		s := open(t)
		s.record(event.UserMessage{Content: "Hi"}, started(1),
			event.ReasoningDelta{RequestID: request, Attempt: 1, Index: 0, Delta: "They greet me.\n"},
			event.ReasoningDelta{RequestID: request, Attempt: 1, Index: 1, Delta: "I greet \x1b[2J back"})
		s.untilViewed(`I greet \u001b[2J back`)
		require.NotContains(t, s.view(), "They greet")
		require.Contains(t, s.view(), "thinking · Ctrl-C interrupts")
		s.record(delta(2, "Hello\n"))
		s.untilPrinted("thought\nHello\n")
		require.NotContains(t, s.view()+s.printed(), "I greet")
	})
	t.Run("that was interrupted before its text leaves a note", func(t *testing.T) {
		s := open(t)
		s.record(event.UserMessage{Content: "Hi"}, started(1),
			event.ReasoningDelta{RequestID: request, Attempt: 1, Delta: "They"},
			event.AssistantMessage{RequestID: request, Reasoning: "They", ThroughEventID: "demo:0001", Partial: true},
			event.LLMRequestInterrupted{RequestID: request, Reason: event.ReasonCancelled})
		s.untilPrinted("thought\n⏹ interrupted: cancelled\n")
	})
	t.Run("that was interrupted is marked", func(t *testing.T) {
		s := open(t)
		s.record(event.UserMessage{Content: "Hi"}, started(1), delta(0, "He"),
			event.AssistantMessage{RequestID: request, Content: "Hel", ThroughEventID: "demo:0001", Partial: true},
			event.LLMRequestInterrupted{RequestID: request, PartialResponse: "Hel", Reason: event.ReasonCancelled})
		s.untilPrinted("Hel\n⏹ interrupted: cancelled\n")
		require.NotContains(t, s.view(), "Ctrl-C")
	})
	t.Run("that failed is marked, and the fallback noted", func(t *testing.T) {
		s := open(t)
		s.record(event.UserMessage{Content: "Hi"},
			event.LLMRequestFellBack{RequestID: request, FromProvider: "a", ToProvider: "b", Error: "401"},
			event.LLMRequestFailed{RequestID: request, Error: "quota", RetriesAttempted: 1})
		s.untilPrinted("fell back: from a to b: 401\n✗ failed: quota (after 1 retry)\n")
	})
	t.Run("that was cut off is marked", func(t *testing.T) {
		s := open(t)
		s.record(event.UserMessage{Content: "Hi"}, started(1),
			event.AssistantMessage{RequestID: request, Content: "Hello, my", ThroughEventID: "demo:0001"},
			event.LLMRequestCompleted{RequestID: request, FinishReason: "length"})
		s.untilPrinted("Hello, my\nthe answer was cut off at the maximum\nlength (raise maxTokens)\n")
	})
	t.Run("cannot control the terminal", func(t *testing.T) {
		s := open(t)
		s.record(event.UserMessage{Content: "Hi"}, delta(0, "a\x1b[2Jb\n"))
		s.untilPrinted("a\\u001b[2Jb\n")
	})
}

func TestMarkdownIsRenderedUnlessColorsAreOff(t *testing.T) {
	const text = "# Plan\n- **one**\n"
	for want, style := range map[string]show.Style{"Plan\n• one\n": {Color: true}, text: {}} {
		s := openWith(t, style, event.UserMessage{Content: "Hi"}, event.AssistantMessage{Content: text})
		s.untilPrinted(want)
		s.record(event.UserMessage{Content: "Again"}, started(3), delta(0, "# Plan\n- **o"))
		s.untilPrinted("Again\n" + strings.SplitAfter(want, "\n")[0])
		s.record(delta(1, "ne**\n"))
		s.untilPrinted("Again\n" + want)
	}
}

func TestANewLineWhileAnAnswerRuns(t *testing.T) {
	t.Run("is sent at once, waits in view, and follows the unfinished answer", func(t *testing.T) {
		s := open(t)
		s.record(event.UserMessage{Content: "first"}, started(1), delta(0, "unfin"))
		s.untilViewed("unfin")
		s.enter("second")
		sent := s.takeSent()[0]
		require.Equal(t, event.UserMessage{Content: "second"}, sent.Body)
		s.untilViewed("› second")
		s.recordAs(sent.ClientEventID, event.UserMessage{Content: "second"})
		s.until("in view once", func() bool { return strings.Count(s.view(), "› second") == 1 })
		require.NotContains(t, s.printed(), "second")
		s.record(event.AssistantMessage{RequestID: request, Content: "unfini", ThroughEventID: "demo:0001", Partial: true},
			event.LLMRequestInterrupted{RequestID: request, PartialResponse: "unfini", Reason: event.ReasonNewUserInput})
		s.untilPrinted("unfini\n⏹ interrupted: new user input\n\n› second\n")
		s.untilViewed("waiting for an answer")
	})
	t.Run("precedes the answer of an attempt that has seen it", func(t *testing.T) {
		s := open(t)
		s.record(event.UserMessage{Content: "first"}, started(1), event.UserMessage{Content: "second"})
		s.untilViewed("› second")
		s.record(event.LLMRequestStarted{RequestID: request, ThroughEventID: "demo:0003", Attempt: 2})
		s.untilPrinted("› second\n")
	})
}

func TestALineIsShownFromEnterUntilItIsRecorded(t *testing.T) {
	t.Run("with what it waits for after a while", func(t *testing.T) {
		s := open(t)
		s.enter("Hi")
		s.untilViewed("Temporal has not accepted it yet")
		require.Contains(t, s.view(), "› Hi")
		id := s.takeSent()[0].ClientEventID
		s.untilViewed("waiting for a worker\non task queue contexts")
		require.Contains(t, strings.ReplaceAll(s.view(), "\n", " "), "contexts (Ctrl-D exits)")
		s.recordAs(id, event.UserMessage{Content: "Hi"})
		s.untilPrinted("› Hi\n")
		require.NotContains(t, s.view(), "Hi")
		require.NotContains(t, s.view(), "task queue")
	})
	t.Run("also if Temporal is unreachable", func(t *testing.T) {
		s := open(t)
		s.fake.eventsErr.set(context.DeadlineExceeded)
		s.enter("Hi")
		s.recordAs(s.takeSent()[0].ClientEventID, event.UserMessage{Content: "Hi"})
		s.untilViewed("Temporal is unreachable")
		s.record(started(1), event.LLMRequestCompleted{RequestID: request})
		s.until("answered", func() bool { return !strings.Contains(s.view(), "Temporal") })
	})
	t.Run("or rejected", func(t *testing.T) {
		s := open(t)
		s.enter("Hi")
		s.recordAs(s.takeSent()[0].ClientEventID, event.InputRejected{Reason: "busy"})
		s.untilPrinted("✗ input rejected: busy\n")
		require.NotContains(t, s.view(), "Hi")
	})
	t.Run("and Ctrl-C twice exits if no worker stops the answer", func(t *testing.T) {
		s := open(t)
		s.enter("Hi")
		s.takeSent()
		s.press('c', tea.ModCtrl)
		s.press('c', tea.ModCtrl)
		s.until("left", func() bool { return s.quit })
	})
}

func TestAMessageOfSeveralLines(t *testing.T) {
	const text = "func f() {\n\treturn\n}"
	paste := tea.PasteMsg{Content: strings.ReplaceAll(text, "\n", "\r")}
	t.Run("can be pasted, edited and brought back", func(t *testing.T) {
		s := open(t)
		s.update(paste)
		require.Contains(t, s.view(), "func f() {␤␉return␤}")
		s.enter("!")
		require.Equal(t, event.UserMessage{Content: text + "!"}, s.takeSent()[0].Body)
		s.press(tea.KeyUp, 0)
		s.press(tea.KeyEnter, 0)
		require.Equal(t, event.UserMessage{Content: text + "!"}, s.takeSent()[0].Body)
	})
	t.Run("can be typed with Alt-Enter", func(t *testing.T) {
		s := open(t)
		s.typed("one")
		s.press(tea.KeyEnter, tea.ModAlt)
		s.enter("two")
		require.Equal(t, event.UserMessage{Content: "one\ntwo"}, s.takeSent()[0].Body)
	})
}

func TestAttachmentsThatAreTooLongForOneInputAreSentBeforeTheMessage(t *testing.T) {
	long := event.FileAttachment{MediaType: "text/plain", Source: event.Source{Type: event.SourceBlob, Data: make([]byte, 1<<20)}}
	attachments := []event.Event{event.New(long), event.New(long)}
	message := event.New(event.UserMessage{Content: "Hi"})
	require.Equal(t, [][]event.Event{attachments[:1], {attachments[1], message}}, chat.Inputs(append(attachments, message)))
	require.Equal(t, [][]event.Event{{message, message}}, chat.Inputs([]event.Event{message, message}))
}

func TestLinesAreSentOneAfterTheOther(t *testing.T) {
	s := open(t)
	s.enter("first")
	s.enter("second")
	require.Equal(t, event.UserMessage{Content: "first"}, s.takeSent()[0].Body)
	require.Equal(t, event.UserMessage{Content: "second"}, s.takeSent()[0].Body)
}

func TestALineThatFailsToSendReturnsToTheInput(t *testing.T) {
	s := open(t)
	s.fake.sendErr.set(client.ErrUnreachable)
	s.enter("/attach notes")
	s.enter("Hi")
	s.takeSent()
	s.untilPrinted("✗ not sent: temporal is unreachable")
	s.untilViewed("› Hi")
	require.Contains(t, s.view(), "with the next message: notes")
	require.NotContains(t, s.view(), "waiting")
}

func TestKeys(t *testing.T) {
	t.Run("Ctrl-C interrupts a running answer", func(t *testing.T) {
		s := open(t)
		s.record(event.UserMessage{Content: "Hi"}, started(1))
		s.untilViewed("answering")
		s.press('c', tea.ModCtrl)
		s.until("interrupted", func() bool { return len(s.fake.interrupts) == 1 })
		require.Contains(t, s.view(), "interrupting")
		require.False(t, s.quit)
	})
	t.Run("Enter sends with other modifiers than Alt, too, and may arrive as a line feed", func(t *testing.T) {
		s := open(t)
		for _, enter := range []tea.KeyPressMsg{
			{Code: tea.KeyEnter, Mod: tea.ModShift}, {Code: tea.KeyEnter, Mod: tea.ModCtrl},
			{Code: tea.KeyKpEnter}, {Code: tea.KeyEnter, Mod: tea.ModCapsLock}, {Code: 'j', Mod: tea.ModCtrl},
		} {
			s.typed("Hi")
			s.update(enter)
			require.Equal(t, event.UserMessage{Content: "Hi"}, s.takeSent()[0].Body, enter)
		}
	})
	t.Run("Ctrl-C shows how to exit when nothing runs", func(t *testing.T) {
		s := open(t)
		s.press('c', tea.ModCtrl)
		s.press('c', tea.ModCtrl)
		require.Contains(t, s.view(), "Ctrl-D exits")
		s.typed("x")
		require.NotContains(t, s.view(), "Ctrl-D exits")
		require.Empty(t, s.fake.interrupts)
		require.False(t, s.quit)
	})
	t.Run("that the terminal reports with Caps Lock work", func(t *testing.T) {
		s := open(t)
		s.press('d', tea.ModCtrl|tea.ModCapsLock)
		s.until("left", func() bool { return s.quit })
	})
	t.Run("are not confused with text", func(t *testing.T) {
		s := open(t)
		s.typed("up")
		require.Contains(t, s.view(), "› up")
	})
	t.Run("Ctrl-D exits once everything is printed", func(t *testing.T) {
		s := open(t)
		s.record(event.UserMessage{Content: "Hi"}, started(1), delta(0, "unfinished"))
		s.untilViewed("unfinished")
		s.press('d', tea.ModCtrl)
		s.record(event.LLMRequestInterrupted{RequestID: request, Reason: event.ReasonCancelled})
		s.until("left", func() bool { return s.quit })
		require.True(t, strings.HasSuffix(s.printed(), "unfinished\nThe answer continues. To return: starter\nchat -n demo\n"), s.printed())
		require.Empty(t, s.view())
	})
	t.Run("up and down bring back lines and what was being typed", func(t *testing.T) {
		s := open(t)
		for _, text := range []string{"first", "second"} {
			s.enter(text)
			s.takeSent()
		}
		s.typed("draft")
		for _, step := range []struct {
			key  rune
			want string
		}{
			{tea.KeyUp, "second"}, {tea.KeyUp, "first"}, {tea.KeyUp, "first"},
			{tea.KeyDown, "second"}, {tea.KeyDown, "draft"}, {tea.KeyDown, "draft"},
		} {
			s.press(step.key, 0)
			require.Contains(t, s.view(), "› "+step.want)
		}
	})
}

func TestCommands(t *testing.T) {
	s := open(t, event.SessionStarted{})
	s.enter("/help")
	s.untilPrinted("/attach FILE|URL")
	s.enter("/state")
	s.untilPrinted("status    idle\n")
	s.enter("/events")
	s.untilPrinted("demo:0001  session started\n")
	s.enter("/attach missing")
	s.untilPrinted("✗ missing: no such file\n")
	s.enter("/attach notes.txt")
	s.untilViewed("with the next message: notes.txt")
	s.enter("What is it?")
	require.Len(t, s.takeSent(), 2)
	require.NotContains(t, s.view(), "notes.txt")
	s.enter("/system Be\tbrief.")
	require.Equal(t, event.SystemPrompt{Content: "Be\tbrief."}, s.takeSent()[0].Body)
	s.enter("/nonsense")
	require.Contains(t, s.view(), "unknown command /nonsense")
	s.enter("//nonsense")
	require.Equal(t, event.UserMessage{Content: "/nonsense"}, s.takeSent()[0].Body)
	s.enter("/quit")
	s.until("left", func() bool { return s.quit })
}

func TestJoining(t *testing.T) {
	t.Run("shows the last messages in whole", func(t *testing.T) {
		long := strings.TrimSpace(strings.Repeat("All of it. ", 30))
		s := open(t, event.UserMessage{Content: "one\ntwo"}, event.AssistantMessage{Content: long, Partial: true})
		s.untilPrinted("demo: 2 messages. /help")
		require.Contains(t, s.printed(), "\n› one\ntwo\n")
		require.Contains(t, strings.ReplaceAll(s.printed(), "\n", " "), long+" [partial] ")
	})
	t.Run("does not wait for the answer to an imported message", func(t *testing.T) {
		s := open(t, event.UserMessage{Content: "one"}, event.AssistantMessage{Content: "two"})
		s.untilPrinted("two\n")
		require.NotContains(t, s.view(), "waiting")
	})
	t.Run("shows two screens of messages and counts the others", func(t *testing.T) {
		var past []event.Body
		for i := range 30 { // two rows each, on a screen of 24
			past = append(past, event.UserMessage{Content: fmt.Sprintf("question %d.", i+1)})
		}
		s := open(t, past...)
		s.untilPrinted("demo: 30 messages, showing the last 24. ")
		require.NotContains(t, s.printed(), "question 6.")
		require.Contains(t, s.printed(), "question 7.")
	})
	t.Run("shows a message of many screens in whole", func(t *testing.T) {
		s := open(t, event.UserMessage{Content: "Count"}, event.AssistantMessage{Content: strings.Repeat("row\n", 100) + "end"})
		s.untilPrinted("demo: 2 messages, showing the last 1. ")
		require.Equal(t, 100, strings.Count(s.printed(), "row\n"))
	})
	t.Run("a running answer shows all of it when it completes", func(t *testing.T) {
		s := open(t, event.UserMessage{Content: "Hi"}, started(1))
		s.untilViewed("answering")
		s.record(delta(7, "not the beginning"),
			event.AssistantMessage{RequestID: request, Content: "whole", ThroughEventID: "demo:0001"},
			event.LLMRequestCompleted{RequestID: request})
		s.untilPrinted("whole\n")
		require.NotContains(t, s.printed(), "not the beginning")
	})
}

func TestAnAnswerWithoutAWorkerIsShown(t *testing.T) {
	since := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	const row = "waiting for a worker; the turn continues\nwhen one takes it"
	s := open(t, event.UserMessage{Content: "Hi"}, started(1))
	s.untilViewed("answering")
	s.fake.unattended.Store(&since)
	s.untilViewed(row)
	require.NotContains(t, s.view(), "answering")
	s.press('c', tea.ModCtrl)
	s.untilViewed("interrupting")
	require.Contains(t, s.view(), row)
	s.fake.unattended.Store(nil)
	s.record(delta(0, "Hello"))
	s.until("answered", func() bool { return !strings.Contains(s.view(), "worker") })
	s.fake.unattended.Store(&since)
	s.untilViewed(row)
	s.record(event.LLMRequestCompleted{RequestID: request})
	s.until("completed", func() bool { return !strings.Contains(s.view(), "worker") })
}

func TestATerminatedRunEndsTheAnswer(t *testing.T) {
	s := open(t, event.UserMessage{Content: "Hi"}, started(1))
	s.record(delta(0, "Half"))
	s.untilViewed("answering")
	s.fake.isTerminated.Store(true)
	s.untilPrinted("Half\n✗ the run was terminated before it\nanswered (send a new message)\n")
	require.NotContains(t, s.view(), "answering")
}

func TestABrokenLogStreamIsReportedOnce(t *testing.T) {
	s := open(t)
	close(s.fake.log)
	s.untilPrinted("✗ follow the log: ")
	require.Contains(t, strings.ReplaceAll(s.printed(), "\n", " "), "connection refused")
}

func TestTheFarewellSaysWhatHappens(t *testing.T) {
	message := event.UserMessage{Content: "Hi"}
	for name, test := range map[string]struct {
		past []event.Body
		do   func(*screen)
		want string
	}{
		"no turn":   {nil, func(*screen) {}, ""},
		"an answer": {[]event.Body{message, started(1)}, func(*screen) {}, "The answer continues."},
		"an unattended one": {[]event.Body{message, started(1)}, func(s *screen) {
			s.fake.unattended.Store(new(time.Unix(1, 0)))
			s.untilViewed("waiting for a worker")
		}, "The turn waits for a worker."},
		"an interrupted one":   {[]event.Body{message, started(1)}, func(s *screen) { s.press('c', tea.ModCtrl) }, "A worker stops the answer."},
		"before the answer":    {[]event.Body{message}, func(*screen) {}, "The message is stored, and a worker answers it."},
		"a stored message":     {nil, func(s *screen) { s.enter("Hi"); s.takeSent(); s.untilViewed("waiting for a worker") }, "The message is stored, and a worker answers it."},
		"a message being sent": {nil, func(s *screen) { s.enter("Hi") }, "The last message may be lost: Temporal has not accepted it."},
		"a tool call": {
			[]event.Body{message, started(1), called("call_1", `{}`), approvalRequested("call_1")}, func(*screen) {}, "A tool call waits for you.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, test.past...)
			test.do(s)
			s.resize(120, 24)
			before := len(s.printed())
			s.press('d', tea.ModCtrl)
			s.until("left", func() bool { return s.quit })
			said := strings.TrimSpace(s.printed()[before:])
			require.Equal(t, test.want, strings.TrimSuffix(said, " To return: starter chat -n demo"))
		})
	}
}

func TestSwitching(t *testing.T) {
	s := open(t)
	s.other = newFakeContext("trip")
	for i, body := range []event.Body{
		event.UserMessage{Content: "Where to?"}, event.LLMRequestStarted{RequestID: "trip:r0001", ThroughEventID: "trip:0001", Attempt: 1},
		event.AssistantMessage{RequestID: "trip:r0001", Content: "Rome", ThroughEventID: "trip:0001"}, event.LLMRequestCompleted{RequestID: "trip:r0001"},
	} {
		e := event.New(body)
		e.ID = event.FormatID("trip", i+1)
		s.other.past = append(s.other.past, e)
	}
	s.record(event.UserMessage{Content: "Hi"}, started(1), delta(0, "unfinished"))
	s.untilViewed("unfinished")
	s.enter("/switch nowhere")
	s.untilPrinted("✗ switch: no such context\n")
	s.untilViewed("unfinished")
	s.enter("/switch trip")
	s.untilPrinted("unfinished\nThe turn of demo continues.\ntrip: 2 messages.")
	s.untilPrinted("› Where to?\nRome\n")
	require.Equal(t, "trip ›", strings.TrimSpace(s.view()))
	s.fake = s.other
	s.enter("And then?")
	require.Equal(t, event.UserMessage{Content: "And then?"}, s.takeSent()[0].Body)
	e := event.New(event.UserMessage{Content: "And then?"})
	e.ID = "trip:0005"
	s.fake.log <- e
	s.untilPrinted("› And then?\n")
	s.enter("/contexts")
	s.untilPrinted("CONTEXT  STATUS\ndemo     idle\n")
}
