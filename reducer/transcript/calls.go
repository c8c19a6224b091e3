package transcript

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Bounds of what is remembered of tools.
const (
	// MaxCalls is how many calls may get a result, or another one: the newest, and
	// those without a result first.
	MaxCalls = 1000
	// MaxWaiting is how many results may wait for their call.
	MaxWaiting = 1000
)

// call is a call of a tool. Calls and results are not changed once they are in a
// State.
type call struct {
	id, tool string
	open     bool // there is no result yet
	action   ActionType
}

// result is a result that came before its call.
type result struct {
	tool string // the name of the tool, of a result that names no call
	body event.ToolResult
}

// addCall shows a call, with its result if that was here first. A call that comes
// again while it is open is the same; after its result it is another one.
func (f *fold) addCall(body event.ToolCall) {
	if i := f.find(func(c *call) bool { return c.id == body.ToolCallID }); i >= 0 && f.calls[i].open {
		return
	}
	action := actionOf(body.ToolName, body.Parameters, f.cwd)
	c := &call{id: body.ToolCallID, tool: body.ToolName, open: true, action: action}
	status := Created
	if extra[Status](f.event, "status") == PendingApproval {
		status = PendingApproval
	}
	after := ""
	if body.MessageID == "" || body.MessageID == f.answer.id {
		after = f.answer.after
	}
	f.appendAs(c.id, after, Entry{
		EntryType: EntryType{Type: ToolUse, ToolName: c.tool, ActionType: &action, Status: status}, Content: title(c.tool, action),
	})
	f.remember(c)
	f.takeWaiting(len(f.calls) - 1)
}

func (f *fold) remember(c *call) {
	f.calls = append(slices.Clip(f.calls), c)
	if len(f.calls) <= MaxCalls {
		return
	}
	oldest := slices.IndexFunc(f.calls, func(c *call) bool { return !c.open })
	f.calls = slices.Delete(f.calls, max(0, oldest), max(0, oldest)+1)
}

// takeWaiting gives a call the results that wait for it.
func (f *fold) takeWaiting(i int) {
	var still []*result
	for _, r := range f.waiting {
		if c := f.calls[i]; r.body.ToolCallID == c.id || r.body.ToolCallID == "" && c.open && r.isOf(c) {
			f.resolve(i, r.body)
		} else {
			still = append(still, r)
		}
	}
	f.waiting = still
}

// addResult shows a result in its call: the newest one with its id, or, when it has
// none, the oldest open one of its tool.
func (f *fold) addResult(body event.ToolResult) {
	r := &result{tool: extra[string](f.event, "toolName"), body: body}
	i := f.find(func(c *call) bool { return c.id == body.ToolCallID })
	if body.ToolCallID == "" {
		i = slices.IndexFunc(f.calls, func(c *call) bool { return c.open && r.isOf(c) })
	}
	if i >= 0 {
		f.resolve(i, body)
		return
	}
	f.waiting = append(slices.Clip(f.waiting), r)
	if len(f.waiting) > MaxWaiting {
		dropped := f.waiting[0]
		f.waiting = f.waiting[1:]
		f.effects = append(f.effects, EmitWarning{Message: fmt.Sprintf(
			"The result of the tool call %q was dropped: its call did not come, and %d others wait for theirs",
			cmp.Or(dropped.body.ToolCallID, dropped.tool), MaxWaiting)})
	}
}

// isOf reports whether a result that names no call may be that of one.
func (r *result) isOf(c *call) bool { return r.tool == "" || r.tool == c.tool }

// find is the index of the newest call for which is holds; -1 when there is none.
func (f *fold) find(is func(*call) bool) int {
	for i := len(f.calls) - 1; i >= 0; i-- {
		if is(f.calls[i]) {
			return i
		}
	}
	return -1
}

// resolve ends a call with a result. The true one may come after one that stood in
// for it, and takes its place.
func (f *fold) resolve(i int, body event.ToolResult) {
	c := *f.calls[i]
	status, action := c.action.with(body, parameters{cwd: f.cwd}.relative)
	c.open = false
	f.calls = slices.Clone(f.calls)
	f.calls[i] = &c
	f.effects = append(f.effects, UpdateToolStatus{ToolCallID: c.id, Status: status, ActionType: action, Content: title(c.tool, action)})
}
