package reducer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
)

func (d *decision) reject(reason, input, clientEventID string) {
	rejected := event.New(event.InputRejected{Reason: reason, Input: input})
	rejected.ClientEventID = clientEventID
	d.recordEvents(rejected)
}

func (d *decision) rejectEvents(reason string, events []event.Event) {
	d.reject(reason, event.RedactEvents(events), events[0].ClientEventID)
}

// rejection returns why valid input is rejected; "" if it is not. The texts are recorded. A replay
// does not compare them, so a changed text does not fail it.
func (d *decision) rejection(events []event.Event) string {
	attachments := len(d.Reduced.PendingAttachments)
	calls := len(d.OpenToolCalls)
	called, answered := map[string]bool{}, map[string]bool{}
	var decided []event.ApprovalDecided
	for _, e := range events {
		if e.ContextName != "" && e.ContextName != d.ContextName {
			return fmt.Sprintf("%s.contextName: the event is for another context than %s", e.Tag(), d.ContextName)
		}
		if d.reusesKey(e.ClientEventID) {
			return event.KeyReused
		}
		switch body := e.Body.(type) {
		case event.ApprovalDecided:
			if problem := d.approvalProblem(body, decided); problem != "" {
				return fmt.Sprintf("%s.toolCallId: %s", e.Tag(), problem)
			}
			decided = append(decided, body)
		case event.AssistantMessage:
			if d.Request != nil && body.RequestID == d.Request.ID {
				return fmt.Sprintf("%s.requestId: request %s is running, and only its worker can answer it (leave requestId out)", e.Tag(), d.Request.ID)
			}
			if d.isFarBack(event.Counter(body.ThroughEventID)) {
				return fmt.Sprintf("%s.throughEventId: more than %d messages follow event %s (name a later event, or leave throughEventId out)",
					e.Tag(), MaxPlaceBack, body.ThroughEventID)
			}
		case event.FileAttachment:
			if attachments++; attachments > MaxPendingAttachments {
				return fmt.Sprintf("%s: %d attachments wait for a message already", e.Tag(), MaxPendingAttachments)
			}
		case event.ToolCall:
			if number := event.RequestNumber(body.RequestID); number > 0 && body.RequestID == event.FormatRequestID(d.ContextName, number) {
				return fmt.Sprintf("%s.requestId: only the worker of a request can add calls to it (leave requestId out)", e.Tag())
			}
			if d.isOfRequest(body.ToolCallID) {
				return fmt.Sprintf("%s.toolCallId: a request made a call with this id", e.Tag())
			}
			if calls++; calls > MaxOpenToolCalls {
				return fmt.Sprintf("%s: %d tool calls wait for their results already", e.Tag(), MaxOpenToolCalls)
			}
			called[body.ToolCallID] = true
		case event.ToolResult:
			if problem := d.resultProblem(body.ToolCallID, answered[body.ToolCallID]); problem != "" {
				return fmt.Sprintf("%s.toolCallId: %s", e.Tag(), problem)
			}
			answered[body.ToolCallID] = true
			if size := max(len(body.Value), len(body.Error)); size > maxToolResult && d.isOfRequest(body.ToolCallID) {
				return fmt.Sprintf("%s: the result has %d bytes (at most %d)", e.Tag(), size, maxToolResult)
			}
			if !called[body.ToolCallID] && !d.knowsToolCall(body.ToolCallID) {
				return fmt.Sprintf("%s.toolCallId: no tool call of the newest %d messages has the id, and providers reject such a result",
					e.Tag(), MaxPlaceBack)
			}
		case event.UserMessage:
			if strings.TrimSpace(body.Content) == "" && attachments == 0 {
				return fmt.Sprintf("%s.content: empty, and no attachment waits for it", e.Tag())
			}
			attachments = 0
			if body.Triggers() && d.isAnswering() && d.policy().Rejects {
				return fmt.Sprintf("busy: request %s is being answered and the delivery policy is reject", d.Request.ID)
			}
		}
	}
	return ""
}

// isAnswering reports whether the policy reject rejects a message: input in the first quiet period becomes part of the request.
func (d *decision) isAnswering() bool {
	r := d.Request
	return r != nil && (r.Steps > 0 || !r.RetryAt.IsZero() || !d.isQuiet())
}

func (d *decision) knowsToolCall(id string) bool {
	if slices.Contains(d.OpenToolCalls, id) {
		return true
	}
	messages := d.newestMessages()
	for i := range messages {
		if messages[i].hasCall(id) {
			return true
		}
	}
	return false
}

func (d *decision) newestMessages() []Message {
	return d.Reduced.Messages[max(0, len(d.Reduced.Messages)-MaxPlaceBack):]
}

// isFarBack reports whether a message that is placed after an event precedes more than MaxPlaceBack messages. 0 means
// the end.
func (d *decision) isFarBack(counter int) bool {
	newest := d.newestMessages()
	return counter > 0 && len(newest) == MaxPlaceBack && !slices.ContainsFunc(newest, func(m Message) bool {
		return event.Counter(m.EventID) <= counter
	})
}

// isOfRequest reports whether a request made the call with an id.
func (d *decision) isOfRequest(id string) bool {
	for i := range d.Reduced.Messages {
		if m := &d.Reduced.Messages[i]; m.RequestID != "" && m.hasCall(id) {
			return true
		}
	}
	return false
}
