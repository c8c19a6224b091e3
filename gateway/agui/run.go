package agui

import (
	"encoding/json"
	"io"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/thread"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// run turns what happens in a context into the events of a run. It begins where its thread is.
type run struct {
	in     runInput
	thread *thread.Thread
	offers func(calls []string) (offered []string) // see [thread.Offers]
	input  map[string]bool                         // client event ids of the input that is not recorded yet
	out    []frame
	open   message         // whose text grows; zero: none
	used   reducer.Usage   // by the requests of the run
	newest *thread.Request // of these; nil: none
	isDone bool
}

func newRun(in runInput, now *thread.Thread, offers func([]string) []string) *run {
	r := &run{in: in, thread: now, offers: offers, input: map[string]bool{}}
	if r.newest = now.Running(); r.newest != nil {
		r.used = r.newest.Usage
	}
	return r
}

func (r *run) add(f frame) { r.out = append(r.out, f) }

// await notes the input of the run, which ends after it is recorded.
func (r *run) await(receipt client.Receipt) {
	for _, id := range receipt.ClientEventIDs {
		r.input[id] = true
	}
}

// next returns the frames for an item; [io.EOF] ends the run.
func (r *run) next(item gateway.Item) ([]byte, error) {
	r.apply(item)
	if r.isDone {
		return r.frames(), io.EOF
	}
	return r.frames(), nil
}

// frames returns the frames since the previous call.
func (r *run) frames() (frames []byte) {
	for _, f := range r.out {
		frames = append(frames, encode(f)...)
	}
	r.out = nil
	return frames
}

func encode(f frame) []byte {
	data, _ := json.Marshal(f) // strings and JSON always encode
	return gateway.Frame("", "", data)
}

func (r *run) apply(item gateway.Item) {
	e := item.Event
	isInput := r.input[e.ClientEventID]
	delete(r.input, e.ClientEventID)
	for _, change := range r.thread.Apply(item) {
		r.change(change, isInput)
	}
	switch body := e.Body.(type) {
	case event.InputRejected:
		if isInput {
			r.finish(frame{Type: "RUN_ERROR", Code: "refused", Message: body.Reason})
		}
	case event.SessionEnded:
		if len(r.input) == 0 { // else the next session records it
			r.finish(frame{Type: "RUN_FINISHED", Outcome: &outcome{Type: "cancelled"}})
		}
	}
	if e.ID != "" {
		r.settle()
	}
}

// settle ends a run that only clients can continue, and one whose input requires no answer.
func (r *run) settle() {
	if len(r.input) > 0 {
		return
	}
	last, ok := pause(r.thread.Running())
	if n := len(last.Outcome.Pending); n > 0 && len(r.offers(last.Outcome.Pending)) < n {
		return // the log will show why
	}
	if ok {
		r.finish(last)
	} else if isIdle(r.thread) {
		r.finish(frame{Type: "RUN_FINISHED", Outcome: &outcome{Type: "success"}})
	}
}

// isIdle reports whether neither a request runs nor one follows.
func isIdle(t *thread.Thread) bool { return t.Running() == nil && t.Asked <= t.Through }

// change is the table from changes of the context to events of AG-UI. The client has its own input.
func (r *run) change(change thread.Change, isInput bool) {
	switch change := change.(type) {
	case thread.Said:
		if !isInput {
			r.user(userMessage(change.User))
		}
	case thread.Began:
		r.close()
	case thread.Grew:
		r.grow(change)
	case thread.Restarted:
		r.snapshot()
	case thread.Answered:
		if r.close(); change.IsReplaced {
			r.snapshot()
		}
	case thread.Abandoned:
		if r.close(); change.Step.Text.Len()+change.Step.Reasoning.Len() > 0 {
			r.snapshot()
		}
	case thread.Used:
		r.used, r.newest = r.used.Add(change.Usage), change.Request
	case thread.Called:
		r.call(change.Call)
	case thread.Progressed:
		content, _ := json.Marshal(map[string]string{"text": change.Call.Progress}) // a string always encodes
		r.add(frame{Type: "ACTIVITY_SNAPSHOT", MessageID: change.Call.ToolCallID + "/progress", ActivityType: "TOOL_PROGRESS", Content: content})
	case thread.Returned:
		if m := resultMessage(change.Call); !isInput {
			r.add(frame{Type: "TOOL_CALL_RESULT", MessageID: m.ID, ToolCallID: m.ToolCallID, Role: roleTool, Content: m.Content})
		}
	case thread.Ended:
		r.close()
		if isIdle(r.thread) && len(r.input) == 0 { // else another request follows
			r.finish(endOf(change.Request.End))
		}
	}
}

func endOf(end event.RequestEnd) frame {
	switch end := end.(type) {
	case event.LLMRequestFailed:
		_, why := end.Words()
		return frame{Type: "RUN_ERROR", Code: string(end.Kind), Message: why}
	case event.LLMRequestInterrupted:
		if end.Reason == event.ReasonTimeout {
			return frame{Type: "RUN_ERROR", Code: "timeout", Message: "the answer timed out"}
		}
		return frame{Type: "RUN_FINISHED", Outcome: &outcome{Type: "cancelled"}}
	}
	return frame{Type: "RUN_FINISHED", Outcome: &outcome{Type: "success"}}
}

func (r *run) grow(g thread.Grew) {
	id, of := stepID(g.Step), roleAssistant
	if g.IsReasoning {
		id, of = reasoningID(id), roleReasoning
	}
	if r.open.ID != id {
		r.close()
		if r.open = (message{ID: id, Role: of}); g.IsReasoning {
			r.add(frame{Type: "REASONING_START", MessageID: id})
		}
		r.add(frame{Type: r.open.kind() + "_START", MessageID: id, Role: of})
	}
	r.add(frame{Type: r.open.kind() + "_CONTENT", MessageID: id, Delta: g.Delta})
}

// kind returns the kind of the frames with the text of a message.
func (m message) kind() string {
	if m.Role == roleReasoning {
		return "REASONING_MESSAGE"
	}
	return "TEXT_MESSAGE"
}

func (r *run) close() {
	m := r.open
	if r.open = (message{}); m.ID == "" {
		return
	}
	r.add(frame{Type: m.kind() + "_END", MessageID: m.ID})
	if m.Role == roleReasoning {
		r.add(frame{Type: "REASONING_END", MessageID: m.ID})
	}
}

// snapshot replaces what the client has, such as the text of an attempt that gave no answer.
func (r *run) snapshot() {
	r.close()
	r.add(snapshotOf(messagesOf(r.thread)))
}

func (r *run) call(c *thread.Call) {
	if c.RequestID == "" {
		return
	}
	r.close()
	r.add(frame{Type: "TOOL_CALL_START", ToolCallID: c.ToolCallID, ToolCallName: c.ToolName, ParentMessageID: stepID(c.Step)})
	r.add(frame{Type: "TOOL_CALL_ARGS", ToolCallID: c.ToolCallID, Delta: gateway.Arguments(c.ToolCall)})
	r.add(frame{Type: "TOOL_CALL_END", ToolCallID: c.ToolCallID})
}

// user shows a message of another client.
func (r *run) user(m message) {
	r.add(frame{Type: "TEXT_MESSAGE_START", MessageID: m.ID, Role: roleUser})
	if text := m.text(); text != "" {
		r.add(frame{Type: "TEXT_MESSAGE_CONTENT", MessageID: m.ID, Delta: text})
	}
	r.add(frame{Type: "TEXT_MESSAGE_END", MessageID: m.ID})
}

func (r *run) finish(last frame) {
	if r.isDone {
		return
	}
	r.close()
	r.isDone = true
	if r.newest != nil && r.used.InputTokens+r.used.OutputTokens > 0 {
		last.Usage = []usage{usageOf(r.newest, r.used)}
	}
	if last.Type == "RUN_FINISHED" {
		last.ThreadID, last.RunID = r.in.ThreadID, r.in.RunID
	}
	r.add(last)
}

func usageOf(newest *thread.Request, of reducer.Usage) usage {
	return usage{
		Provider: newest.ProviderID, Model: newest.Model, InputTokens: of.InputTokens, OutputTokens: of.OutputTokens,
		TotalTokens: of.InputTokens + of.OutputTokens, ReasoningTokens: of.ReasoningTokens, CachedInputTokens: of.CachedTokens,
	}
}
