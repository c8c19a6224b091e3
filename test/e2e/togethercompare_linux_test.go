package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/browsertest"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/reducer/transcript"
)

// compare compares what each client shows with the log: with its lines, of the kinds that the client shows.
func (v *crowd) compare() {
	v.w.t.Helper()
	v.w.await(v.c, func(e event.Event) bool { // the last turn is recorded
		completed, ok := e.Body.(event.LLMRequestCompleted)
		return ok && event.RequestNumber(completed.RequestID) == 5
	})
	log := v.w.from(v.c, "")
	says := linesOf(log)
	v.compareEvents(log)
	v.comparePage(log, says)
	v.compareChat(says)
	v.compareOpenAI(says)
	v.compareAGUI(says)
	v.compareState(says)
	v.compareTerminal(says)
}

// The kinds of lines.
const (
	lineUser     = "user: "
	lineAnswer   = "assistant: "
	lineStopped  = "stopped: " // an answer that was interrupted
	lineCall     = "call: "
	lineApproved = "approved: "
	lineResult   = "result: "
)

// linesOf returns what a log says, in the order in which a model reads it.
func linesOf(log []event.Event) (lines []string) {
	tools, seen := map[string]string{}, map[string]int{} // names by call, counters by line of a user
	for _, e := range log {
		switch b := e.Body.(type) {
		case event.UserMessage:
			lines = append(lines, lineUser+b.Content)
			seen[lineUser+b.Content] = event.Counter(e.ID)
		case event.AssistantMessage:
			n := len(lines)
			for n > 0 && seen[lines[n-1]] > event.Counter(b.ThroughEventID) {
				n--
			}
			lines = slices.Insert(lines, n, answerLine(b.Content, b.Partial)...)
		case event.ToolCall:
			tools[b.ToolCallID] = b.ToolName
			lines = append(lines, callLine(b.ToolName, b.Parameters))
		case event.ApprovalDecided:
			lines = append(lines, lineApproved+tools[b.ToolCallID])
		case event.ToolResult:
			var text string
			_ = json.Unmarshal(b.Value, &text) // probes return texts
			lines = append(lines, lineResult+text)
		}
	}
	return lines
}

func answerLine(text string, isStopped bool) []string {
	switch {
	case text == "":
		return nil
	case isStopped:
		return []string{lineStopped + text}
	}
	return []string{lineAnswer + text}
}

func callLine[T ~[]byte | ~string](tool string, arguments T) string {
	var compact bytes.Buffer
	_ = json.Compact(&compact, []byte(arguments))
	return lineCall + tool + " " + compact.String()
}

// only returns the lines of some kinds.
func only(lines []string, kinds ...string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(line string) bool {
		return !slices.ContainsFunc(kinds, func(kind string) bool { return strings.HasPrefix(line, kind) })
	})
}

// unmarked returns the lines for a client that has no mark for a stopped answer.
func unmarked(lines []string) (all []string) {
	for _, line := range lines {
		if text, isStopped := strings.CutPrefix(line, lineStopped); isStopped {
			line = lineAnswer + text
		}
		all = append(all, line)
	}
	return all
}

// compareEvents compares the recorded events with the log, and the deltas of each answer with its text, whose beginning they are.
func (v *crowd) compareEvents(log []event.Event) {
	v.events.await("the log", func(seen []event.Event) bool { return seen[len(seen)-1].ID == log[len(log)-1].ID })
	seen := v.events.newest()
	assert.Equal(v.w.t, log, slices.DeleteFunc(slices.Clone(seen), func(e event.Event) bool { return e.ID == "" }))
	for i, e := range seen {
		if answer, ok := e.Body.(event.AssistantMessage); ok {
			assert.True(v.w.t, strings.HasPrefix(answer.Content, newestText(seen[:i])), "%q was streamed as %q", answer.Content, newestText(seen[:i]))
		}
	}
}

// comparePage compares the transcript that the patches built with that of the log, and the elements of the page with those of a page
// that loads it.
func (v *crowd) comparePage(log []event.Event, says []string) {
	t := v.w.t
	patcher := transcript.NewPatcher()
	for _, e := range log {
		patcher.Apply(e)
	}
	entries := patcher.Document().Entries
	want, err := json.Marshal(entries)
	require.NoError(t, err)
	v.page.Await(fmt.Sprintf(`window.patched.length === %d`, len(entries)))
	var patched json.RawMessage
	v.page.Eval(`window.patched`, &patched)
	assert.JSONEq(t, string(want), string(patched))
	assert.Equal(t, unmarked(only(says, lineUser, lineAnswer, lineStopped)), strings.Split(messages(v.page), "\n"))

	const elements = `[...document.querySelectorAll("#entries > .entry")].map((e) => e.className + ": " + e.textContent)`
	loaded := openURL(v.tabs, v.gateway+"/#"+v.c.Name())
	var live, fresh []string
	for tab, into := range map[*browsertest.Tab]*[]string{v.page: &live, loaded: &fresh} {
		tab.Await(fmt.Sprintf(`%s.length === %d`, elements, len(entries)))
		tab.Eval(elements, into)
	}
	assert.Equal(t, fresh, live)
}

type chatMessage struct {
	ID, Role string
	Metadata struct{ FinishReason string }
	Parts    []struct {
		Type, Text, State, Output string
		Input                     json.RawMessage
		Approval                  struct{ Approved bool }
	}
}

// compareChat compares the answers that useChat streamed with those that it loads, and these with the log. It does not show
// messages of others until it loads.
func (v *crowd) compareChat(says []string) {
	t := v.w.t
	read := func() (messages []chatMessage) {
		v.chat.Await(`window.chat?.status === "ready" && chat.messages.at(-1).metadata.finishReason`)
		v.chat.Eval(`chat.messages.filter((m) => m.role === "user" || m.metadata.finishReason)`, &messages)
		return messages
	}
	streamed := read()
	v.chat.Reload()
	loaded := read()
	var lines []string
	for _, m := range loaded {
		lines = append(lines, m.lines()...)
	}
	assert.Equal(t, says, lines)
	answers := func(messages []chatMessage) []chatMessage {
		return slices.DeleteFunc(slices.Clone(messages), func(m chatMessage) bool { return m.Role == "user" })
	}
	assert.Equal(t, answers(loaded), answers(streamed))
}

func (m chatMessage) lines() (lines []string) {
	if m.Role == "user" {
		return []string{lineUser + m.Parts[0].Text}
	}
	for i, p := range m.Parts {
		if p.Type == "text" {
			isStopped := m.Metadata.FinishReason == "interrupted" && i == len(m.Parts)-1
			lines = append(lines, answerLine(p.Text, isStopped)...)
		}
		if tool, isTool := strings.CutPrefix(p.Type, "tool-"); isTool {
			lines = append(lines, callLine(tool, p.Input))
			if p.Approval.Approved {
				lines = append(lines, lineApproved+tool)
			}
			lines = append(lines, lineResult+p.Output)
		}
	}
	return lines
}

// compareOpenAI compares the responses, which npm openai streamed with interruptions, and the items of the conversation. Responses
// have no messages of users, and no item has an approval.
func (v *crowd) compareOpenAI(says []string) {
	t := v.w.t
	v.openai.await("the end", func(seen shown) bool { return seen.Responses[len(seen.Responses)-1].Last != nil })
	var output, items []string
	for _, r := range v.openai.newest().Responses {
		for _, i := range r.Last.Output {
			lines := i.lines()
			if i.Type == "message" {
				assert.Equal(t, i.text(), r.Texts[i.ID], "the deltas of %s", i.ID)
			}
			if len(lines) > 0 && slices.Contains(output, lines[0]) && i.Type == "mcp_call" {
				lines = lines[1:] // an earlier response has the call, which waited for an approval
			}
			output = append(output, lines...)
		}
	}
	assert.Equal(t, only(says, lineAnswer, lineStopped, lineCall, lineResult), output)
	assert.Positive(t, v.openai.newest().Resumed)

	v.openai.do(map[string]any{"items": v.c.Name()})
	v.openai.await("the items", func(seen shown) bool { return seen.Items != nil })
	for _, i := range v.openai.newest().Items {
		items = append(items, i.lines()...)
	}
	assert.Equal(t, only(says, lineUser, lineAnswer, lineStopped, lineCall, lineResult), items)
}

type item struct {
	Type, ID, Role, Status, Name, Arguments, Output string
	Content                                         []struct{ Text string }
}

func (i item) text() string {
	text := ""
	for _, part := range i.Content {
		text += part.Text
	}
	return text
}

func (i item) lines() []string {
	switch {
	case i.Type == "message" && i.Role == "user":
		return []string{lineUser + i.text()}
	case i.Type == "message":
		return answerLine(i.text(), i.Status == "incomplete")
	case i.Type == "mcp_call" && i.Output == "":
		return []string{callLine(i.Name, i.Arguments)}
	case i.Type == "mcp_call":
		return []string{callLine(i.Name, i.Arguments), lineResult + i.Output}
	case i.Type == "mcp_approval_request":
		return nil
	}
	return []string{"unexpected item: " + i.Type}
}

// compareAGUI compares the messages of the agent, which have no mark for a stopped answer nor for an approval.
func (v *crowd) compareAGUI(says []string) {
	v.run("")
	v.agui.await("the end of its run", func(seen shown) bool { return seen.Runs == v.runs })
	assert.False(v.w.t, v.agui.newest().Waits)
	var lines []string
	for _, m := range v.agui.newest().Messages {
		lines = append(lines, m.lines()...)
	}
	assert.Equal(v.w.t, unmarked(only(says, lineUser, lineAnswer, lineStopped, lineCall, lineResult)), lines)
}

type aguiMessage struct {
	Role, Content string
	ToolCalls     []struct {
		Function struct{ Name, Arguments string }
	}
}

func (m aguiMessage) lines() (lines []string) {
	switch m.Role {
	case "user":
		return []string{lineUser + m.Content}
	case "tool":
		return []string{lineResult + m.Content}
	}
	lines = answerLine(m.Content, false)
	for _, c := range m.ToolCalls {
		lines = append(lines, callLine(c.Function.Name, c.Function.Arguments))
	}
	return lines
}

// compareState compares what the temporal command queries.
func (v *crowd) compareState(says []string) {
	var answer struct{ QueryResult []wire.State }
	out := v.w.temporalCommand("workflow", "query", "--workflow-id", wire.WorkflowID(v.c.Name()), "--type", "state", "--output", "json")
	require.NoError(v.w.t, json.Unmarshal([]byte(out), &answer), out)
	var lines []string
	for _, m := range answer.QueryResult[0].Messages {
		switch m.Role {
		case reducer.RoleUser:
			lines = append(lines, lineUser+m.Content)
		case reducer.RoleTool:
			lines = append(lines, lineResult+m.Content)
		default:
			lines = append(lines, answerLine(m.Content, m.Partial)...)
		}
		for _, c := range m.ToolCalls {
			lines = append(lines, callLine(c.Name, c.Arguments))
		}
	}
	assert.Equal(v.w.t, only(says, lineUser, lineAnswer, lineStopped, lineCall, lineResult), lines)
}

// compareTerminal finds the lines in order in what the chat has written.
func (v *crowd) compareTerminal(says []string) {
	at := 0
	for _, line := range only(says, lineUser, lineAnswer, lineStopped, lineApproved) {
		kind, text, _ := strings.Cut(line, ": ")
		if kind+": " == lineApproved {
			text = "approved " + text
		}
		at = v.terminal.until(text, at, "")
	}
}
