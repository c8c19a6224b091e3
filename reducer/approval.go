package reducer

import (
	"slices"
	"strings"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
)

func (d *decision) approvalProblem(body event.ApprovalDecided, before []event.ApprovalDecided) string {
	waits := func(c Call) bool { return c.awaits(body) && !slices.ContainsFunc(before, c.awaits) }
	if d.Request != nil && slices.ContainsFunc(d.Request.Calls, waits) {
		return ""
	}
	if body.ToolCallID == "" {
		return "no tool call waits for an approval"
	}
	return "no tool call with the id waits for an approval"
}

// Waits reports whether a call of the request waits for an approval or for the result of a client.
func (r *Request) Waits() bool {
	return slices.ContainsFunc(r.Calls, func(c Call) bool { return c.State == CallApproval || c.State == CallClient })
}

func (c Call) awaits(body event.ApprovalDecided) bool {
	return c.State == CallApproval && (body.ToolCallID == "" || body.ToolCallID == c.ID)
}

// resultProblem returns why a client must not answer a call; "" if it may. isAnswered means that an
// earlier event of the same input answers it.
func (d *decision) resultProblem(callID string, isAnswered bool) string {
	if d.Request != nil {
		for _, c := range d.Request.Calls {
			// The log does not show the end of a check, so a client may execute a call while it is checked.
			isClients := c.State == CallClient || c.State == CallChecking
			switch {
			case c.ID != callID || isClients && !isAnswered:
			case c.State == CallApproval:
				return "the tool call waits for an approval (send an ApprovalDecidedEvent)"
			case isClients:
				return hasResult
			default:
				return "a worker executes the tool call, and only it can report the result"
			}
		}
	}
	if d.isFinal(callID) {
		return hasResult
	}
	return ""
}

const hasResult = "the tool call has a result already"

// isFinal reports whether a call of a request has a result that a client must not replace: a later
// one replaces only a placeholder, or the error of a client's call that expired.
func (d *decision) isFinal(callID string) bool {
	result := ""
	for _, m := range slices.Backward(d.Reduced.Messages) {
		switch {
		case m.Role == RoleTool && m.ToolCallID == callID:
			result = m.Content
		case m.hasCall(callID):
			return m.RequestID != "" && result != "" && result != event.OutcomeUnknown && !strings.HasPrefix(result, noResult)
		}
	}
	return false
}

func (d *decision) followApprovalRequest(body event.ApprovalRequested) {
	if d.Request == nil || d.Request.ID != body.RequestID {
		return
	}
	for i := range d.Request.Calls {
		if c := &d.Request.Calls[i]; c.ID == body.ToolCallID {
			c.State, c.Deadline = CallApproval, body.ExpiresAt
		}
	}
}

func (d *decision) followApproval(body event.ApprovalDecided) {
	if d.Request == nil {
		return
	}
	for i := range d.Request.Calls {
		c := &d.Request.Calls[i]
		if !c.awaits(body) {
			continue
		}
		c.State, c.Deadline = CallQueued, time.Time{}
		switch {
		case body.Decision == event.Deny && body.Reason == "":
			c.Error = "denied"
		case body.Decision == event.Deny:
			c.Error = "denied: " + body.Reason
		case len(body.Parameters) > 0:
			c.Arguments, c.Edited = body.Parameters, c.Client
		}
	}
}

const (
	noResult   = "expired: no result"
	noApproval = "expired: no approval"
)

func (d *decision) expireCalls() {
	for i := range d.Request.Calls {
		c := &d.Request.Calls[i]
		if c.Deadline.IsZero() || d.at.Before(c.Deadline) {
			continue
		}
		problem := noResult
		if c.State == CallApproval {
			problem = noApproval
		}
		c.Error = problem + " until " + c.Deadline.UTC().Format(time.RFC3339)
	}
	d.advance()
}
