package transcript

import (
	"fmt"
	"slices"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Bounds of what is remembered of tools.
const (
	// MaxCalls is how many calls without a result are remembered, and how many with
	// one may at least get another.
	MaxCalls = 1000
	// MaxWaiting is how many results may wait for their call.
	MaxWaiting = 1000
)

// call is a call of a tool. It is not changed once it is in a State.
type call struct {
	id, tool string
	action   ActionType
}

// answered are the calls that have a result, the newest first. The list only grows
// at its head, so that states share it.
type answered struct {
	*call
	before *answered
	length int
}

// addCall shows a call, with its result if that was here first. A call that comes
// again while it is open is the same; after its result it is another one.
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

// takeWaiting gives a call the results that came before it.
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

// addResult shows a result in the newest call with its id.
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
			"The result of the tool call %q was dropped: its call did not come, and %d others wait for theirs",
			dropped.ToolCallID, MaxWaiting)})
	}
}

// resolve ends a call with a result.
func (f *fold) resolve(c *call, body event.ToolResult) {
	f.close(c)
	f.update(c, body)
}

// update shows what came of a call. The true result may come after one that stood in
// for it, and takes its place.
func (f *fold) update(c *call, body event.ToolResult) {
	status, action := c.action.with(body, parameters{cwd: f.cwd}.relative)
	f.effects = append(f.effects, UpdateToolStatus{
		ToolCallID: c.id, Status: status, ActionType: action, Content: title(c.tool, action),
	})
}

// close counts an open call among those with a result.
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

// newest is a list of the newest n alone.
func (a *answered) newest(n int) *answered {
	if n == 0 {
		return nil
	}
	return a.before.newest(n - 1).with(a.call)
}
