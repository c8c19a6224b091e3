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
	if problem := d.sizeProblem(events); problem != "" {
		return problem
	}
	in := batch{
		decision: d, reduced: d.Reduced, attachments: len(d.Reduced.PendingAttachments), calls: len(d.OpenToolCalls),
		called: map[string]bool{}, answered: map[string]bool{},
	}
	for i, e := range events {
		if e.ContextName != "" && e.ContextName != d.ContextName {
			return fmt.Sprintf("%s.contextName: the event is for another context than %s", e.Tag(), d.ContextName)
		}
		if d.reusesKey(e.ClientEventID) {
			return event.KeyReused
		}
		in.checked = events[:i]
		if problem := in.add(e.Body); problem != "" {
			return problem
		}
	}
	return ""
}

// batch is the part of an input that was checked.
type batch struct {
	*decision
	checked            []event.Event
	reduced            ReducedContext // after the first folded ones of checked
	folded             int
	attachments, calls int // that wait for a message or a result
	called, answered   map[string]bool
	decided            []event.ApprovalDecided
}

// add returns why the next event is rejected; "" if it is not.
func (b *batch) add(body event.Body) string {
	switch body := body.(type) {
	case event.AnswerRequested:
		return b.answerProblem(body)
	case event.ApprovalDecided:
		if problem := b.approvalProblem(body, b.decided); problem != "" {
			return fmt.Sprintf("%s.toolCallId: %s", body.Tag(), problem)
		}
		b.decided = append(b.decided, body)
	case event.AssistantMessage:
		return b.addAnswer(body)
	case event.FileAttachment:
		if b.attachments++; b.attachments > MaxPendingAttachments {
			return fmt.Sprintf("%s: %d attachments wait for a message already", body.Tag(), MaxPendingAttachments)
		}
	case event.ToolCall:
		return b.addCall(body)
	case event.ToolResult:
		return b.addResult(body)
	case event.UserMessage:
		return b.addMessage(body)
	}
	return ""
}

func (b *batch) answerProblem(body event.AnswerRequested) string {
	switch {
	case b.Request != nil:
		return fmt.Sprintf("%s: request %s is running (wait for its end, or interrupt it)", body.Tag(), b.Request.ID)
	case !b.isQuestion():
		return fmt.Sprintf("%s: the newest message is not one of the user or the result of a tool (send a message)", body.Tag())
	}
	return ""
}

// isQuestion reports whether every provider answers the conversation as it stands after the checked events.
func (b *batch) isQuestion() bool {
	b.reduced = b.reduce(b.reduced, b.placed(b.checked)[b.folded:]...)
	b.folded = len(b.checked)
	n := len(b.reduced.Messages)
	return n > 0 && (b.reduced.Messages[n-1].Role == RoleUser || b.reduced.Messages[n-1].Role == RoleTool)
}

func (b *batch) addAnswer(body event.AssistantMessage) string {
	switch {
	case b.Request != nil && body.RequestID == b.Request.ID:
		return fmt.Sprintf("%s.requestId: request %s is running, and only its worker can answer it (leave requestId out)", body.Tag(), b.Request.ID)
	case b.isFarBack(event.Counter(body.ThroughEventID)):
		return fmt.Sprintf("%s.throughEventId: more than %d messages follow event %s (name a later event, or leave throughEventId out)",
			body.Tag(), MaxPlaceBack, body.ThroughEventID)
	}
	return ""
}

func (b *batch) addCall(body event.ToolCall) string {
	number := event.RequestNumber(body.RequestID)
	b.calls++
	b.called[body.ToolCallID] = true
	switch {
	case number > 0 && body.RequestID == event.FormatRequestID(b.ContextName, number):
		return fmt.Sprintf("%s.requestId: only the worker of a request can add calls to it (leave requestId out)", body.Tag())
	case b.isOfRequest(body.ToolCallID):
		return fmt.Sprintf("%s.toolCallId: a request made a call with this id", body.Tag())
	case b.calls > MaxOpenToolCalls:
		return fmt.Sprintf("%s: %d tool calls wait for their results already", body.Tag(), MaxOpenToolCalls)
	}
	return ""
}

func (b *batch) addResult(body event.ToolResult) string {
	problem, size := b.resultProblem(body.ToolCallID, b.answered[body.ToolCallID]), max(len(body.Value), len(body.Error))
	b.answered[body.ToolCallID] = true
	switch {
	case problem != "":
		return fmt.Sprintf("%s.toolCallId: %s", body.Tag(), problem)
	case size > maxToolResult && b.isOfRequest(body.ToolCallID):
		return fmt.Sprintf("%s: the result has %d bytes (at most %d)", body.Tag(), size, maxToolResult)
	case !b.called[body.ToolCallID] && !b.knowsToolCall(body.ToolCallID):
		return fmt.Sprintf("%s.toolCallId: no tool call of the newest %d messages has the id, and providers reject such a result",
			body.Tag(), MaxPlaceBack)
	}
	return ""
}

func (b *batch) addMessage(body event.UserMessage) string {
	isEmpty := strings.TrimSpace(body.Content) == "" && b.attachments == 0
	b.attachments = 0
	switch {
	case isEmpty:
		return fmt.Sprintf("%s.content: empty, and no attachment waits for it", body.Tag())
	case body.Triggers() && b.isAnswering() && b.policy().Rejects:
		return fmt.Sprintf("busy: request %s is being answered and the delivery policy is reject", b.Request.ID)
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
