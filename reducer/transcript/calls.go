package transcript

import (
	"fmt"
	"slices"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Memory bounds.
const (
	// MaxCalls bounds the open calls that are tracked, and is the least number of
	// answered calls that can still get another result.
	MaxCalls = 1000
	// MaxWaiting bounds the results that wait for their call.
	MaxWaiting = 1000
)

// call is a tool call. It is immutable once it is in a State.
type call struct {
	id, tool string
	action   ActionType
}

// answered is a list of calls with a result, newest first. It is persistent: states
// share its tail.
type answered struct {
	*call
	before *answered
	length int
}

// addCall appends a call, with its result if that came first. A call that repeats an
// open one is ignored; after its result, the same id is a new call.
func (f *fold) addCall(body event.ToolCall) {
	if slices.ContainsFunc(f.open, func(c *call) bool { return c.id == body.ToolCallID }) {
		return
	}
	action := actionOf(body.ToolName, body.Parameters, f.cwd)
	c := &call{id: body.ToolCallID, tool: body.ToolName, action: action}
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
	if len(f.open) == MaxCalls {
		f.close(f.open[0])
	}
	f.open = append(slices.Clip(f.open), c)
	f.takeWaiting(c)
}

// takeWaiting applies the results that came before their call.
func (f *fold) takeWaiting(c *call) {
	var still []event.ToolResult
	for _, body := range f.waiting {
		if body.ToolCallID == c.id {
			f.resolve(c, body)
		} else {
			still = append(still, body)
		}
	}
	f.waiting = still
}

// addResult applies a result to the newest call with its id.
func (f *fold) addResult(body event.ToolResult) {
	if i := slices.IndexFunc(f.open, func(c *call) bool { return c.id == body.ToolCallID }); i >= 0 {
		f.resolve(f.open[i], body)
		return
	}
	for a := f.answered; a != nil; a = a.before {
		if a.id == body.ToolCallID {
			f.update(a.call, body)
			return
		}
	}
	f.waiting = append(slices.Clip(f.waiting), body)
	if len(f.waiting) > MaxWaiting {
		dropped := f.waiting[0]
		f.waiting = f.waiting[1:]
		f.effects = append(f.effects, EmitWarning{Message: fmt.Sprintf(
			"Dropped the result of tool call %q: no matching call, and %d other results are waiting",
			dropped.ToolCallID, MaxWaiting)})
	}
}

// resolve closes a call and applies its result.
func (f *fold) resolve(c *call, body event.ToolResult) {
	f.close(c)
	f.update(c, body)
}

// update shows the outcome of a call. An actual result can follow a placeholder and
// replaces it.
func (f *fold) update(c *call, body event.ToolResult) {
	status, action := c.action.with(body, parameters{cwd: f.cwd}.relative)
	f.effects = append(f.effects, UpdateToolStatus{
		ToolCallID: c.id, Status: status, ActionType: action, Content: title(c.tool, action),
	})
}

// close moves an open call to the answered ones.
func (f *fold) close(c *call) {
	i := slices.Index(f.open, c)
	if i < 0 {
		return
	}
	f.open = slices.Delete(slices.Clone(f.open), i, i+1)
	if f.answered != nil && f.answered.length == 2*MaxCalls {
		f.answered = f.answered.newest(MaxCalls)
	}
	f.answered = f.answered.with(c)
}

func (a *answered) with(c *call) *answered {
	if a == nil {
		return &answered{call: c, length: 1}
	}
	return &answered{call: c, before: a, length: a.length + 1}
}

// newest returns a new list of the first n elements.
func (a *answered) newest(n int) *answered {
	if n == 0 {
		return nil
	}
	return a.before.newest(n - 1).with(a.call)
}
