package a2a

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/thread"
)

// turn folds a context into a task and the updates of its stream. The task depends on the log only, so that every gateway
// shows the same one.
type turn struct {
	task
	trigger int // counter of the event that begins the task; 0: not known yet
	thread  *thread.Thread
	request *thread.Request  // nil: none yet
	asked   string           // what the client was asked for
	updates []streamResponse // of the newest item
}

// newThread returns what turns of a context are folded from.
func (r *request) newThread(tools event.SetTools) *thread.Thread {
	return &thread.Thread{Base: r.base, Clients: thread.Clients(tools)}
}

func newTurn(contextID string, of *thread.Thread, trigger int) *turn {
	t := &turn{thread: of}
	t.ContextID = contextID
	t.beginAt(trigger)
	return t
}

func (t *turn) beginAt(trigger int) {
	if t.trigger = trigger; trigger > 0 {
		t.ID = event.FormatID(t.ContextID, trigger)
	}
}

// last returns the id of the newest event; "": none.
func (t *turn) last() string { return event.IDBefore(t.ContextID, t.thread.Last+1) }

func (t *turn) isDone() bool   { return t.Status.State.isTerminal() }
func (t *turn) isPaused() bool { return t.Status.State == stateInputRequired }

// add folds the next item of the context.
func (t *turn) add(in gateway.Item) {
	t.updates = nil
	if !t.isDone() {
		t.fold(in.Event, t.thread.Apply(in))
	}
}

// fold folds what an event has changed in the thread, which other turns may share.
func (t *turn) fold(e event.Event, changes []thread.Change) {
	isBegun := t.Status.State != ""
	for _, change := range changes {
		if isBegun {
			t.change(e, change)
		}
	}
	switch n := event.Counter(e.ID); {
	case n == 0:
	case n == t.trigger:
		t.begin(e)
	case isBegun && !t.isDone():
		t.settle(e)
	}
}

func (t *turn) begin(e event.Event) {
	if body, ok := e.Body.(event.InputRejected); ok {
		t.end(e, stateRejected, body.Reason)
	} else if event.RequiresAnswer(e.Body) {
		if _, ok := e.Body.(event.UserMessage); ok {
			u := t.thread.Entries[len(t.thread.Entries)-1].User
			var parts []part
			for _, f := range u.Files {
				parts = append(parts, part{URL: f.URL, Filename: f.FileName, MediaType: f.MediaType})
			}
			if u.Content != "" || len(parts) == 0 {
				parts = append(parts, textPart(u.Content))
			}
			t.user(e, parts)
		}
		t.set(e, stateSubmitted, nil)
	}
}

// isOwn reports whether a step is one of the task.
func (t *turn) isOwn(s *thread.Step) bool {
	return t.request != nil && s != nil && s.Request == t.request
}

// change is the table from changes of the context to updates of the task.
func (t *turn) change(e event.Event, change thread.Change) {
	switch change := change.(type) {
	case thread.Began:
		if t.request == nil && change.Request.Through >= t.trigger {
			t.request = change.Request
			t.set(e, stateWorking, nil)
		}
	case thread.Grew:
		if t.isOwn(change.Step) && !change.IsReasoning {
			t.stream(change.Delta, change.Offset > 0, false)
		}
	case thread.Answered:
		if t.isOwn(change.Step) {
			t.answer(change)
		}
	case thread.Abandoned:
		if t.isOwn(change.Step) && change.Step.Text.Len() > 0 {
			t.stream("", false, false)
		}
	case thread.Called:
		if c := change.Call; t.isOwn(c.Step) {
			t.set(e, stateWorking, t.agent(e.ID, dataPart(toolCall{ToolCallID: c.ToolCallID, Name: c.ToolName, Arguments: c.Parameters})))
		}
	case thread.Progressed:
		if c := change.Call; t.isOwn(c.Step) {
			progress := metadata{"toolProgress": map[string]string{"toolCallId": c.ToolCallID, "text": c.Progress}}
			t.updates = append(t.updates, streamResponse{StatusUpdate: &statusUpdate{t.ID, t.ContextID, status{State: stateWorking, Timestamp: t.Status.Timestamp}, progress}})
		}
	case thread.Decided:
		if c := change.Call; t.isOwn(c.Step) {
			t.replied(e, toolCall{ToolCallID: c.ToolCallID, Decision: c.Decision.Decision, Reason: c.Decision.Reason, Arguments: c.Decision.Parameters})
		}
	case thread.Returned:
		if t.isOwn(change.Call.Step) && !change.IsLate {
			t.result(e, change.Call)
		}
	case thread.Ended:
		t.ended(e, change.Request)
	}
}

// stream sends text of the newest artifact. It replaces that of an attempt before, whose artifact has the same id.
func (t *turn) stream(text string, isAppend, isLast bool) {
	t.updates = append(t.updates, streamResponse{ArtifactUpdate: &artifactUpdate{t.ID, t.ContextID, t.artifact(text), isAppend, isLast}})
}

func (t *turn) artifact(text string) artifact {
	return artifact{fmt.Sprintf("answer-%d", len(t.Artifacts)+1), []part{textPart(text)}}
}

func (t *turn) answer(a thread.Answered) {
	text := a.Step.Text.String()
	switch {
	case a.IsReplaced:
		t.stream(text, false, true)
	case text != "":
		t.stream("", true, true)
	}
	if text != "" {
		t.Artifacts = append(t.Artifacts, t.artifact(text))
	}
}

func (t *turn) result(e event.Event, c *thread.Call) {
	data := toolCall{ToolCallID: c.ToolCallID, Result: c.Result.Value, Error: c.Result.Error}
	if c.Result.IsError && len(data.Error) == 0 {
		data.Result, data.Error = nil, data.Result
	}
	if e.ClientEventID != "" {
		t.replied(e, data)
		return
	}
	t.set(e, stateWorking, t.agent(e.ID, dataPart(data)))
}

// replied notes what a client decided or answered.
func (t *turn) replied(e event.Event, data toolCall) {
	t.set(e, stateWorking, nil)
	t.user(e, []part{dataPart(data)})
}

// ended ends the task with its request, or with one that ended without it, as an interrupt does.
func (t *turn) ended(e event.Event, r *thread.Request) {
	isOwn := r == t.request
	if !isOwn && t.thread.Through < t.trigger {
		return
	}
	switch end := r.End.(type) {
	case event.LLMRequestCompleted:
		if !isOwn {
			t.end(e, stateCanceled, "interrupted before it was answered")
			return
		}
		if end.FinishReason == "length" || end.FinishReason == "content_filter" {
			t.Metadata = metadata{"finishReason": end.FinishReason}
		}
		t.end(e, stateCompleted, "")
	case event.LLMRequestInterrupted:
		switch end.Reason {
		case event.ReasonTimeout:
			t.end(e, stateFailed, "the answer timed out")
		case event.ReasonNewUserInput:
			t.end(e, stateCanceled, "interrupted by a newer message")
		default:
			t.end(e, stateCanceled, "interrupted")
		}
	case event.LLMRequestFailed:
		_, why := end.Words()
		t.end(e, stateFailed, why)
	}
}

// settle ends the task with its session, and asks for the input without which the request does not continue.
func (t *turn) settle(e event.Event) {
	switch e.Body.(type) {
	case event.SessionStarted, event.SessionEnded:
		if t.request == nil { // else its end follows
			t.end(e, stateCanceled, "the session ended")
			return
		}
	}
	text, data := "", []part{}
	for _, c := range t.waiting() {
		wants, how := wantsResult, "reply with it"
		if c.IsAsked() {
			wants, how = wantsDecision, "reply with approve or deny"
		}
		arguments := gateway.Arguments(c.ToolCall)
		text += fmt.Sprintf("%s %s waits for a %s (%s)\n", c.ToolName, arguments, wants, how)
		data = append(data, dataPart(toolCall{ToolCallID: c.ToolCallID, Name: c.ToolName, Arguments: json.RawMessage(arguments), Wants: wants}))
	}
	if isNew := text != t.asked; isNew && text != "" {
		t.set(e, stateInputRequired, t.agent(e.ID+"/ask", append([]part{textPart(text)}, data...)...))
	}
	t.asked = text
}

// waiting returns the calls that wait for clients, if only they continue the request.
func (t *turn) waiting() []*thread.Call {
	results, decisions := t.request.Waiting()
	return append(results, decisions...)
}

func (t *turn) end(e event.Event, to state, why string) {
	var m *message
	if why != "" {
		m = t.agent(e.ID, textPart(why))
	}
	t.set(e, to, m)
}

// set changes the status. The message of the one before becomes history.
func (t *turn) set(e event.Event, to state, m *message) {
	if before := t.Status.Message; before != nil {
		t.History = append(t.History, *before)
	}
	t.Status = status{to, m, timestamp(e.Timestamp)}
	t.updates = append(t.updates, streamResponse{StatusUpdate: &statusUpdate{t.ID, t.ContextID, t.Status, t.Metadata}})
}

func (t *turn) agent(id string, parts ...part) *message {
	return &message{MessageID: id, ContextID: t.ContextID, TaskID: t.ID, Role: roleAgent, Parts: parts}
}

func (t *turn) user(e event.Event, parts []part) {
	t.History = append(t.History, message{
		MessageID: cmp.Or(e.ClientEventID, e.ID), ContextID: t.ContextID, TaskID: t.ID, Role: roleUser, Parts: parts, Metadata: e.Extra[extraMetadata],
	})
}

// has reports whether the history has a message of a client.
func (t *turn) has(messageID string) bool {
	return slices.ContainsFunc(t.History, func(m message) bool { return m.Role == roleUser && m.MessageID == messageID })
}

// show returns the task with the newest messages of its history; nil: all.
func (t *turn) show(historyLength *int) *task {
	shown := t.task
	if historyLength != nil {
		shown.History = shown.History[max(0, len(shown.History)-*historyLength):]
	}
	return &shown
}
