package aisdk

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// chunk is a UIMessageChunk of the SDK.
type chunk map[string]any

// writer turns the states of an answer into the chunks that take the SDK from one to the next.
type writer struct {
	version int    // major version of the SDK: 6 lacks three kinds of chunks
	has     []part // of the SDK
	isBegun bool
	texts   int // so far
	chunks  []chunk
}

// add adds a chunk, with alternating names and values.
func (w *writer) add(kind string, fields ...any) {
	c := chunk{"type": kind}
	for i := 0; i < len(fields); i += 2 {
		c[fields[i].(string)] = fields[i+1]
	}
	w.chunks = append(w.chunks, c)
}

// update adds the chunks from the previous state to that of m.
func (w *writer) update(m *message) {
	if !w.isBegun {
		w.isBegun = true
		w.add("start", "messageId", m.ID, "messageMetadata", m.Metadata)
	}
	if same := w.same(m.Parts); same < len(w.has) {
		w.reset(same)
	}
	for i, p := range m.Parts {
		var has part
		if i < len(w.has) {
			has = w.has[i]
		} else {
			w.has = append(w.has, has)
		}
		switch {
		case p.Type == typeStep && has.Type == "":
			w.endStep(i)
			w.add("start-step")
		case p.isTool():
			w.changeCall(has, p)
		case p.Type == typeText || p.Type == typeReasoning:
			p.open = w.changeText(has, p)
		}
		w.has[i] = p
	}
}

// same returns the number of parts of the SDK that chunks can turn into those of the answer. Reasoning that the SDK has
// completely may be longer than in the log.
func (w *writer) same(parts []part) int {
	for i, has := range w.has {
		if i == len(parts) || has.Type != parts[i].Type || has.ToolCallID != parts[i].ToolCallID {
			return i
		}
		isOpen := has.open != "" && strings.HasPrefix(parts[i].Text, has.Text)
		if has.Text != parts[i].Text && !isOpen && (has.Type != typeReasoning || has.open != "") {
			return i
		}
	}
	return len(w.has)
}

// reset removes the parts of the step with index i. Version 6 cannot: it marks the text as discarded.
func (w *writer) reset(i int) {
	for i > 0 && w.has[i-1].Type != typeStep {
		i--
	}
	if w.version > 6 {
		w.add("reset-step")
	}
	for _, has := range w.has[i:] {
		if has.open != "" && w.version == 6 {
			w.add(has.Type+"-end", "id", has.open, "providerMetadata", map[string]any{"chronicle": map[string]bool{"discarded": true}})
		}
	}
	w.has = w.has[:i]
}

// endStep ends the step before the part at i, if there is one.
func (w *writer) endStep(i int) {
	if slices.ContainsFunc(w.has[:i], func(p part) bool { return p.Type == typeStep }) {
		w.add("finish-step")
	}
}

// changeText returns the id of the text, if it is still open.
func (w *writer) changeText(has, p part) (open string) {
	open = has.open
	if has.Type == "" {
		w.texts++
		open = strconv.Itoa(w.texts)
		w.add(p.Type+"-start", "id", open)
	}
	if open != "" && len(p.Text) > len(has.Text) {
		w.add(p.Type+"-delta", "id", open, "delta", p.Text[len(has.Text):])
	}
	if open != "" && p.State == stateDone {
		w.add(p.Type+"-end", "id", open)
		open = ""
	}
	return open
}

// changeCall adds the chunks of a tool call. The SDK executes a call of the page when its input becomes available, so that
// waits for an approval, and does not happen again to a call that has ended.
func (w *writer) changeCall(has, p part) {
	add := func(kind string, fields ...any) { w.add(kind, append(fields, "toolCallId", p.ToolCallID)...) }
	name := strings.TrimPrefix(p.Type, toolPrefix)
	isNew := has.Type == "" || has.State == stateInputStreaming
	if has.Type == "" {
		add("tool-input-start", "toolName", name, "providerExecuted", p.ProviderExecuted)
		add("tool-input-delta", "inputTextDelta", string(p.Input))
		has.State = stateInputStreaming
	}
	if p.ProviderExecuted && (isNew || !bytes.Equal(has.Input, p.Input)) {
		add("tool-input-available", "toolName", name, "input", p.Input, "providerExecuted", true)
	}
	if p.Approval != nil && has.Approval == nil {
		add("tool-approval-request", "approvalId", p.Approval.ID)
		has.Approval = &approval{}
	}
	if p.Approval != nil && p.Approval.Approved != nil && has.Approval.Approved == nil && w.version > 6 {
		w.add("tool-approval-response", "approvalId", p.Approval.ID, "approved", *p.Approval.Approved, "reason", p.Approval.Reason)
	}
	if has.State == p.State && has.Preliminary == p.Preliminary && bytes.Equal(has.Output, p.Output) && has.ErrorText == p.ErrorText {
		return
	}
	switch p.State {
	case stateInput:
		if !p.ProviderExecuted {
			add("tool-input-available", "toolName", name, "input", p.Input)
		}
	case stateOutput:
		add("tool-output-available", "output", p.Output, "preliminary", p.Preliminary)
	case stateError:
		add("tool-output-error", "errorText", p.ErrorText)
	case stateDenied:
		add("tool-output-denied")
	}
}

// finish adds the chunks that end the stream of an answer that ended, or waits.
func (w *writer) finish(m *message) {
	w.endStep(len(w.has))
	if m.failure != "" {
		w.add("message-metadata", "messageMetadata", m.Metadata)
		w.add("error", "errorText", m.failure)
		return
	}
	reason := cmp.Or(m.Metadata.(answerMetadata).FinishReason, finishToolCalls)
	if reason == finishInterrupted && w.version == 6 {
		reason = "other"
	}
	w.add("finish", "finishReason", reason, "messageMetadata", m.Metadata)
}
