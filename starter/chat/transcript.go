package chat

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/terminal"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/starter/markdown"
	"github.com/seed-9ed7edd4/chronicle/starter/show"
)

// pastScreens is how many screens of earlier messages are shown.
const pastScreens = 2

// maxWaiting bounds the rows of the lines that wait for an answer, so that the view fits into a small window.
const maxWaiting = 3

// transcript converts the log to text: finished text, which is printed once, and text that
// still changes.
type transcript struct {
	style show.Style
	width int

	// out are finished rows to be printed.
	out []string
	// live assembles the answer, answer renders it, and isPartlyPrinted is set if a part of it was
	// printed.
	live            show.Answer
	answer          markdown.Renderer
	isPartlyPrinted bool
	// thinkingSince is when the model began to reason; zero if it does not.
	thinkingSince time.Time
	// calls are the tool calls of the running request without a result, oldest first.
	calls []call
	// clientTools are the schemas of the tools of clients, by name.
	clientTools map[string]event.Object
	// waiting are lines that arrived during an answer; they are shown below it.
	waiting []waitingLine

	// busy: an answer is expected or running. answering: it is running.
	busy, answering bool
	// interrupting is set after the user requested an interrupt.
	interrupting bool
	asked        int // counter of the newest event to be answered
	through      int // counter of the newest event that the running request has seen
	lastID       string
}

type waitingLine struct {
	counter int
	text    string
}

func newTranscript(config Config) transcript {
	t := transcript{style: config.Style}
	t.answer.IsPlain = !config.Style.Color
	t.setWidth(config.Width)
	name := config.Context.Name()
	past := reducer.Load(name, reducer.Reduce, config.Past...)
	t.lastID = past.LastEventID()
	t.answering = past.Request != nil
	// An imported message has its answer in the log, although no request has answered it.
	messages := past.Reduced.Messages
	isAnswered := len(messages) > 0 && messages[len(messages)-1].Role == reducer.RoleAssistant
	t.busy = t.answering || past.Trigger != "" && !past.Ended && !isAnswered
	if t.answering {
		t.through = event.Counter(past.Request.Through)
	}
	t.asked = event.Counter(past.Trigger)
	if past.Reduced.Config.Tools != nil {
		t.takeTools(*past.Reduced.Config.Tools)
	}
	if past.Request != nil {
		for _, c := range past.Request.Calls {
			t.calls = append(t.calls, t.callOf(c))
		}
	}
	t.printPast(name, messages, pastScreens*config.Height)
	for _, c := range t.calls {
		if c.isApproval() {
			t.printWaiting(c)
		}
	}
	return t
}

// printPast prints the newest messages in whole: the last one, and those before it within maxRows rows.
func (t *transcript) printPast(name string, messages []reducer.Message, maxRows int) {
	if len(messages) == 0 {
		t.remark(name + ": new conversation. /help lists the commands, Ctrl-D exits.")
		return
	}
	var rows []string
	first := len(messages)
	for first > 0 {
		t.printMessage(messages[first-1])
		message := t.finished()
		if len(rows) > 0 && len(rows)+len(message) > maxRows {
			break
		}
		rows, first = slices.Concat(message, rows), first-1
	}
	text := name + ": " + show.Count(len(messages), "message", "messages")
	if first > 0 {
		text += fmt.Sprintf(", showing the last %d", len(messages)-first)
	}
	t.remark(text + ". /help lists the commands, Ctrl-D exits.")
	t.out = append(t.out, rows...)
}

func (t *transcript) printMessage(m reducer.Message) {
	switch {
	case m.Summary, m.Role != reducer.RoleUser && m.Role != reducer.RoleAssistant:
		t.remark(show.Message(m))
		return
	case m.Role == reducer.RoleUser:
		t.print("\n" + t.style.Bold(prompt+spaced(m.Content)))
	case m.Content != "":
		t.print(t.render(m.Content))
	}
	// The rest of the message is short.
	m.Content = ""
	if text := strings.TrimSpace(show.Message(m)); text != "" {
		t.remark(text)
	}
}

func (t *transcript) setWidth(width int) { t.width, t.answer.Width = width, width }

// render returns the rows of a complete text.
func (t *transcript) render(text string) string {
	r := markdown.Renderer{Width: t.width, IsPlain: t.answer.IsPlain}
	return strings.Join(append(r.Write(text), r.End()...), "\n")
}

func (t *transcript) take(e event.Event) {
	if e.ID != "" {
		t.lastID = e.ID
	}
	switch body := e.Body.(type) {
	case event.TextDelta:
		t.busy, t.answering = true, true
		text, isRestart := t.live.Add(body)
		if text != "" {
			t.endThinking()
		}
		t.stream(text, isRestart)
	case event.ReasoningDelta:
		t.busy, t.answering = true, true
		t.stream("", t.live.AddReasoning(body))
		// Reasoning after the text has begun is not shown.
		if t.thinkingSince.IsZero() && t.answer.IsEmpty() && !t.isPartlyPrinted {
			t.thinkingSince = time.Now()
		}
	case event.UserMessage:
		t.takeUser(e.ID, body)
	case event.AssistantMessage:
		t.takeAnswer(e.ID, body)
	case event.LLMRequestStarted:
		t.busy, t.answering = true, true
		t.through = event.Counter(body.ThroughEventID)
		t.releaseSeen()
	case event.LLMRequestFellBack:
		t.finishTail()
		t.remark(show.Note(body))
	case event.LLMRequestCompleted:
		mark := show.Incomplete(body)
		if mark != "" {
			mark = t.style.Yellow(mark)
		}
		t.end(body, mark)
	case event.LLMRequestInterrupted:
		t.end(body, t.style.Yellow("⏹ "+show.Note(body)))
	case event.LLMRequestFailed:
		t.end(body, t.style.Red("✗ "+show.Note(body)))
	case event.InputRejected:
		t.print(t.style.Red("✗ " + show.Note(body)))
		t.busy = t.answering
	case event.SessionEnded:
		t.remark(show.Note(body))
		t.busy, t.answering, t.interrupting = false, false, false
	case event.ToolCall:
		if body.RequestID == "" {
			t.printAfterAnswer(e.ID, t.style.Dim(show.Note(body)))
			return
		}
		t.takeCall(body)
	case event.ToolResult:
		if !t.takeResult(body) {
			t.printAfterAnswer(e.ID, t.style.Dim(show.Note(body)))
		}
	case event.ToolProgress:
		t.takeProgress(body)
	case event.ApprovalRequested:
		t.takeApproval(body)
	case event.ApprovalDecided:
		t.takeDecision(body)
	case event.LLMAttemptEnded:
		if body.Outcome != event.AttemptToolCalls && body.Outcome != event.AttemptCompacted {
			t.printAfterAnswer(e.ID, t.style.Dim(show.Note(body)))
		}
	case event.Compacted:
		body.Summary = "" // "starter state" shows it
		t.printAfterAnswer(e.ID, t.style.Dim(show.Note(body)))
	case event.SetTools:
		t.takeTools(body)
		t.printAfterAnswer(e.ID, t.style.Dim(show.Note(body)))
	case event.AnswerRequested:
		t.busy, t.asked = true, event.Counter(e.ID)
	case event.SessionStarted, event.ToolsOffered: // /events shows them
	case event.BudgetExceeded: // the failure of the request follows
	default:
		t.printAfterAnswer(e.ID, t.style.Dim(show.Note(body)))
	}
}

func (t *transcript) takeUser(id string, body event.UserMessage) {
	if body.Triggers() {
		t.busy = true
		t.asked = event.Counter(id)
	}
	t.printAfterAnswer(id, "\n"+t.style.Bold(prompt+spaced(body.Content)))
}

func (t *transcript) takeAnswer(id string, body event.AssistantMessage) {
	if body.RequestID == "" {
		// Supplied by a client, not generated.
		t.printAfterAnswer(id, t.render(body.Content))
		return
	}
	t.endThinking()
	t.stream(t.live.Complete(body))
	t.finishAnswer()
}

// endThinking replaces the reasoning in view by how long it took.
func (t *transcript) endThinking() {
	if t.thinkingSince.IsZero() {
		return
	}
	text := "thought"
	if took := time.Since(t.thinkingSince).Round(time.Second); took > 0 {
		text += " for " + took.String()
	}
	t.remark(text)
	t.thinkingSince = time.Time{}
}

// isRestart means that text replaces what was shown of the answer.
func (t *transcript) stream(text string, isRestart bool) {
	if isRestart {
		t.answer.Reset()
		if t.isPartlyPrinted {
			t.remark("[the answer restarts; disregard the part above]")
		}
		t.isPartlyPrinted = false
	}
	t.printRows(t.answer.Write(text))
}

func (t *transcript) printRows(rows []string) {
	t.out = append(t.out, rows...)
	t.isPartlyPrinted = t.isPartlyPrinted || len(rows) > 0
}

// end prints the lines that waited for the end of the answer.
func (t *transcript) end(body event.Body, mark string) {
	t.endThinking()
	t.finishAnswer()
	t.live.End(event.RequestOf(body))
	if mark != "" {
		t.print(mark)
	}
	t.release(len(t.waiting))
	t.calls = nil
	t.answering, t.interrupting = false, false
	interrupted, ok := body.(event.LLMRequestInterrupted)
	if ok {
		// For other reasons, the start of the next request sets busy.
		t.busy = interrupted.Reason == event.ReasonNewUserInput
	} else {
		t.busy = t.asked > t.through
	}
	t.through = 0
}

// terminated ends a request whose end the log does not have yet.
func (t *transcript) terminated() {
	t.endThinking()
	t.finishAnswer()
	t.print(t.style.Red("✗ " + client.ErrUnanswered.Error()))
	t.release(len(t.waiting))
	t.calls = nil
	t.busy, t.answering, t.interrupting, t.through = false, false, false, 0
}

func (t *transcript) printAfterAnswer(id, text string) {
	if t.answering {
		t.waiting = append(t.waiting, waitingLine{event.Counter(id), text})
		return
	}
	t.print(text)
}

// The answer of an attempt is shown below the waiting lines that it has seen.
func (t *transcript) releaseSeen() {
	n := 0
	for n < len(t.waiting) && t.waiting[n].counter <= t.through {
		n++
	}
	if n == 0 {
		return
	}
	// The text shown so far belongs to the previous attempt.
	t.finishTail()
	t.release(n)
}

func (t *transcript) release(n int) {
	for _, w := range t.waiting[:n] {
		t.print(w.text)
	}
	t.waiting = t.waiting[n:]
}

// finishTail prints the answer so far.
func (t *transcript) finishTail() { t.printRows(t.answer.End()) }

// finishAnswer prints the answer, which another one can follow.
func (t *transcript) finishAnswer() {
	t.finishTail()
	t.answer.Reset()
	t.isPartlyPrinted = false
}

func (t *transcript) flush() {
	t.finishTail()
	t.release(len(t.waiting))
}

// note prints the outcome of a command. Rows are truncated, not wrapped, to keep tables
// aligned.
func (t *transcript) note(n notice) {
	if errors.Is(n.err, client.ErrNoContext) {
		t.remark("no messages yet")
		return
	}
	if n.err != nil {
		t.print(t.style.Red("✗ " + n.err.Error()))
		return
	}
	for row := range strings.SplitSeq(n.text, "\n") {
		t.remark(ansi.Truncate(row, t.width, "…"))
	}
}

// spaced replaces tabs, whose width depends on their column.
func spaced(text string) string { return strings.ReplaceAll(terminal.Clean(text), "\t", "    ") }

func (t *transcript) remark(text string) { t.print(t.style.Dim(text)) }

func (t *transcript) print(text string) { t.out = append(t.out, t.wrap(text)...) }

func (t *transcript) finished() []string {
	rows := t.out
	t.out = nil
	return rows
}

func (t *transcript) unfinished() []string {
	var rows []string
	if !t.thinkingSince.IsZero() {
		reasoning := strings.Split(strings.TrimSpace(spaced(t.live.Reasoning())), "\n")
		rows = append(rows, t.style.Dim(ansi.Truncate(reasoning[len(reasoning)-1], t.width, "…")))
	}
	if !t.answer.IsEmpty() {
		rows = t.answer.Tail()
	}
	rows = append(rows, t.callRows()...)
	for _, w := range t.waiting[max(0, len(t.waiting)-maxWaiting):] {
		text := show.Excerpt(ansi.Strip(w.text), t.width)
		rows = append(rows, t.style.Dim(ansi.Truncate(text, t.width, "…")))
	}
	return rows
}

func (t *transcript) doing() string {
	switch {
	case t.interrupting:
		return "interrupting"
	case !t.thinkingSince.IsZero():
		return "thinking · Ctrl-C interrupts"
	case len(t.calls) > 0:
		switch i, _ := t.waitingCall(); {
		case i < 0:
		case t.calls[i].isApproval():
			return "waiting for your approval · Ctrl-C interrupts"
		default:
			return "waiting for your answer · Ctrl-C interrupts"
		}
		return "calling tools · Ctrl-C interrupts"
	case t.answering:
		return "answering · Ctrl-C interrupts"
	default:
		return "waiting for an answer · Ctrl-C interrupts"
	}
}

// wrap splits a text into rows, because wider ones are truncated.
func (t *transcript) wrap(text string) []string {
	return strings.Split(ansi.Wrap(text, t.width, ""), "\n")
}
