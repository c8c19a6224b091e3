package chat

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/terminal"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/starter/show"
)

// maxCalls bounds the rows of running calls.
const maxCalls = 4

// call is a tool call of the running request without a result.
type call struct {
	id, tool  string
	arguments json.RawMessage
	// expires is when the call stops waiting for an approval; zero if it does not wait for one.
	expires time.Time
	// isClient means that a client sends the result.
	isClient bool
	progress string
	// isAsked means that the question for its result was printed.
	isAsked bool
	// isSent is set from the user's decision or answer until the log has it.
	isSent bool
}

func (t *transcript) callOf(c reducer.Call) call {
	out := call{id: c.ID, tool: c.Name, arguments: c.Arguments, isClient: t.isClients(c.Name)}
	if c.State == reducer.CallApproval {
		out.expires = c.Deadline
	}
	return out
}

// waits reports whether the user can decide about the call or answer it.
func (c call) waits() bool { return !c.isSent && (c.isApproval() || c.isClient) }

// isApproval reports whether the call waits for an approval.
func (c call) isApproval() bool { return !c.expires.IsZero() }

func (c call) text() string { return terminal.Line(c.tool + " " + string(c.arguments)) }

// takeCall shows a call of the running request until its result arrives.
func (t *transcript) takeCall(body event.ToolCall) {
	t.finishTail()
	t.calls = append(t.calls, call{
		id: body.ToolCallID, tool: body.ToolName, arguments: body.Parameters, isClient: t.isClients(body.ToolName),
	})
}

// takeResult prints the line of a call. It returns false for an unknown call.
func (t *transcript) takeResult(body event.ToolResult) bool {
	i := t.callAt(body.ToolCallID)
	if i < 0 {
		return false
	}
	line := show.Short(t.calls[i].text(), t.width)
	if took := time.Duration(body.DurationMs) * time.Millisecond; took > 0 {
		line += " · " + took.String()
	}
	if t.calls[i].isClient && len(body.Value) > 0 {
		line += ": " + show.Short(resultText(body.Value), 2*t.width)
	}
	if body.IsError || len(body.Error) > 0 {
		t.print(t.style.Red("✗ " + line + ": " + show.Short(resultText(body.Error), 2*t.width)))
	} else {
		t.remark("✓ " + line)
	}
	t.calls = slices.Delete(t.calls, i, i+1)
	return true
}

// resultText returns a text without its quotes, and other JSON as it is.
func resultText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return string(raw)
	}
	return text
}

// takeApproval prints the call in full, because the user has to decide about it.
func (t *transcript) takeApproval(body event.ApprovalRequested) {
	if i := t.callAt(body.ToolCallID); i >= 0 {
		t.calls[i].expires = body.ExpiresAt
		t.printWaiting(t.calls[i])
	}
}

func (t *transcript) printWaiting(c call) {
	t.print(t.style.Yellow("? " + c.text() + " · waits for approval until " + show.Until(c.expires)))
}

func (t *transcript) takeDecision(body event.ApprovalDecided) {
	for i := range t.calls {
		c := &t.calls[i]
		if c.expires.IsZero() || body.ToolCallID != "" && body.ToolCallID != c.id {
			continue
		}
		word := "approved "
		if body.Decision == event.Deny {
			word = "denied "
		}
		text := word + c.tool
		if len(body.Parameters) > 0 {
			c.arguments = body.Parameters
			text = word + c.text()
		}
		if body.DecidedBy != "" {
			text += " by " + body.DecidedBy
		}
		if body.Reason != "" {
			text += ": " + body.Reason
		}
		// The log has the error of a denied call next.
		c.expires, c.isSent = time.Time{}, body.Decision == event.Deny
		t.remark(terminal.Value(text))
	}
}

func (t *transcript) takeProgress(body event.ToolProgress) {
	if i := t.callAt(body.ToolCallID); i >= 0 {
		t.calls[i].progress = body.Text
	}
}

func (t *transcript) takeTools(body event.SetTools) {
	t.clientTools = map[string]event.Object{}
	for _, tool := range body.Tools {
		if tool.IsClient() {
			t.clientTools[tool.Name] = tool.Parameters
		}
	}
}

func (t *transcript) isClients(tool string) bool {
	_, ok := t.clientTools[tool]
	return ok
}

func (t *transcript) questionOf(c call) question {
	return newQuestion(c.tool, t.clientTools[c.tool], c.arguments)
}

// printQuestion prints the question of a call in full, once.
func (t *transcript) printQuestion(i int) {
	if c := &t.calls[i]; !c.isAsked {
		c.isAsked = true
		t.print(t.style.Yellow("? " + spaced(terminal.Value(t.questionOf(*c).lines()))))
	}
}

func (t *transcript) callAt(id string) int {
	return slices.IndexFunc(t.calls, func(c call) bool { return c.id == id })
}

// waitingCall returns the index of the oldest call that waits for the user, and the number of such calls.
func (t *transcript) waitingCall() (first, count int) {
	first = -1
	for i, c := range t.calls {
		if !c.waits() {
			continue
		}
		if count++; first < 0 {
			first = i
		}
	}
	return first, count
}

// callRows omits the calls that wait for the user and are printed already.
func (t *transcript) callRows() []string {
	var rows []string
	running := slices.DeleteFunc(slices.Clone(t.calls), func(c call) bool { return c.waits() && (c.isApproval() || c.isAsked) })
	for _, c := range running[:min(maxCalls, len(running))] {
		state := c.progress
		switch {
		case c.isSent && c.isApproval():
			state = "sending the decision"
		case c.isSent:
			state = "sending the answer"
		case c.isClient:
			state = "waits for an answer"
		}
		text := spaced(show.Short(c.text(), t.width))
		if state = show.Short(state, t.width); state != "" {
			// Long arguments are truncated, so that the state stays visible.
			text = ansi.Truncate(text, max(10, t.width-ansi.StringWidth(state)-5), "…") + " · " + state
		}
		rows = append(rows, t.style.Dim(ansi.Truncate("▸ "+text, t.width, "…")))
	}
	if more := len(running) - maxCalls; more > 0 {
		rows = append(rows, t.style.Dim(fmt.Sprintf("▸ %d more calls", more)))
	}
	return rows
}
