package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Limits of a [State].
const (
	MaxCalls   = 1000 // open calls; as many answered ones can still get another result
	MaxWaiting = 1000 // results that wait for their calls
)

type callKey struct{ session, id string }

// isSame compares ids and sessions. An unknown session (the event lacks the extra field sessionId)
// matches any session.
func (k callKey) isSame(other callKey) bool {
	return k.id == other.id && (k.session == other.session || k.session == "" || other.session == "")
}

type pendingCall struct {
	callKey
	tool      string
	messageID string
	action    ActionType
	content   string
	at        time.Time
	requestID string // "" for an agent's call
	arguments json.RawMessage
	client    *event.Tool // of a client's call; else nil
	approval  *Approval   // nil: none is required
	progress  int         // expected index of the next progress
}

func (c *pendingCall) running() Status {
	if c.client != nil {
		return PendingClient
	}
	return Created
}

// question returns nil unless the call has the status of one that waits for a client.
func (c *pendingCall) question(status Status) *Question {
	if status != PendingClient || c.client == nil {
		return nil
	}
	return &Question{Arguments: indented(c.arguments), Description: c.client.Description, Schema: json.RawMessage(c.client.Parameters)}
}

type pendingResult struct {
	callKey
	messageID string
	body      event.ToolResult
	at        time.Time
}

// answered is an immutable list of calls with results, newest first. States share its tail.
type answered struct {
	*pendingCall
	older  *answered
	length int
}

// addCall ignores a call with the id of an open one. After the result, the id names a new call.
func (f *fold) addCall(body event.ToolCall) {
	key := callKey{session: f.session(), id: body.ToolCallID}
	if slices.ContainsFunc(f.open, func(c *pendingCall) bool { return c.callKey == key }) {
		f.warn(fmt.Sprintf("Ignored a call of the tool %s: another call with the id %q has no result yet", body.ToolName, body.ToolCallID))
		return
	}
	action := actionOf(body.ToolName, body.Parameters, f.cwd)
	c := &pendingCall{
		callKey: key, tool: body.ToolName, messageID: body.MessageID, action: action, content: title(body.ToolName, action), at: f.at,
		requestID: body.RequestID, arguments: body.Parameters,
	}
	if i := slices.IndexFunc(f.clientTools, func(t event.Tool) bool { return t.Name == body.ToolName }); i >= 0 && body.RequestID != "" {
		c.client = &f.clientTools[i]
	}
	status := c.running()
	if extra[Status](f.event, "status") == PendingApproval {
		status = PendingApproval
	}
	after := ""
	if body.MessageID == "" || body.MessageID == f.answer.id {
		after = f.answer.after
	}
	toolCallID := ""
	if c.requestID != "" {
		toolCallID = c.id
	}
	f.effects = append(f.effects, AppendEntry{ID: c.id, SessionID: c.session, After: after, Entry: f.entry(Entry{
		EntryType: EntryType{
			Type: ToolUse, ToolName: c.tool, ActionType: &action, Status: status, ToolCallID: toolCallID, Question: c.question(status),
		},
		Content: c.content,
	})})
	if len(f.open) == MaxCalls {
		f.close(f.open[0])
	}
	f.open = append(slices.Clip(f.open), c)
	f.applyWaiting(c)
}

func (f *fold) applyWaiting(c *pendingCall) {
	var others []pendingResult
	for _, r := range f.waiting {
		if r.isSame(c.callKey) {
			f.resolve(c, r)
		} else {
			others = append(others, r)
		}
	}
	f.waiting = others
}

// addResult prefers the newest call with the id in the same session.
func (f *fold) addResult(body event.ToolResult) {
	r := pendingResult{
		callKey: callKey{session: f.session(), id: body.ToolCallID}, messageID: extra[string](f.event, "messageId"), body: body, at: f.at,
	}
	for _, belongs := range []func(*pendingCall) bool{
		func(c *pendingCall) bool { return c.callKey == r.callKey },
		func(c *pendingCall) bool { return r.isSame(c.callKey) },
	} {
		if i := slices.IndexFunc(f.open, belongs); i >= 0 {
			f.resolve(f.open[i], r)
			return
		}
		for a := f.answered; a != nil; a = a.older {
			if belongs(a.pendingCall) {
				f.update(a.pendingCall, r)
				return
			}
		}
	}
	f.waiting = append(slices.Clip(f.waiting), r)
	if len(f.waiting) > MaxWaiting {
		dropped := f.waiting[0]
		f.waiting = f.waiting[1:]
		f.effects = append(f.effects, EmitWarning{Message: fmt.Sprintf(
			"Dropped the result of tool call %q: no matching call, and %d other results are waiting",
			dropped.id, MaxWaiting)})
	}
}

func (f *fold) session() string { return extra[string](f.event, "sessionId") }

func (f *fold) resolve(c *pendingCall, r pendingResult) {
	f.close(c)
	f.update(c, r)
}

// update shows a result. A later one replaces an earlier one, such as a placeholder.
func (f *fold) update(c *pendingCall, r pendingResult) {
	status, action := c.action.withResult(r.body, parameters{cwd: f.cwd}.relative)
	switch {
	case c.approval != nil && c.approval.Decision == event.Deny:
		status = Denied
	case c.requestID != "" && status == Failed && strings.HasPrefix(plain(r.body.Error), "expired:"):
		status = TimedOut
	}
	durationMs := r.body.DurationMs
	if durationMs == 0 && (c.requestID == "" || c.client != nil) {
		durationMs = max(0, r.at.Sub(c.at).Milliseconds())
	}
	content := c.content
	if action.Path != c.action.Path {
		content = title(c.tool, action)
	}
	f.effects = append(f.effects, UpdateToolStatus{
		ToolCallID: c.id, SessionID: c.session, MessageID: c.messageID, ResultMessageID: r.messageID,
		Status: status, ActionType: action, Content: content,
		Timestamp: r.at, DurationMs: durationMs,
	})
}

func (f *fold) requestApproval(body event.ApprovalRequested) {
	if c := f.callOf(body.ToolCallID, body.RequestID); c != nil {
		f.setApproval(c, Approval{Arguments: indented(c.arguments), ExpiresAt: body.ExpiresAt.UTC()}, PendingApproval)
	}
}

func indented(raw json.RawMessage) string {
	var text bytes.Buffer
	if json.Indent(&text, valid(raw), "", "  ") != nil {
		return "" // no arguments
	}
	return text.String()
}

func (f *fold) callOf(id, requestID string) *pendingCall {
	i := slices.IndexFunc(f.open, func(c *pendingCall) bool { return c.id == id && c.requestID == requestID })
	if i < 0 {
		return nil
	}
	return f.open[i]
}

func (f *fold) decide(body event.ApprovalDecided) {
	for _, c := range f.open {
		isMeant := body.ToolCallID == "" || body.ToolCallID == c.id
		if !isMeant || c.approval == nil || c.approval.Decision != "" {
			continue
		}
		approval := Approval{
			ExpiresAt: c.approval.ExpiresAt, Decision: body.Decision, Reason: body.Reason, DecidedBy: body.DecidedBy,
			Edited: len(body.Parameters) > 0,
		}
		decided := *c
		if approval.Edited {
			decided.arguments = body.Parameters
			decided.action = actionOf(c.tool, body.Parameters, f.cwd)
			decided.content = title(c.tool, decided.action)
		}
		status := decided.running()
		if body.Decision == event.Deny {
			status = Denied
		}
		f.replace(c, &decided)
		f.setApproval(&decided, approval, status)
	}
}

func (f *fold) setApproval(c *pendingCall, approval Approval, status Status) {
	changed := *c
	changed.approval = &approval
	f.replace(c, &changed)
	f.effects = append(f.effects, UpdateApproval{
		ToolCallID: c.id, SessionID: c.session, Status: status, Approval: approval, ActionType: c.action, Content: c.content,
		Question: c.question(status),
	})
}

func (f *fold) addProgress(body event.ToolProgress) {
	c := f.callOf(body.ToolCallID, body.RequestID)
	if c == nil || body.Index < c.progress {
		return
	}
	changed := *c
	changed.progress = body.Index + 1
	f.replace(c, &changed)
	f.effects = append(f.effects, UpdateProgress{ToolCallID: c.id, SessionID: c.session, Text: body.Text})
}

func (f *fold) replace(c, by *pendingCall) {
	f.open = slices.Clone(f.open)
	f.open[slices.Index(f.open, c)] = by
}

func (f *fold) close(c *pendingCall) {
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

func (a *answered) with(c *pendingCall) *answered {
	if a == nil {
		return &answered{pendingCall: c, length: 1}
	}
	return &answered{pendingCall: c, older: a, length: a.length + 1}
}

func (a *answered) newest(n int) *answered {
	if n == 0 {
		return nil
	}
	return a.older.newest(n - 1).with(a.pendingCall)
}
