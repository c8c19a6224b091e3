package transcript

import (
	"fmt"
	"slices"

	"github.com/seed-9ed7edd4/chronicle/event"
)

const (
	// MaxCalls bounds the open calls. At least as many answered calls can still get
	// another result.
	MaxCalls = 1000
	// MaxWaiting bounds the results that wait for their calls.
	MaxWaiting = 1000
)

// call is an immutable tool call.
type call struct {
	id, tool string
	action   ActionType
}

// answered is an immutable list of calls with results, newest first. States share
// its tail.
type answered struct {
	*call
	older  *answered
	length int
}

// addCall appends a call, with its result if that came first. It ignores the id of an
// open call. After the result, the same id is a new call.
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
	f.applyWaiting(c)
}

// applyWaiting applies the results that came before their call.
func (f *fold) applyWaiting(c *call) {
	var others []event.ToolResult
	for _, body := range f.waiting {
		if body.ToolCallID == c.id {
			f.resolve(c, body)
		} else {
			others = append(others, body)
		}
	}
	f.waiting = others
}

// addResult applies a result to the newest call with its id.
func (f *fold) addResult(body event.ToolResult) {
	if i := slices.IndexFunc(f.open, func(c *call) bool { return c.id == body.ToolCallID }); i >= 0 {
		f.resolve(f.open[i], body)
		return
	}
	for a := f.answered; a != nil; a = a.older {
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

func (f *fold) resolve(c *call, body event.ToolResult) {
	f.close(c)
	f.update(c, body)
}

// update shows the result of a call. An actual result replaces a placeholder.
func (f *fold) update(c *call, body event.ToolResult) {
	status, action := c.action.withResult(body, parameters{cwd: f.cwd}.relative)
	f.effects = append(f.effects, UpdateToolStatus{
		ToolCallID: c.id, Status: status, ActionType: action, Content: title(c.tool, action),
	})
}

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
	return &answered{call: c, older: a, length: a.length + 1}
}

// newest copies the first n elements.
func (a *answered) newest(n int) *answered {
	if n == 0 {
		return nil
	}
	return a.older.newest(n - 1).with(a.call)
}
