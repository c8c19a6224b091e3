package reducer_test

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// calledTool generates calls, with ids that repeat, and arguments and names of any form.
func calledTool() *rapid.Generator[reducer.CalledTool] {
	return rapid.Custom(func(t *rapid.T) reducer.CalledTool {
		return reducer.CalledTool{
			ID:   rapid.SampledFrom([]string{"", "call_1", "call_2", "c1", "a b", "\u00e9"}).Draw(t, "id"),
			Name: rapid.SampledFrom([]string{"fetch", "write", "", "no such tool"}).Draw(t, "name"),
			Arguments: json.RawMessage(rapid.SampledFrom([]string{
				``, `{}`, `{"n":1}`, `{"b":2, "a":"<"}`, `{"apiKey":"abc"}`, `{"n":`, `null`, "\xff",
			}).Draw(t, "arguments")),
			Error:      rapid.SampledFrom([]string{"", "", "", "unknown tool"}).Draw(t, "error"),
			Client:     rapid.IntRange(0, 3).Draw(t, "client") == 0,
			Approve:    rapid.IntRange(0, 3).Draw(t, "approve") == 0,
			Idempotent: rapid.Bool().Draw(t, "idempotent"),
		}
	})
}

func (w *simulation) setTools() {
	body := eventtest.Of[event.SetTools]().Draw(w.T, "tools")
	body.MaxSteps = new(rapid.IntRange(1, 4).Draw(w.T, "max steps"))
	w.input(event.New(body))
}

// call sends the running attempt and answers it with tool calls, a combination that is rare otherwise.
func (w *simulation) call() {
	if w.running == nil {
		return
	}
	w.send()
	w.endBy("called")
}

func (w *simulation) steps() {
	w.call()
	for len(w.calling) > 0 {
		w.tool()
	}
}

// callTool executes a call. One that is not idempotent is executed at most once.
func (w *simulation) callTool(effect reducer.CallTool) {
	c := effect.Call
	require.Equal(w, w.session.Request.ID, effect.RequestID)
	require.Equal(w, reducer.CallRunning, c.State)
	require.Empty(w, c.Error)
	require.False(w, c.Client, "a worker executes the call of a client")
	isIdempotent, isKnown := w.started[c.ID]
	require.True(w, !isKnown || isIdempotent, "call %s is executed twice", c.ID)
	w.started[c.ID] = c.Idempotent
	w.calling = append(w.calling, effect)
}

// tool ends a running call.
func (w *simulation) tool() {
	if len(w.calling) == 0 {
		return
	}
	i := rapid.IntRange(0, len(w.calling)-1).Draw(w.T, "call")
	call := w.calling[i]
	w.calling = slices.Delete(slices.Clone(w.calling), i, i+1)
	w.step(w.toolEnded(call))
}

// lateTool reports the end of a call that was cancelled.
func (w *simulation) lateTool() {
	if len(w.cancelled) == 0 {
		return
	}
	i := rapid.IntRange(0, len(w.cancelled)-1).Draw(w.T, "call")
	call := w.cancelled[i]
	w.cancelled = slices.Delete(slices.Clone(w.cancelled), i, i+1)
	for _, e := range w.step(w.toolEnded(call)) {
		require.Equal(w, event.TagToolResult, e.Tag())
	}
}

func (w *simulation) toolEnded(call reducer.CallTool) reducer.ToolEnded {
	return reducer.ToolEnded{
		At: w.now, RequestID: call.RequestID, CallID: call.Call.ID,
		Outcome: rapid.SampledFrom([]reducer.CallOutcome{reducer.CallReturned, reducer.CallReturned, reducer.CallLost, reducer.CallCancelled}).Draw(w.T, "outcome"),
		Value:   json.RawMessage(rapid.SampledFrom([]string{``, `null`, `1`, longResult, longResult, `{"b":1,"a":"<"}`, `{"apiKey":"abc"}`, `{`, "\xff"}).Draw(w.T, "value")),
		Error:   json.RawMessage(rapid.SampledFrom([]string{``, ``, `null`, `"no"`, `{"secret_api_key":1}`}).Draw(w.T, "error")),
		IsError: rapid.Bool().Draw(w.T, "is error"), Duration: time.Duration(rapid.IntRange(-1, 1000).Draw(w.T, "duration")) * time.Millisecond,
	}
}

var longResult = `"` + strings.Repeat("long ", 200) + `"`

// openCall returns the id of an open call, or of none.
func (w *simulation) openCall() string {
	ids := []string{"", "call_1"}
	if r := w.session.Request; r != nil {
		ids = append(idsOf(r.Calls), ids...)
	}
	return rapid.SampledFrom(ids).Draw(w.T, "call")
}

func (w *simulation) decide() {
	body := eventtest.Of[event.ApprovalDecided]().Draw(w.T, "decision")
	if body.ToolCallID = w.openCall(); body.ToolCallID == "" {
		body.Parameters = nil
	}
	w.input(event.New(body))
}

func (w *simulation) answerAsClient() {
	if id := w.openCall(); id != "" {
		w.input(event.New(event.ToolResult{ToolCallID: id, Value: json.RawMessage(`"of a client"`)}))
	}
}

// wake lets time pass, and fires the timer if it is due.
func (w *simulation) wake() {
	w.now = w.now.Add(time.Duration(rapid.SampledFrom([]int{0, 1, 48}).Draw(w.T, "hours")) * time.Hour)
	if w.timer.IsZero() || w.now.Before(w.timer) {
		return
	}
	w.timer = time.Time{}
	w.step(reducer.Woken{At: w.now})
	require.True(w, w.timer.IsZero() || w.timer.After(w.now), "a call that has expired still waits")
}

// continueAsNew continues in another run. Its attempt, its calls and their workers are lost, except the calls
// that did not start.
func (w *simulation) continueAsNew() {
	in := reducer.Continued{At: w.now, Options: w.options}
	for _, c := range w.calling {
		if rapid.Bool().Draw(w.T, "not started") {
			in.NotStarted = append(in.NotStarted, c.Call.ID)
			delete(w.started, c.Call.ID)
		}
	}
	if a := w.running; a != nil {
		in.Scheduled = a.isSent || rapid.Bool().Draw(w.T, "scheduled")
		w.withdrawn[a.key()] = !in.Scheduled
	}
	w.running, w.calling, w.timer = nil, nil, time.Time{}
	w.step(in)
}

// checkCalls checks the calls of the running request after a step.
func (w *simulation) checkCalls() {
	var running []string
	if r := w.session.Request; r != nil {
		for _, c := range r.Calls {
			require.Empty(w, c.Error, "a call that is not executed has no result")
			require.Contains(w, w.session.OpenToolCalls, c.ID)
			switch c.State {
			case reducer.CallRunning:
				running = append(running, c.ID)
			case reducer.CallApproval, reducer.CallClient:
				require.False(w, c.Deadline.IsZero(), "call %s waits for ever", c.ID)
			}
		}
		limits := w.session.Reduced.Config.Tools.Limits()
		require.LessOrEqual(w, r.Steps, event.MaxMaxSteps)
		isQueued := slices.ContainsFunc(r.Calls, func(c reducer.Call) bool { return c.State == reducer.CallQueued })
		require.True(w, !isQueued || len(running) >= limits.Parallel, "a call waits although fewer than %d run", limits.Parallel)
	}
	var executed []string
	for _, c := range w.calling {
		executed = append(executed, c.Call.ID)
	}
	require.ElementsMatch(w, running, executed, "the session and the workers disagree which calls run")
}

// checkTimer requires that a timer fires when the session must act without input.
func (w *simulation) checkTimer() {
	var next time.Time
	switch r, s := w.session.Request, w.session; {
	case r == nil && !s.Ended && s.Options.IdleCloseMs > 0:
		next = s.LastEventAt.Add(time.Duration(s.Options.IdleCloseMs) * time.Millisecond)
	case r != nil && len(r.Calls) > 0:
		for _, c := range r.Calls {
			if !c.Deadline.IsZero() && (next.IsZero() || c.Deadline.Before(next)) {
				next = c.Deadline
			}
		}
	case r != nil && r.AttemptEnded:
		require.False(w, r.RetryAt.IsZero(), "no attempt runs, and no retry waits")
		next = r.RetryAt
	}
	require.True(w, next.IsZero() || !w.timer.IsZero() && !w.timer.After(next), "no timer fires at %v", next)
}

// checkConversation requires that ids of calls are unique, that every call of an answer has
// exactly one result right after it once the answer is not the newest, and that the messages of an
// attempt are complete.
func (w *simulation) checkConversation() {
	s := w.session
	count := map[string]int{}
	for _, m := range s.Reduced.Messages {
		for _, c := range m.ToolCalls {
			count[c.ID]++
		}
	}
	// A client can use the id of its own call again; then the result of one of them may be missing.
	isRepeated := func(id string) bool { return count[id] > 1 }
	isOpen := func(id string) bool { return slices.Contains(s.OpenToolCalls, id) }
	for _, messages := range [][]reducer.Message{s.Reduced.Messages, reducer.MessagesOf(s)} {
		for i, m := range messages {
			if m.RequestID == "" {
				continue
			}
			var results []string
			for _, result := range messages[i+1:] {
				if result.Role != reducer.RoleTool {
					break
				}
				if !isRepeated(result.ToolCallID) {
					results = append(results, result.ToolCallID)
				}
			}
			var want []string
			for _, c := range m.ToolCalls {
				if !isOpen(c.ID) && !isRepeated(c.ID) {
					want = append(want, c.ID)
				}
			}
			require.ElementsMatch(w, want, results, "the results of %s", m.EventID)
		}
	}
	calls := map[string]bool{}
	for _, e := range w.log {
		if body, ok := e.Body.(event.ToolCall); ok && body.RequestID != "" {
			require.False(w, calls[body.ToolCallID], "the id of %s is not unique", e.ID)
			calls[body.ToolCallID] = true
		}
	}
	for id := range calls {
		require.LessOrEqual(w, count[id], 1, "two messages have call %s of a request", id)
	}
}

func idsOf(calls []reducer.Call) (ids []string) {
	for _, c := range calls {
		ids = append(ids, c.ID)
	}
	return ids
}
