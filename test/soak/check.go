package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/reducer/transcript"
	"github.com/seed-9ed7edd4/chronicle/test/rig"
)

// problems are the violations of laws in a log.
type problems []error

func (p *problems) add(format string, args ...any) { *p = append(*p, fmt.Errorf(format, args...)) }

// check returns the violations of a log.
func (j *journal) check(log, followed []event.Event, executions []execution) error {
	var p problems
	checkChain(&p, j.name, log)
	checkFollowed(&p, log, followed)
	j.checkInputs(&p, log)
	j.checkSessions(&p, log)
	checkRequests(&p, log)
	checkAnswers(&p, log)
	checkCalls(&p, log, executions)
	return errors.Join(p...)
}

func checkChain(p *problems, name string, log []event.Event) {
	parent := event.Event{}
	for i, e := range log {
		if want := event.FormatID(name, i+1); e.ID != want || e.ParentID != parent.ID || e.Timestamp.Before(parent.Timestamp) {
			p.add("event %d is %s after %s, want %s, and it is not older", i+1, e.ID, e.ParentID, want)
		}
		if data, err := e.MarshalJSON(); err != nil || bytes.Contains(data, []byte(rig.APIKey)) {
			p.add("%s contains the key of the model, or is invalid: %v", e.ID, err)
		}
		parent = e
	}
}

// checkFollowed compares the log with what a follower received.
func checkFollowed(p *problems, log, followed []event.Event) {
	for i, e := range followed {
		received, _ := e.MarshalJSON() // it was decoded from JSON
		if i >= len(log) {
			p.add("the follower received %s %s, which is not in the log", e.Tag(), e.ID)
			return
		}
		if recorded, err := log[i].MarshalJSON(); err != nil || !bytes.Equal(received, recorded) {
			p.add("the follower received another event than the log has:\n  received %s\n  the log  %s", received, recorded)
			return
		}
	}
}

// checkTranscript compares a transcript with the one that is rendered from the log.
func checkTranscript(p *problems, patched transcript.Document, log []event.Event) {
	rendered := transcript.NewPatcher()
	for _, e := range log {
		rendered.Apply(e)
	}
	want, got := rendered.Document(), patched
	for _, d := range []transcript.Document{want, got} {
		for i := range d.Entries {
			d.Entries[i].Content.Progress = "" // not in the log
		}
	}
	if x, y := encode(want), encode(got); !bytes.Equal(x, y) {
		p.add("the patched transcript differs from the one of the log:\n  patched  %s\n  rendered %s", event.Redact(string(y), 2000), event.Redact(string(x), 2000))
	}
}

func encode(value any) []byte {
	data, _ := json.Marshal(value) // documents and states always encode
	return data
}

// checkState compares the state of the session with the fold of the log, which may have grown since, and folds a
// part of the log in another process, as it were.
func checkState(p *problems, name string, log []event.Event, state wire.State, cut int) {
	if state.EventCount > len(log) {
		p.add("the session has %d events, but the log has %d", state.EventCount, len(log))
		return
	}
	log = log[:state.EventCount]
	folded := reducer.Load(name, reducer.Reduce, log...)
	if want, got := encode(wire.StateOf(folded, state.UpdatedAt)), encode(state); !bytes.Equal(want, got) {
		p.add("the session state is not the fold of the log:\n  session %s\n  log     %s", event.Redact(string(got), 2000), event.Redact(string(want), 2000))
	}
	whole, split := reducer.Initial(), reducer.Initial()
	for i, e := range log {
		if i == cut {
			var decoded reducer.ReducedContext
			if err := json.Unmarshal(encode(split), &decoded); err != nil {
				p.add("decode the state at event %d: %w", i, err)
				return
			}
			split = decoded
		}
		whole, split = reducer.Reduce(whole, e), reducer.Reduce(split, e)
	}
	if want, got := encode(whole), encode(split); !bytes.Equal(want, got) {
		p.add("the state that was decoded at event %d folds to another one:\n  want %s\n  got  %s", cut, event.Redact(string(want), 2000), event.Redact(string(got), 2000))
	}
}

// checkInputs checks that each input is in the log once, under its id, in the order sent.
func (j *journal) checkInputs(p *problems, log []event.Event) {
	sent := map[string]int{}
	for n, m := range j.sent {
		sent[m.key] = n
	}
	at := progress{}
	newest := -1
	for _, e := range log {
		again := at.found[e.ClientEventID]
		at.add(e)
		switch e.Body.(type) {
		case event.UserMessage, event.ApprovalDecided, event.ToolResult:
		case event.InputRejected:
			if n, ok := sent[e.ClientEventID]; !ok || !j.mayReject(j.sent[n]) {
				p.add("%s rejects input %s", e.ID, e.ClientEventID)
			}
			continue
		default:
			continue
		}
		if e.ClientEventID == "" {
			continue // the result of a worker
		}
		n, ok := sent[e.ClientEventID]
		if !ok || j.sent[n].content != contentOf(e.Body) {
			p.add("%s is input %s, which was not sent", e.ID, e.ClientEventID)
			continue
		}
		m := j.sent[n]
		switch {
		case again:
			p.add("input %s is duplicated as %s", m.key, e.ID)
		case m.outcome == rejected:
			p.add("input %s is %s, but it was reported as rejected", m.key, e.ID)
		case m.outcome == recorded && m.eventID != e.ID:
			p.add("input %s is %s, but it was reported as %s", m.key, e.ID, m.eventID)
		}
		if !m.isAnswer && m.outcome != unknown {
			if n < newest {
				p.add("message %s is after one that was sent later", m.key)
			}
			newest = n
		}
	}
	if key := j.missing(at); key != "" {
		p.add("input %s is lost", key)
	}
	for _, m := range j.sent {
		if m.outcome == rejected && !at.rejected[m.key] {
			p.add("input %s was rejected, but the log has no rejection", m.key)
		}
	}
	if !at.isIdle() {
		p.add("a message has neither an answer nor a reason for having none")
	}
}

// checkSessions checks that sessions end only if their user closed or terminated them.
func (j *journal) checkSessions(p *problems, log []event.Event) {
	ended, broken, isEnded := 0, 0, true
	for _, e := range log {
		switch e.Body.(type) {
		case event.SessionStarted:
			if !isEnded {
				broken++
			}
			isEnded = false
		case event.SessionEnded:
			ended++
			isEnded = true
		}
	}
	if ended > j.closes || broken > j.terminations {
		p.add("%d sessions ended and %d were cut off, but the user closed %d and terminated %d", ended, broken, j.closes, j.terminations)
	}
}

// checkRequests checks that each request ends once, that none overlap, and that attempts are in order.
func checkRequests(p *problems, log []event.Event) {
	running, attempt, ended := "", 0, map[string]bool{}
	belongs := func(e event.Event, id string) {
		if ended[id] || running != "" && running != id {
			p.add("%s belongs to request %s, which has ended or not begun; %q is running", e.ID, id, running)
		}
		if running == "" {
			running, attempt = id, 0
		}
	}
	for _, e := range log {
		switch body := e.Body.(type) {
		case event.LLMRequestStarted:
			belongs(e, body.RequestID)
			if body.Attempt <= attempt {
				p.add("%s is attempt %d, after attempt %d", e.ID, body.Attempt, attempt)
			}
			attempt = body.Attempt
		case event.AssistantMessage:
			belongs(e, body.RequestID)
		case event.RequestEnd:
			belongs(e, body.Request())
			running, ended[body.Request()] = "", true
		}
	}
	if running != "" {
		p.add("request %s has no end", running)
	}
}

// checkAnswers compares each answer with the newest message that its request included.
func checkAnswers(p *problems, log []event.Event) {
	steps := map[string]int{} // answers with calls, by message
	for i, e := range log {
		body, ok := e.Body.(event.AssistantMessage)
		if !ok {
			continue
		}
		var m rig.Message
		for _, seen := range slices.Backward(log[:event.Counter(body.ThroughEventID)]) {
			if message, ok := seen.Body.(event.UserMessage); ok {
				m, _ = rig.ParseMessage(message.Content) // valid, sent by the user
				break
			}
		}
		text, isChanged := strings.CutPrefix(body.Content, checked)
		key, tokens := rig.Answered(text)
		want := m.Tokens
		if calls := callsAfter(log, i); len(calls) > 0 {
			want = 1
			if n := steps[key]; n >= len(m.Script.Steps) || !slices.EqualFunc(calls, m.Script.Steps[n], func(c event.ToolCall, scripted rig.Call) bool {
				return c.ToolName == scripted.Name && sameJSON(c.Parameters, []byte(scripted.Arguments))
			}) {
				p.add("%s to %s: the calls of step %d differ from its script", e.ID, key, n+1)
			}
			steps[key]++
		}
		if isChanged != (m.Script.Hook == hookChange) || m.Script.Hook == hookRefuse {
			p.add("%s to %s: changed by a hook: %v; its hook is %q", e.ID, key, isChanged, m.Script.Hook)
		}
		if key != m.Key || !body.Partial && tokens != want || tokens > want {
			p.add("%s answers %q with %d tokens (partial: %v), want %q with %d", e.ID, key, tokens, body.Partial, m.Key, want)
		}
	}
}

func callsAfter(log []event.Event, answer int) (calls []event.ToolCall) {
	for _, e := range log[answer+1:] {
		body, ok := e.Body.(event.ToolCall)
		if !ok || body.MessageID != log[answer].ID {
			break
		}
		calls = append(calls, body)
	}
	return calls
}

func sameJSON(a, b []byte) bool {
	var x, y arguments
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && x == y
}

// call is a tool call as the log shows it.
type call struct {
	event.ToolCall
	arguments             json.RawMessage // as decided
	isWaiting, isApproved bool
	result                string // "": none; errors begin with errorMark
}

const errorMark = "error: "

// checkCalls checks that each call has one result before the next request, that approvals are decided once, and that
// the executions are those that the log permits.
func checkCalls(p *problems, log []event.Event, executions []execution) {
	calls, order := map[string]*call{}, []*call(nil)
	require := func(at string) {
		for _, c := range order {
			if c.result == "" {
				p.add("call %s has no result before %s", c.ToolCallID, at)
				c.result = errorMark + event.OutcomeUnknown // report it once
			}
		}
	}
	for _, e := range log {
		switch body := e.Body.(type) {
		case event.ToolCall:
			if calls[body.ToolCallID] != nil {
				p.add("%s repeats the id %s of a call", e.ID, body.ToolCallID)
			}
			calls[body.ToolCallID] = &call{ToolCall: body, arguments: body.Parameters}
			order = append(order, calls[body.ToolCallID])
		case event.ApprovalRequested:
			c := calls[body.ToolCallID]
			if c == nil || c.ToolName != toolGuarded || c.isWaiting || c.result != "" {
				p.add("%s requests an approval of %s, which needs none", e.ID, body.ToolCallID)
				continue
			}
			c.isWaiting = true
		case event.ApprovalDecided:
			c := calls[body.ToolCallID]
			if c == nil || !c.isWaiting {
				p.add("%s decides about %s, which does not wait", e.ID, body.ToolCallID)
				continue
			}
			c.isWaiting, c.isApproved = false, body.Decision == event.Approve
			if len(body.Parameters) > 0 {
				c.arguments = body.Parameters
			}
		case event.ToolResult:
			addResult(p, calls[body.ToolCallID], e, body)
		case event.LLMRequestStarted, event.SessionEnded, event.RequestEnd:
			require(e.ID)
		}
	}
	require("the end of the log")
	count := map[string]int{}
	for _, x := range executions {
		count[x.CallID]++
		c := calls[x.CallID]
		switch {
		case c == nil:
			p.add("call %s of %s was executed, but is not in the log", x.CallID, x.Tool)
		case c.ToolName != x.Tool || !sameJSON(c.arguments, x.Arguments):
			p.add("call %s of %s was executed as %s with %s, want %s", x.CallID, c.ToolName, x.Tool, x.Arguments, c.arguments)
		case c.ToolName == toolGuarded && !c.isApproved:
			p.add("call %s of %s was executed without an approval", x.CallID, x.Tool)
		case c.ToolName != toolAgain && count[x.CallID] > 1:
			p.add("call %s of %s was executed again", x.CallID, c.ToolName)
		}
	}
	for _, c := range order {
		var a arguments
		_ = json.Unmarshal(c.arguments, &a)
		want := a.result()
		if isError := strings.HasPrefix(c.result, errorMark); isError || c.ToolName == toolAsk {
			continue
		}
		// A large result has lost its middle.
		if count[c.ToolCallID] == 0 || c.result != want && !(len(want) > 32<<10 && strings.HasPrefix(c.result, want[:200])) {
			p.add("call %s of %s has the value %q, after %d executions", c.ToolCallID, c.ToolName, event.Redact(c.result, 100), count[c.ToolCallID])
		}
	}
}

// addResult adds a result to a call. Only a placeholder is replaced by another result.
func addResult(p *problems, c *call, e event.Event, body event.ToolResult) {
	if c == nil {
		p.add("%s is the result of the unknown call %s", e.ID, body.ToolCallID)
		return
	}
	text := func(raw json.RawMessage) string {
		var s string
		if json.Unmarshal(raw, &s) == nil {
			return s
		}
		return string(raw)
	}
	result := text(body.Value)
	if body.IsError || len(body.Error) > 0 {
		result = errorMark + text(body.Error)
	}
	isPlaceholder := c.result == errorMark+event.OutcomeUnknown || c.ToolName == toolAsk && strings.HasPrefix(c.result, errorMark+"expired: no result")
	if c.result != "" && !isPlaceholder && result != errorMark+event.OutcomeUnknown {
		p.add("%s is another result of %s, which had %q", e.ID, body.ToolCallID, event.Redact(c.result, 60))
	}
	if c.isWaiting && !strings.HasPrefix(result, errorMark) {
		p.add("%s is the result of %s, which waits for an approval", e.ID, body.ToolCallID)
	}
	if e.ClientEventID != "" && c.ToolName != toolAsk {
		p.add("%s is the result of a client for the worker's call %s", e.ID, body.ToolCallID)
	}
	c.isWaiting, c.result = false, cmp.Or(result, " ")
}
