package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/starter/show"
)

// load returns the session of a context from its log. Unlike a query of the state, it needs no
// worker.
func load(ctx context.Context, of conversation) (reducer.Session, error) {
	log, err := readLog(ctx, of)
	if err != nil {
		return reducer.Session{}, err
	}
	return reducer.Load(of.Name(), reducer.Reduce, log...), nil
}

// openCalls returns the calls without a result. The log does not show whether a worker already
// executes a call, so every call that does not wait counts as running. Before its first session, the log
// of a fork can end in a request of its origin; calls of that request are not open in the fork.
func openCalls(s reducer.Session) []reducer.Call {
	if s.Request == nil || s.Request.ID != event.FormatRequestID(s.ContextName, event.RequestNumber(s.Request.ID)) {
		return nil
	}
	calls := slices.Clone(s.Request.Calls)
	for i := range calls {
		if calls[i].State != reducer.CallQueued {
			continue
		}
		calls[i].State = reducer.CallRunning
		if isClients(s.Reduced.Config.Tools, calls[i].Name) {
			calls[i].State = reducer.CallClient
		}
	}
	return calls
}

// isClients reports whether a client executes a tool; nil tools means none.
func isClients(tools *event.SetTools, name string) bool {
	return tools != nil && slices.ContainsFunc(tools.Tools, func(t event.Tool) bool { return t.IsClient() && t.Name == name })
}

// waitingCalls returns the calls in a state, or the one with the id. The error lists the calls in the
// state.
func waitingCalls(ctx context.Context, of conversation, state reducer.CallState, id string) ([]reducer.Call, error) {
	s, err := load(ctx, of)
	if err != nil {
		return nil, err
	}
	words := map[reducer.CallState]string{
		reducer.CallApproval: "an approval", reducer.CallClient: "a client's result",
	}
	var calls []reducer.Call
	for _, c := range openCalls(s) {
		if c.State == state {
			calls = append(calls, c)
		}
	}
	if len(calls) == 0 {
		return nil, fmt.Errorf("context %s: no call waits for %s", s.ContextName, words[state])
	}
	if id == "" {
		return calls, nil
	}
	if i := slices.IndexFunc(calls, func(c reducer.Call) bool { return c.ID == id }); i >= 0 {
		return calls[i : i+1], nil
	}
	return nil, fmt.Errorf("context %s: call %q does not wait for %s (waiting: %s)", s.ContextName, id, words[state], idsOf(calls))
}

func idsOf(calls []reducer.Call) string {
	var ids []string
	for _, c := range calls {
		ids = append(ids, c.ID)
	}
	return strings.Join(ids, ", ")
}

// record sends events that start no turn and returns them as recorded.
func (a *app) record(ctx context.Context, to conversation, events []event.Event) ([]event.Event, error) {
	var recorded []event.Event
	for e, err := range a.turn(ctx, to, events) {
		if err != nil {
			return nil, err
		}
		switch e.Tag() {
		case event.TagInputRejected:
			return nil, turnError(e.Body)
		case events[0].Tag():
			recorded = append(recorded, e)
		}
		if len(recorded) == len(events) {
			return recorded, nil
		}
	}
	return nil, turnError(nil)
}

// readValue returns the JSON of an argument: the text itself, the content of a file for @FILE, or
// standard input for -.
func (a *app) readValue(what, want, text string) (json.RawMessage, error) {
	data := []byte(text)
	var err error
	if path, isFile := strings.CutPrefix(text, "@"); isFile {
		var file *os.File
		if file, err = os.Open(path); err == nil {
			defer file.Close()
			data, err = readAtMost(file, wire.MaxStoredBytes)
		}
	} else if text == "-" {
		data, err = readAtMost(a.in, wire.MaxStoredBytes)
	}
	if err != nil {
		return nil, usagef("%s: %w", what, err)
	}
	if !json.Valid(data) {
		return nil, usagef("%s: not valid JSON (want %s, @FILE, or - for standard input)", what, want)
	}
	return data, nil
}

// toolNotes notes the tool calls of a turn, and what the turn waits for.
type toolNotes struct {
	*app
	in conversation
	// calls are those of the turn by id.
	calls map[string]event.ToolCall
	// answer is the newest answer with calls; open are the calls that the context had open after it.
	answer string
	open   []reducer.Call
	// advised contains the kinds of advice that were already given.
	advised map[string]bool
}

func (n *toolNotes) take(ctx context.Context, body event.Body) {
	switch body := body.(type) {
	case event.ToolCall:
		if body.RequestID == "" {
			return
		}
		if n.calls == nil {
			n.calls, n.advised = map[string]event.ToolCall{}, map[string]bool{}
		}
		if n.answer != body.MessageID {
			n.answer, n.open = body.MessageID, nil
			// Without a state, a call of a client's tool is noted like any other.
			if state, err := n.in.State(ctx); err == nil && state.Request != nil {
				n.open = state.Request.Calls
			}
		}
		n.calls[body.ToolCallID] = body
		isClients := func(c reducer.Call) bool {
			return c.ID == body.ToolCallID && c.Client && c.State != reducer.CallApproval
		}
		if slices.ContainsFunc(n.open, isClients) {
			n.awaitClient(body)
			return
		}
		n.note("tool call: %s", describeCall(body))
	case event.ToolResult:
		if call, ok := n.calls[body.ToolCallID]; ok && body.IsError {
			n.note("tool error: %s: %s", call.ToolName, show.Short(string(body.Error), maxNote))
		}
	case event.ApprovalRequested:
		n.note("waiting for approval until %s: %s", show.Until(body.ExpiresAt), describeCall(n.calls[body.ToolCallID]))
		n.advise("approval", "approve with \"%[1]s approve -n %[2]s\", deny with \"%[1]s deny -n %[2]s\"", "")
	case event.ApprovalDecided:
		n.note("%s", show.Note(body))
		for _, c := range n.open {
			call, ok := n.calls[c.ID]
			if !ok || !c.Client || c.State != reducer.CallApproval || body.Decision != event.Approve || body.ToolCallID != "" && body.ToolCallID != c.ID {
				continue
			}
			if len(body.Parameters) > 0 {
				call.Parameters = body.Parameters
			}
			n.awaitClient(call)
		}
	}
}

func (n *toolNotes) awaitClient(call event.ToolCall) {
	n.note("waiting for a client: %s", describeCall(call))
	n.advise("result", "send its result with \"%[1]s result -n %[2]s %[3]s JSON\"", call.ToolCallID)
}

// advise notes what to do, once per turn and kind of advice.
func (n *toolNotes) advise(about, format, call string) {
	if !n.advised[about] {
		n.advised[about] = true
		n.note(format, n.program(), n.in.Name(), call)
	}
}

// maxNote is the length of arguments and errors in notes, in characters.
const maxNote = 200

func describeCall(c event.ToolCall) string {
	return show.Short(fmt.Sprintf("%s %s", c.ToolName, c.Parameters), maxNote) + " (" + c.ToolCallID + ")"
}
