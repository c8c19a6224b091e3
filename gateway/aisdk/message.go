package aisdk

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// message is a UIMessage of the SDK.
type message struct {
	ID       string `json:"id"`
	Role     string `json:"role"`               // roleUser or roleAssistant
	Metadata any    `json:"metadata,omitempty"` // of a user message, as it was sent; a *answer
	Parts    []part `json:"parts"`

	begins  string     // of a user message: the id of its first event
	*answer `json:"-"` // nil for a user message
}

const (
	roleUser      = "user"
	roleAssistant = "assistant"
)

// answer is what the log shows of the request behind an assistant message. Its JSON is the metadata of the message.
type answer struct {
	CreatedAt    time.Time     `json:"createdAt"`
	ProviderID   string        `json:"providerId,omitempty"`
	Model        string        `json:"model,omitempty"`
	FinishReason string        `json:"finishReason,omitempty"`
	Usage        reducer.Usage `json:"usage"`

	first       string // id of its first AssistantMessageEvent, from which it is regenerated; "": none
	through     int    // counter of the newest event that it answers
	step        int    // index of the first part of the newest step
	isStreaming bool   // an attempt runs; also until all calls of its answer are recorded
	isEnded     bool
	endedAt     time.Time // of a request
	failure     string    // why it ended without an answer; "": it did not
}

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

func (p *part) isTool() bool { return p.ToolCallID != "" }

func (p *part) isFinal() bool {
	return p.State == stateOutput && !p.Preliminary || p.State == stateError || p.State == stateDenied
}

// end ends a call. One that was not decided in time counts as denied: the SDK has no other state for it.
func (p *part) end(body event.ToolResult) {
	failure := gateway.PlainText([]byte(cmp.Or(string(body.Error), string(body.Value))))
	if p.State == stateAsked {
		p.Approval = &approval{ID: p.ToolCallID, Approved: new(false), Reason: failure}
	}
	p.Preliminary, p.Output, p.ErrorText = false, nil, ""
	switch {
	case p.Approval != nil && !*p.Approval.Approved:
		p.State = stateDenied
	case body.IsError || len(body.Value) == 0:
		p.State, p.ErrorText = stateError, failure
	default:
		p.State, p.Output = stateOutput, body.Value
	}
}

// settle offers calls to the page, which executes them: those of its tools that neither ended nor wait, as far as the log
// shows, and that wait for it, as waiting reports. Others have invalid arguments, or need an approval first.
func (m *message) settle(waiting func(calls []string) (ofPage []string)) {
	var calls []string
	for _, p := range m.Parts {
		isApproved := p.State == stateDecided && *p.Approval.Approved
		if p.isTool() && !p.ProviderExecuted && (p.State == stateInputStreaming || isApproved) && !m.isStreaming && !m.isEnded {
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
	return isWaiting && !m.isStreaming && !m.isEnded
}

// beginStep uses the step of an attempt that left nothing.
func (m *message) beginStep() {
	if n := len(m.Parts); n == 0 || m.Parts[n-1].Type != typeStep {
		m.Parts = append(m.Parts, part{Type: typeStep})
	}
	m.step = len(m.Parts)
}

// textOf returns the text or the reasoning of the newest step. The pointer is valid until the next part is added.
func (m *message) textOf(kind string) *part {
	i := m.step + slices.IndexFunc(m.Parts[m.step:], func(p part) bool { return p.Type == kind })
	if i < m.step {
		i = len(m.Parts)
		m.Parts = append(m.Parts, part{Type: kind, State: stateStreaming})
	}
	return &m.Parts[i]
}

// dropStreamed removes the text of an attempt that the log does not have.
func (m *message) dropStreamed() {
	m.Parts = slices.DeleteFunc(m.Parts, func(p part) bool { return p.State == stateStreaming })
}

// text returns a JSON string.
func text(s string) json.RawMessage {
	data, _ := json.Marshal(s) // a string always encodes
	return data
}
