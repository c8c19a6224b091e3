package aisdk

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// chat is the fold of the events of a context, and of the deltas of its running answer, into messages.
type chat struct {
	messages []*message
	last     string         // id of the newest event
	files    []part         // for the next user message
	begins   string         // id of the first event of files
	tools    event.ToolList // newest
}

func (c *chat) apply(e event.Event) {
	c.last = cmp.Or(e.ID, c.last)
	m := c.answer(event.RequestOf(e.Body))
	switch body := e.Body.(type) {
	case event.FileAttachment:
		c.files, c.begins = append(c.files, filePart(e, body)), cmp.Or(c.begins, e.ID)
	case event.UserMessage:
		c.addUser(e, body)
	case event.SetTools:
		c.tools = body.Tools
	case event.LLMRequestStarted:
		c.start(m, e, body)
	case event.TextDelta:
		m.addDelta(body, typeText)
	case event.ReasoningDelta:
		m.addDelta(event.TextDelta(body), typeReasoning)
	case event.AssistantMessage:
		c.addAnswer(m, e, body)
	case event.ToolCall:
		c.addCall(m, body)
	case event.ToolProgress:
		if p := c.call(body.ToolCallID); p != nil && !p.isFinal() {
			p.State, p.Output, p.Preliminary = stateOutput, text(body.Text), true
		}
	case event.ApprovalRequested:
		if p := c.call(body.ToolCallID); p != nil {
			p.State, p.Approval = stateAsked, &approval{ID: body.ToolCallID}
		}
	case event.ApprovalDecided:
		c.decide(body)
	case event.ToolResult:
		if p := c.call(body.ToolCallID); p != nil {
			p.end(body)
		}
	case event.LLMAttemptEnded:
		m.endAttempt(body.Usage)
	case event.LLMRequestFellBack:
		m.endAttempt(body.Usage)
	case event.LLMRequestCompleted:
		m.end(e, body.Usage, strings.ReplaceAll(body.FinishReason, "_", "-"), "")
	case event.LLMRequestInterrupted:
		failure := ""
		if body.Reason == event.ReasonTimeout {
			failure = "the answer timed out"
		}
		m.end(e, body.Usage, finishInterrupted, failure)
	case event.LLMRequestFailed:
		_, failure := body.Words()
		m.end(e, body.Usage, finishError, failure)
	}
}

const (
	finishInterrupted = "interrupted"
	finishError       = "error"
	finishToolCalls   = "tool-calls"
)

func (c *chat) addUser(e event.Event, body event.UserMessage) {
	m := &message{ID: cmp.Or(e.ClientEventID, e.ID), Role: roleUser, Parts: append([]part{}, c.files...), begins: cmp.Or(c.begins, e.ID)}
	if metadata, ok := e.Extra[extraMetadata]; ok {
		m.Metadata = metadata
	}
	if body.Content != "" {
		m.Parts = append(m.Parts, part{Type: typeText, Text: body.Content})
	}
	c.messages, c.files, c.begins = append(c.messages, m), nil, ""
}

// extraMetadata is the extra field of a user message with the metadata of the SDK's message.
const extraMetadata = "metadata"

func (c *chat) addAssistant(id string, e event.Event) *message {
	a := &answer{CreatedAt: e.Timestamp}
	m := &message{ID: id, Role: roleAssistant, Metadata: a, answer: a}
	c.messages = append(c.messages, m)
	return m
}

// start begins a step of an answer. An answer without content is about the newest message, so it moves behind it.
func (c *chat) start(m *message, e event.Event, body event.LLMRequestStarted) {
	if m == nil {
		m = c.addAssistant(body.RequestID, e)
	} else if m.dropStreamed(); len(m.Parts) < 2 {
		c.messages = append(slices.DeleteFunc(c.messages, func(other *message) bool { return other == m }), m)
	}
	m.ProviderID, m.Model, m.through = body.ProviderID, body.Model, max(m.through, event.Counter(body.ThroughEventID))
	if m.isStreaming = body.Purpose == ""; m.isStreaming {
		m.beginStep()
	}
}

func (m *message) addDelta(d event.TextDelta, kind string) {
	if m == nil || !m.isStreaming {
		return
	}
	if d.Reset {
		m.dropStreamed()
	}
	if d.Delta != "" {
		m.textOf(kind).Text += d.Delta
	}
}

// addAnswer keeps the reasoning as it was streamed, of which the log may have the beginning only.
func (c *chat) addAnswer(m *message, e event.Event, body event.AssistantMessage) {
	if m == nil { // sent by a client
		m = c.addAssistant(e.ID, e)
		m.isEnded = true
		m.beginStep()
	}
	m.first = cmp.Or(m.first, e.ID)
	if body.Reasoning != "" {
		p := m.textOf(typeReasoning)
		p.Text, p.State = cmp.Or(p.Text, body.Reasoning), stateDone
	}
	if body.Content != "" {
		p := m.textOf(typeText)
		p.Text, p.State = body.Content, stateDone
	}
	m.dropStreamed()
}

// addCall adds a call without a request to the newest answer. A call of the page's tools is not available to the page
// until it is found to wait for it, see [message.settle].
func (c *chat) addCall(m *message, body event.ToolCall) {
	for _, other := range slices.Backward(c.messages) {
		if m == nil && other.answer != nil {
			m = other
		}
	}
	if m == nil {
		return
	}
	p := part{Type: toolPrefix + body.ToolName, ToolCallID: body.ToolCallID, State: stateInput, Input: body.Parameters, ProviderExecuted: true}
	if len(p.Input) == 0 {
		p.Input = json.RawMessage("{}")
	}
	isOfPage := func(t event.Tool) bool { return t.IsClient() && t.Name == body.ToolName }
	if body.RequestID != "" && slices.ContainsFunc(c.tools, isOfPage) {
		p.State, p.ProviderExecuted = stateInputStreaming, false
	}
	m.Parts = append(m.Parts, p)
}

func (c *chat) decide(body event.ApprovalDecided) {
	for _, m := range c.messages {
		for i := range m.Parts {
			p := &m.Parts[i]
			if p.State != stateAsked || body.ToolCallID != "" && body.ToolCallID != p.ToolCallID {
				continue
			}
			p.State, p.Approval = stateDecided, &approval{ID: p.ToolCallID, Approved: new(body.Decision == event.Approve), Reason: body.Reason}
			if len(body.Parameters) > 0 {
				p.Input = body.Parameters
			}
		}
	}
}

// endAttempt removes the text of an attempt that another one repeats.
func (m *message) endAttempt(u event.Usage) {
	if m != nil {
		m.Usage, m.isStreaming = m.Usage.Add(u), false
		m.dropStreamed()
	}
}

func (m *message) end(e event.Event, u event.Usage, reason, failure string) {
	if m != nil {
		m.endAttempt(u)
		m.isEnded, m.endedAt, m.FinishReason, m.failure = true, e.Timestamp, reason, failure
	}
}

// answer returns the answer of a request; nil if there is none.
func (c *chat) answer(requestID string) *message {
	return c.find(func(m *message) bool { return m.ID == requestID && m.answer != nil })
}

// user returns a message of the user; nil if there is none.
func (c *chat) user(id string) *message {
	return c.find(func(m *message) bool { return m.ID == id && m.answer == nil })
}

func (c *chat) find(is func(m *message) bool) *message {
	for _, m := range slices.Backward(c.messages) {
		if is(m) {
			return m
		}
	}
	return nil
}

// call returns the newest call with an id; nil if there is none. The pointer is valid until the next event.
func (c *chat) call(id string) *part {
	for _, m := range slices.Backward(c.messages) {
		for i := range m.Parts {
			if m.Parts[i].isTool() && m.Parts[i].ToolCallID == id {
				return &m.Parts[i]
			}
		}
	}
	return nil
}

// answerTo returns the answer between a message and the next one of the user; nil if there is none.
func (c *chat) answerTo(asked *message) *message {
	for _, m := range c.messages[slices.Index(c.messages, asked)+1:] {
		switch {
		case m.answer == nil:
			return nil
		case m.first != "" || !m.isEnded:
			return m
		}
	}
	return nil
}

// shown returns the messages for a page, without answers that ended without content.
func (c *chat) shown(waiting func(calls []string) (ofPage []string)) []*message {
	for _, m := range c.messages {
		m.settle(waiting)
	}
	return slices.DeleteFunc(append([]*message{}, c.messages...), func(m *message) bool {
		isRunning := m.answer != nil && !m.isEnded
		return !isRunning && !slices.ContainsFunc(m.Parts, func(p part) bool { return p.Type != typeStep })
	})
}

func filePart(e event.Event, body event.FileAttachment) part {
	p := part{Type: typeFile, MediaType: body.MediaType, Filename: body.FileName, URL: body.Source.URL}
	if body.Source.Type == event.SourceBlob {
		p.URL = "/contexts/" + e.ContextName + "/events/" + e.ID + "/attachment"
	}
	return p
}
