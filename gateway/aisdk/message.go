package aisdk

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway/thread"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// message is a UIMessage of the SDK.
type message struct {
	ID       string `json:"id"`
	Role     string `json:"role"`               // roleUser or roleAssistant
	Metadata any    `json:"metadata,omitempty"` // of a user message, as it was sent; an answerMetadata
	Parts    []part `json:"parts"`

	request *thread.Request // nil for a user message
	failure string          // why the request ended without an answer; "": it did not
}

const (
	roleUser      = "user"
	roleAssistant = "assistant"
)

type answerMetadata struct {
	CreatedAt    time.Time     `json:"createdAt"`
	ProviderID   string        `json:"providerId,omitempty"`
	Model        string        `json:"model,omitempty"`
	FinishReason string        `json:"finishReason,omitempty"`
	Usage        reducer.Usage `json:"usage"`
}

const (
	finishInterrupted = "interrupted"
	finishError       = "error"
	finishToolCalls   = "tool-calls"
)

// part is a part of a UIMessage. Its fields depend on the type.
type part struct {
	Type  string    `json:"type"` // a constant below, or toolPrefix and a name
	Text  string    `json:"text,omitempty"`
	State partState `json:"state,omitempty"`

	ToolCallID string          `json:"toolCallId,omitempty"`
	Input      json.RawMessage `json:"input,omitempty"`
	Output     json.RawMessage `json:"output,omitempty"`
	ErrorText  string          `json:"errorText,omitempty"`
	Approval   *approval       `json:"approval,omitempty"`
	// ProviderExecuted marks the tools of workers: the SDK waits for the results of all others from its page.
	ProviderExecuted bool `json:"providerExecuted,omitempty"`
	Preliminary      bool `json:"preliminary,omitempty"` // the output is the progress of the call

	MediaType string `json:"mediaType,omitempty"`
	Filename  string `json:"filename,omitempty"`
	URL       string `json:"url,omitempty"`

	open string // for a writer: id of the text that the SDK still receives; "": none
}

const (
	typeStep      = "step-start"
	typeText      = "text"
	typeReasoning = "reasoning"
	typeFile      = "file"
	toolPrefix    = "tool-"
)

type partState string

const (
	stateStreaming partState = "streaming" // of text and reasoning
	stateDone      partState = "done"

	stateInputStreaming partState = "input-streaming" // of tools
	stateInput          partState = "input-available"
	stateAsked          partState = "approval-requested"
	stateDecided        partState = "approval-responded"
	stateOutput         partState = "output-available"
	stateError          partState = "output-error"
	stateDenied         partState = "output-denied"
)

// approval is the approval of a tool call. Its id is that of the call.
type approval struct {
	ID       string `json:"id"`
	Approved *bool  `json:"approved,omitempty"` // nil: it waits
	Reason   string `json:"reason,omitempty"`
}

// messagesOf returns the messages of a chat. The steps of an answer are one message.
func messagesOf(t *thread.Thread) (messages []*message) {
	for _, in := range t.Entries {
		switch {
		case in.User != nil:
			messages = append(messages, userMessage(in.User))
		case in.Step != nil && in.Step == in.Step.Request.Steps[0]:
			messages = append(messages, answerMessage(in.Step.Request))
		}
	}
	return messages
}

// extraMetadata is the extra field of a user message with the metadata of the SDK's message.
const extraMetadata = "metadata"

func userMessage(u *thread.User) *message {
	m := &message{ID: userID(u), Role: roleUser, Parts: []part{}}
	if metadata, ok := u.Event.Extra[extraMetadata]; ok {
		m.Metadata = metadata
	}
	for _, f := range u.Files {
		m.Parts = append(m.Parts, part{Type: typeFile, MediaType: f.MediaType, Filename: f.FileName, URL: f.URL})
	}
	if u.Content != "" {
		m.Parts = append(m.Parts, part{Type: typeText, Text: u.Content})
	}
	return m
}

func userID(u *thread.User) string { return cmp.Or(u.Event.ClientEventID, u.Event.ID) }

func answerMessage(r *thread.Request) *message {
	metadata := answerMetadata{CreatedAt: r.Began, ProviderID: r.ProviderID, Model: r.Model, Usage: r.Usage}
	m := &message{ID: r.ID, Role: roleAssistant, request: r}
	switch end := r.End.(type) {
	case event.LLMRequestCompleted:
		metadata.FinishReason = strings.ReplaceAll(end.FinishReason, "_", "-")
	case event.LLMRequestInterrupted:
		if metadata.FinishReason = finishInterrupted; end.Reason == event.ReasonTimeout {
			m.failure = "the answer timed out"
		}
	case event.LLMRequestFailed:
		metadata.FinishReason = finishError
		_, m.failure = end.Words()
	}
	m.Metadata = metadata
	for _, s := range r.Steps {
		m.Parts = append(m.Parts, part{Type: typeStep})
		state := stateStreaming
		if s.IsRecorded() {
			state = stateDone
		}
		if s.Reasoning.Len() > 0 && !s.IsAbandoned {
			m.Parts = append(m.Parts, part{Type: typeReasoning, Text: s.Reasoning.String(), State: state})
		}
		if s.Text.Len() > 0 && !s.IsAbandoned {
			m.Parts = append(m.Parts, part{Type: typeText, Text: s.Text.String(), State: state})
		}
		for _, c := range s.Calls {
			m.Parts = append(m.Parts, toolPart(c))
		}
	}
	return m
}

// toolPart returns the part of a call. One of the page's tools is not available to the page until it is found to wait for
// it, see [message.settle]. One that was not decided in time counts as denied: the SDK has no other state for it.
func toolPart(c *thread.Call) part {
	p := part{Type: toolPrefix + c.ToolName, ToolCallID: c.ToolCallID, State: stateInput, Input: c.Parameters, ProviderExecuted: !c.IsClient}
	if c.IsClient {
		p.State = stateInputStreaming
	}
	if c.Approval != nil {
		p.State, p.Approval = stateAsked, &approval{ID: c.ToolCallID}
	}
	if d := c.Decision; d != nil {
		p.State, p.Approval.Approved, p.Approval.Reason = stateDecided, new(d.Decision == event.Approve), d.Reason
		if len(d.Parameters) > 0 {
			p.Input = d.Parameters
		}
	}
	if len(p.Input) == 0 {
		p.Input = json.RawMessage("{}")
	}
	if c.Result == nil {
		if c.Progress != "" {
			p.State, p.Output, p.Preliminary = stateOutput, text(c.Progress), true
		}
		return p
	}
	output, isError := c.Output()
	if p.Approval != nil && p.Approval.Approved == nil {
		p.Approval.Approved, p.Approval.Reason = new(false), output
	}
	switch {
	case p.Approval != nil && !*p.Approval.Approved:
		p.State = stateDenied
	case isError:
		p.State, p.ErrorText = stateError, output
	default:
		p.State, p.Output = stateOutput, c.Result.Value
	}
	return p
}

func (p *part) isTool() bool { return p.ToolCallID != "" }

func (p *part) isFinal() bool {
	return p.State == stateOutput && !p.Preliminary || p.State == stateError || p.State == stateDenied
}

// isPaused reports whether the request runs without an attempt, which also makes its calls.
func (m *message) isPaused() bool {
	n := len(m.request.Steps)
	return !m.request.IsEnded && (n == 0 || !m.request.Steps[n-1].IsRunning)
}

// settle offers calls to the page, which executes them: those of its tools that neither ended nor wait, as far as the log
// shows, and that wait for it, as waiting reports. Others have invalid arguments, or need an approval first.
func (m *message) settle(waiting func(calls []string) (ofPage []string)) {
	var calls []string
	for _, p := range m.Parts {
		isApproved := p.State == stateDecided && *p.Approval.Approved
		if p.isTool() && !p.ProviderExecuted && (p.State == stateInputStreaming || isApproved) && m.isPaused() {
			calls = append(calls, p.ToolCallID)
		}
	}
	if len(calls) == 0 {
		return
	}
	calls = waiting(calls)
	for i := range m.Parts {
		if slices.Contains(calls, m.Parts[i].ToolCallID) {
			m.Parts[i].State = stateInput
		}
	}
}

// waits reports whether the answer continues only when the page, or somebody else, decided or executed a call.
func (m *message) waits() bool {
	isWaiting := false
	for _, p := range m.Parts {
		switch {
		case !p.isTool() || p.isFinal():
		case p.State == stateAsked, p.State == stateInput && !p.ProviderExecuted:
			isWaiting = true
		default:
			return false
		}
	}
	return isWaiting && m.isPaused()
}

// first returns the id of the first recorded event of the answer, from which it is regenerated; "": there is none.
func (m *message) first() string {
	for _, s := range m.request.Steps {
		if s.IsRecorded() {
			return s.Event.ID
		}
	}
	return ""
}

// answerTo returns the answer between a message and the next one of the user; nil if there is none.
func answerTo(messages []*message, asked string) *message {
	isAfter := false
	for _, m := range messages {
		switch {
		case m.request == nil && isAfter:
			return nil
		case m.request == nil:
			isAfter = m.ID == asked
		case isAfter && (m.first() != "" || !m.request.IsEnded):
			return m
		}
	}
	return nil
}

// shown returns the messages for a page, without answers that ended without content.
func shown(messages []*message, waiting func(calls []string) (ofPage []string)) []*message {
	return slices.DeleteFunc(append([]*message{}, messages...), func(m *message) bool {
		isRunning := m.request != nil && !m.request.IsEnded
		if isRunning {
			m.settle(waiting)
		}
		return !isRunning && !slices.ContainsFunc(m.Parts, func(p part) bool { return p.Type != typeStep })
	})
}

// text returns a JSON string.
func text(s string) json.RawMessage {
	data, _ := json.Marshal(s) // a string always encodes
	return data
}
