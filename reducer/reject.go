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
			if number := event.RequestNumber(body.RequestID); d.Rules >= Rules2 && number > 0 && body.RequestID == event.FormatRequestID(d.ContextName, number) {
				return fmt.Sprintf("%s.requestId: only the worker of a request can add calls to it (leave requestId out)", e.Tag())
			}
			if d.Rules >= Rules2 && d.isOfRequest(body.ToolCallID) {
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
			if size := max(len(body.Value), len(body.Error)); size > maxToolResult && d.Rules >= Rules2 && d.isOfRequest(body.ToolCallID) {
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

// acceptedSince is the first version of the rules that accepts an input. A run keeps its rules, so that
// its history replays on the release that started it.
var acceptedSince = map[event.Tag]Rules{
	event.TagSystemPrompt:       Rules1,
	event.TagUserMessage:        Rules1,
	event.TagAssistantMessage:   Rules1,
	event.TagFileAttachment:     Rules1,
	event.TagToolCall:           Rules1,
	event.TagToolResult:         Rules1,
	event.TagNote:               Rules1,
	event.TagSetRetryConfig:     Rules1,
	event.TagSetProviderConfig:  Rules1,
	event.TagSetTimeout:         Rules1,
	event.TagSetDeliveryPolicy:  Rules1,
	event.TagSetRequestSettings: Rules2,
	event.TagSetTools:           Rules2,
	event.TagBudgetSet:          Rules2,
	event.TagSetCompaction:      Rules2,
	event.TagApprovalDecided:    Rules2,
}

// policyAcceptedSince is the first version of the rules that accepts a delivery policy.
var policyAcceptedSince = map[event.Policy]Rules{
	event.PolicyInterrupt: Rules1,
	event.PolicyQueue:     Rules1,
	event.PolicyReject:    Rules1,
	event.PolicySteer:     Rules2,
}

// unsupported returns why the input is rejected if the release that introduced the rules of the run could
// not decode it; "" if it could.
func (d *decision) unsupported(events []event.Event) string {
	rules := max(d.Rules, Rules1)
	for _, e := range events {
		what := ""
		if rules < acceptedSince[e.Tag()] {
			what = string(e.Tag())
		} else if body, ok := e.Body.(event.SetDeliveryPolicy); ok && rules < policyAcceptedSince[body.Policy] {
			what = fmt.Sprintf("%s.policy: %s", e.Tag(), body.Policy)
		} else if body, ok := e.Body.(event.SetProviderConfig); ok && rules < Rules2 && body.UseDefault {
			what = fmt.Sprintf("%s.useDefault", e.Tag())
		}
		if what != "" {
			return fmt.Sprintf("%s: the run was started by version %s, which does not support it (close the context; its next session does)", what, releases[rules])
		}
	}
	return ""
}

func (d *decision) isAnswering() bool {
	return d.Phase().IsSent() || d.Request != nil && d.Request.Steps > 0
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
