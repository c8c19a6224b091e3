package agui

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
)

// thread is the fold of the recorded events of a context into messages.
type thread struct {
	messages []entry
	files    []part // for the next user message
	newest   string // id of the newest attempt that answers
	setup    setup
	open     map[string]*call // calls without a result
}

// setup is what a client can set.
type setup struct {
	system string
	tools  event.SetTools
}

// entry is a message with the counter of its event.
type entry struct {
	message
	at int
}

// call is a call without a result.
type call struct {
	event.ToolCall
	isClient bool
	approval *event.ApprovalRequested // nil: it waits for none
}

func newThread() *thread { return &thread{open: map[string]*call{}} }

func attemptID(requestID string, attempt int) string {
	return requestID + "/" + strconv.Itoa(max(1, attempt))
}

func reasoningID(id string) string { return id + "/reasoning" }

func (t *thread) apply(e event.Event) {
	at := event.Counter(e.ID)
	switch body := e.Body.(type) {
	case event.SystemPrompt:
		t.setup.system = body.Content
	case event.SetTools:
		t.setup.tools = body
	case event.FileAttachment:
		t.files = append(t.files, filePart(e, body))
	case event.UserMessage:
		m := message{ID: cmp.Or(e.ClientEventID, e.ID), Role: roleUser, Content: quoted(body.Content)}
		if len(t.files) > 0 {
			m.Content, _ = json.Marshal(append(t.files, part{Type: "text", Text: body.Content})) // strings always encode
		}
		t.files = nil
		t.messages = append(t.messages, entry{m, at})
	case event.LLMRequestStarted:
		if body.Purpose == "" {
			t.newest = attemptID(body.RequestID, body.Attempt)
		}
	case event.AssistantMessage:
		t.addAnswer(e, body)
	case event.ToolCall:
		t.addCall(e, body)
	case event.ApprovalRequested:
		if c := t.open[body.ToolCallID]; c != nil {
			c.approval = &body
		}
	case event.ApprovalDecided:
		for id, c := range t.open {
			if body.ToolCallID == "" || body.ToolCallID == id {
				c.approval = nil
			}
		}
	case event.ToolResult:
		t.addResult(e, body)
	case event.RequestEnd:
		clear(t.open)
	}
}

// addAnswer places an answer before the messages that its request did not contain.
func (t *thread) addAnswer(e event.Event, body event.AssistantMessage) {
	id := t.idOf(e, body.RequestID)
	added := []entry{{message{ID: id, Role: roleAssistant, Content: quoted(body.Content)}, event.Counter(e.ID)}}
	if body.Reasoning != "" {
		added = append([]entry{{message{ID: reasoningID(id), Role: roleReasoning, Content: quoted(body.Reasoning)}, event.Counter(e.ID)}}, added...)
	}
	place := len(t.messages)
	for through := event.Counter(body.ThroughEventID); through > 0 && place > 0 && t.messages[place-1].Role == roleUser && t.messages[place-1].at > through; {
		place--
	}
	t.messages = slices.Insert(t.messages, place, added...)
}

// idOf returns the id of the message of an answer, and that of the event for a message of a client.
func (t *thread) idOf(e event.Event, requestID string) string {
	if requestID == "" {
		return cmp.Or(e.ClientEventID, e.ID)
	}
	return t.newest
}

func (t *thread) addCall(e event.Event, body event.ToolCall) {
	isClient := slices.ContainsFunc(t.setup.tools.Tools, func(tool event.Tool) bool { return tool.IsClient() && tool.Name == body.ToolName })
	if body.RequestID != "" {
		t.open[body.ToolCallID] = &call{ToolCall: body, isClient: isClient}
	}
	i := t.last(roleAssistant)
	if body.RequestID != "" && (i < 0 || t.messages[i].ID != t.newest) {
		i = len(t.messages)
		t.messages = append(t.messages, entry{message{ID: t.newest, Role: roleAssistant}, event.Counter(e.ID)})
	}
	if i >= 0 {
		m := &t.messages[i]
		m.ToolCalls = append(slices.Clip(m.ToolCalls), toolCall{body.ToolCallID, "function", function{body.ToolName, gateway.Arguments(body)}})
	}
}

func (t *thread) last(of role) int {
	for i := len(t.messages) - 1; i >= 0; i-- {
		if t.messages[i].Role == of {
			return i
		}
	}
	return -1
}

// addResult replaces an earlier result: a late one replaces its placeholder.
func (t *thread) addResult(e event.Event, body event.ToolResult) {
	delete(t.open, body.ToolCallID)
	m := resultOf(e, body)
	for i := range t.messages {
		if t.messages[i].ToolCallID == body.ToolCallID {
			t.messages[i].message = m
			return
		}
	}
	t.messages = append(t.messages, entry{m, event.Counter(e.ID)})
}

func resultOf(e event.Event, body event.ToolResult) message {
	m := message{ID: cmp.Or(e.ClientEventID, e.ID), Role: roleTool, ToolCallID: body.ToolCallID, Content: quoted(gateway.PlainText(body.Value))}
	if body.IsError || len(body.Value) == 0 {
		m.Error = gateway.PlainText(body.Error)
		m.Content = quoted(cmp.Or(gateway.PlainText(body.Value), m.Error))
	}
	return m
}

func filePart(e event.Event, body event.FileAttachment) part {
	p := part{Type: partType(body.MediaType), Source: &source{Type: "url", Value: body.Source.URL, MIMEType: body.MediaType}}
	if body.Source.Type != event.SourceURL {
		p.Source.Value = "/contexts/" + e.ContextName + "/events/" + e.ID + "/attachment"
	}
	return p
}

// waiting returns the calls that wait for clients and for approvals. ok is false if the request continues without them.
func (t *thread) waiting() (clients []string, approvals []interrupt, ok bool) {
	for id, c := range t.open {
		switch {
		case c.approval != nil:
			approvals = append(approvals, interrupt{
				ID: id, Reason: "approval_required", Message: "Allow " + c.ToolName + "?", ToolCallID: id,
				ResponseSchema: decisionSchema, ExpiresAt: c.approval.ExpiresAt.Format("2006-01-02T15:04:05.000Z"),
			})
		case c.isClient:
			clients = append(clients, id)
		default:
			return nil, nil, false
		}
	}
	slices.Sort(clients)
	slices.SortFunc(approvals, func(a, b interrupt) int { return cmp.Compare(a.ID, b.ID) })
	return clients, approvals, len(t.open) > 0
}
