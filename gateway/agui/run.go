package agui

import (
	"encoding/json"
	"io"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
)

// run turns what happens in a context into the events of a run.
type run struct {
	in     runInput
	thread *thread
	known  known
	input  map[string]bool // client event ids of the input that is not recorded yet
	from   int             // counter of the event up to which the run replays what happened before it
	out    []frame

	request string            // id of the running request; "": none
	texts   map[string]string // what was streamed of the newest attempt, by message id
	isOpen  string            // id of the message whose text is open; "": none
	isStep  bool              // an answer with calls has ended
	asked   int               // counter of the newest event that requires an answer
	through int               // counter of the newest event in the newest request
	usage   usage
	isDone  bool
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
	r.out = nil
	r.apply(item)
	var frames []byte
	for _, f := range r.out {
		frames = append(frames, encode(f)...)
	}
	if r.isDone {
		return frames, io.EOF
	}
	return frames, nil
}

func encode(f frame) []byte {
	data, _ := json.Marshal(f) // strings and JSON always encode
	return gateway.Frame("", "", data)
}

func (r *run) apply(item gateway.Item) {
	e := item.Event
	isInput := r.input[e.ClientEventID]
	delete(r.input, e.ClientEventID)
	if event.RequiresAnswer(e.Body) {
		r.asked = event.Counter(e.ID)
	}
	switch body := e.Body.(type) {
	case event.TextDelta:
		r.delta(body, r.thread.newest, item.Offset)
	case event.ReasoningDelta:
		r.delta(event.TextDelta(body), reasoningID(r.thread.newest), item.Offset)
	case event.ToolProgress:
		content, _ := json.Marshal(map[string]string{"text": body.Text}) // a string always encodes
		r.add(frame{Type: "ACTIVITY_SNAPSHOT", MessageID: body.ToolCallID + "/progress", ActivityType: "TOOL_PROGRESS", Content: content})
	}
	if event.Counter(e.ID) == 0 {
		return
	}
	r.thread.apply(e)
	switch body := e.Body.(type) {
	case event.LLMRequestStarted:
		r.start(body)
	case event.AssistantMessage:
		r.answer(e, body)
	case event.ToolCall:
		r.call(body)
	case event.ToolResult:
		r.result(e, body)
	case event.UserMessage:
		r.user(r.thread.messages[r.thread.last(roleUser)].message)
	case event.LLMAttemptEnded:
		r.count(body.Usage)
		if body.Outcome == event.AttemptToolCalls {
			r.isStep = true
		} else if body.Outcome != event.AttemptCompacted {
			r.abandon()
		}
	case event.LLMRequestFellBack:
		r.count(body.Usage)
		r.abandon()
	case event.LLMRequestCompleted:
		r.count(body.Usage)
		r.end(body, frame{Type: "RUN_FINISHED", Outcome: &outcome{Type: "success"}})
	case event.LLMRequestInterrupted:
		r.count(body.Usage)
		last := frame{Type: "RUN_FINISHED", Outcome: &outcome{Type: "cancelled"}}
		if body.Reason == event.ReasonTimeout {
			last = frame{Type: "RUN_ERROR", Code: "timeout", Message: "the answer timed out"}
		}
		r.end(body, last)
	case event.LLMRequestFailed:
		r.count(body.Usage)
		_, why := body.Words()
		r.end(body, frame{Type: "RUN_ERROR", Code: string(body.Kind), Message: why})
	case event.InputRejected:
		if isInput {
			r.finish(frame{Type: "RUN_ERROR", Code: "refused", Message: body.Reason})
		}
	case event.SessionEnded:
		if len(r.input) == 0 { // else the next session records it
			r.finish(frame{Type: "RUN_FINISHED", Outcome: &outcome{Type: "cancelled"}})
		}
	}
	if event.Counter(e.ID) < r.from || len(r.input) > 0 {
		return
	}
	if last, ok := r.thread.pause(); ok && r.isStep {
		r.finish(last)
	} else if r.request == "" && r.asked <= r.through { // the input requires no answer
		r.finish(frame{Type: "RUN_FINISHED", Outcome: &outcome{Type: "success"}})
	}
}

// pause returns the end of a run that only clients can continue.
func (t *thread) pause() (frame, bool) {
	clients, approvals, ok := t.waiting()
	switch {
	case !ok:
		return frame{}, false
	case len(approvals) > 0:
		return frame{Type: "RUN_FINISHED", Outcome: &outcome{Type: "interrupt", Interrupts: approvals}}, true
	}
	return frame{Type: "RUN_FINISHED", Outcome: &outcome{Type: "success", Pending: clients}}, true
}

func (r *run) start(body event.LLMRequestStarted) {
	r.close()
	r.request, r.through, r.isStep = body.RequestID, event.Counter(body.ThroughEventID), false
	r.usage.Provider, r.usage.Model = body.ProviderID, body.Model
	r.texts = map[string]string{}
}

// delta streams a piece of the running answer. A text that starts over comes with its record.
func (r *run) delta(d event.TextDelta, id string, offset int) {
	has := r.texts[id]
	if d.RequestID != r.request || d.Delta == "" || offset > len(has) {
		return
	}
	if shared := min(len(has)-offset, len(d.Delta)); has[offset:offset+shared] == d.Delta[:shared] {
		r.grow(id, d.Delta[shared:])
	}
}

// grow streams text of a message, unless the client has it.
func (r *run) grow(id, text string) {
	if r.texts == nil {
		r.texts = map[string]string{}
	}
	before := r.texts[id]
	after := before + text
	r.texts[id] = after
	if has := r.known.texts[id]; strings.HasPrefix(has, after) {
		return
	} else if strings.HasPrefix(after, has) && len(has) > len(before) {
		text = after[len(has):]
	}
	if text == "" {
		return
	}
	kind := "TEXT_MESSAGE_CONTENT"
	if r.open(id); isReasoning(id) {
		kind = "REASONING_MESSAGE_CONTENT"
	}
	r.add(frame{Type: kind, MessageID: id, Delta: text})
}

func isReasoning(id string) bool { return strings.HasSuffix(id, "/reasoning") }

func (r *run) open(id string) {
	if r.isOpen == id {
		return
	}
	r.close()
	r.isOpen = id
	if isReasoning(id) {
		r.add(frame{Type: "REASONING_START", MessageID: id})
		r.add(frame{Type: "REASONING_MESSAGE_START", MessageID: id, Role: roleReasoning})
		return
	}
	r.add(frame{Type: "TEXT_MESSAGE_START", MessageID: id, Role: roleAssistant})
}

func (r *run) close() {
	id := r.isOpen
	if r.isOpen = ""; id == "" {
		return
	}
	if isReasoning(id) {
		r.add(frame{Type: "REASONING_MESSAGE_END", MessageID: id})
		r.add(frame{Type: "REASONING_END", MessageID: id})
		return
	}
	r.add(frame{Type: "TEXT_MESSAGE_END", MessageID: id})
}

// answer ends the messages of an answer. If what was streamed differs from it, a snapshot replaces all messages.
func (r *run) answer(e event.Event, body event.AssistantMessage) {
	id := r.thread.idOf(e, body.RequestID)
	for _, m := range []struct{ id, text string }{{reasoningID(id), body.Reasoning}, {id, body.Content}} {
		rest, ok := strings.CutPrefix(m.text, r.texts[m.id])
		if !ok && !(isReasoning(m.id) && strings.HasPrefix(r.texts[m.id], m.text)) { // the log has the beginning of the reasoning
			r.snapshot()
			return
		}
		r.grow(m.id, rest)
		r.close()
	}
}

// abandon removes the text of an attempt that gave no answer.
func (r *run) abandon() {
	if r.close(); len(r.texts) > 0 {
		r.snapshot()
	}
	r.texts = nil
}

func (r *run) snapshot() {
	r.close()
	r.add(r.thread.snapshot(nil))
	r.texts, r.known = nil, r.thread.known()
}

func (t *thread) snapshot(added []message) frame {
	messages := []message{}
	for _, m := range t.messages {
		messages = append(messages, m.message)
	}
	return frame{Type: "MESSAGES_SNAPSHOT", Messages: append(messages, added...)}
}

func (r *run) call(body event.ToolCall) {
	if r.known.calls[body.ToolCallID] || body.RequestID == "" {
		return
	}
	r.close()
	r.add(frame{Type: "TOOL_CALL_START", ToolCallID: body.ToolCallID, ToolCallName: body.ToolName, ParentMessageID: r.thread.newest})
	r.add(frame{Type: "TOOL_CALL_ARGS", ToolCallID: body.ToolCallID, Delta: gateway.Arguments(body)})
	r.add(frame{Type: "TOOL_CALL_END", ToolCallID: body.ToolCallID})
}

func (r *run) result(e event.Event, body event.ToolResult) {
	if r.known.results[body.ToolCallID] {
		return
	}
	m := resultOf(e, body)
	r.add(frame{Type: "TOOL_CALL_RESULT", MessageID: m.ID, ToolCallID: m.ToolCallID, Role: roleTool, Content: m.Content})
}

// user shows a message of another client.
func (r *run) user(m message) {
	if _, ok := r.known.texts[m.ID]; ok {
		return
	}
	r.add(frame{Type: "TEXT_MESSAGE_START", MessageID: m.ID, Role: roleUser})
	if text := m.text(); text != "" {
		r.add(frame{Type: "TEXT_MESSAGE_CONTENT", MessageID: m.ID, Delta: text})
	}
	r.add(frame{Type: "TEXT_MESSAGE_END", MessageID: m.ID})
}

func (r *run) count(u event.Usage) {
	r.usage.InputTokens += u.InputTokens
	r.usage.OutputTokens += u.OutputTokens
	r.usage.TotalTokens = r.usage.InputTokens + r.usage.OutputTokens
	r.usage.ReasoningTokens += u.ReasoningTokens
	r.usage.CachedInputTokens += u.CachedTokens
}

// end ends the run with a request, unless another one follows.
func (r *run) end(body event.RequestEnd, last frame) {
	r.close()
	if n := event.Counter(body.Unanswered()); n > 0 {
		r.through = n
	}
	r.request, r.isStep, r.texts = "", false, nil
	if r.asked <= r.through && len(r.input) == 0 {
		r.finish(last)
	}
}

func (r *run) finish(last frame) {
	if r.isDone {
		return
	}
	r.close()
	r.isDone = true
	if r.usage.TotalTokens > 0 {
		last.Usage = []usage{r.usage}
	}
	r.add(r.identified(last))
}

// identified returns the last frame of the run.
func (r *run) identified(last frame) frame {
	if last.Type == "RUN_FINISHED" {
		last.ThreadID, last.RunID = r.in.ThreadID, r.in.RunID
	}
	return last
}

// remember makes the messages that a client sends known.
func (k *known) remember(added []message) {
	for _, m := range added {
		k.texts[m.ID] = m.text()
		if m.Role == roleTool {
			k.results[m.ToolCallID] = true
		}
	}
}

// known returns what a client knows after a snapshot.
func (t *thread) known() known {
	k := known{texts: map[string]string{}, calls: map[string]bool{}, results: map[string]bool{}}
	for _, m := range t.messages {
		k.texts[m.ID] = m.text()
		for _, c := range m.ToolCalls {
			k.calls[c.ID] = true
		}
		if m.Role == roleTool {
			k.results[m.ToolCallID] = true
		}
	}
	return k
}
