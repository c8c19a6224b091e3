package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/pause"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/test/laws"
	"github.com/seed-9ed7edd4/chronicle/test/rig"
)

const checkTimeout = 2 * time.Minute

// check checks the laws. What happens in the background must have happened before checkTimeout.
func (u *user) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	for {
		log, runs, err := u.checkOnce(ctx)
		if err == nil {
			u.count(log, runs)
			return nil
		}
		if !pause.For(ctx, 2*time.Second) {
			return fmt.Errorf("%s: %w\n%s", u.context.Name(), err, tail(log))
		}
	}
}

func (u *user) checkOnce(ctx context.Context) (log []event.Event, continued int, err error) {
	state, err := u.context.State(ctx)
	if err != nil {
		return nil, 0, err
	}
	if log, err = laws.Read(ctx, u.context); err != nil {
		return log, 0, err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	var p problems
	u.journal.check(&p, log)
	checkAnswers(&p, log)
	checkCalls(&p, log, u.tools.executedIn(u.context.Name()))
	checkState(&p, u.context.Name(), log, state)
	p = append(p, laws.Requests(log), laws.Secret(log, rig.APIKey), laws.Fold(log, len(log)/2))
	if n := len(u.followed); n > len(log) || !bytes.Equal(encode(u.followed), encode(log[:n])) {
		p.add("the follower received other events than the log has:\n%s", tail(u.followed))
	} else {
		p = append(p, laws.Transcript(log[:n], u.transcript.Document()))
	}
	verified, err := u.context.Verify(ctx)
	p = append(p, err)
	for _, found := range verified.Problems {
		p.add("verify: %s %s", found.Place, found.Text)
	}
	continued, err = u.checkRuns(ctx)
	return log, continued, errors.Join(append(p, err)...)
}

func (u *user) count(log []event.Event, continued int) {
	u.counts.add("continued as new", continued)
	for _, e := range log {
		u.counts.add(string(e.Tag()), 1)
		if decided, ok := e.Body.(event.ApprovalDecided); ok && len(decided.Parameters) > 0 {
			u.counts.add("edited", 1)
		}
		if result, ok := e.Body.(event.ToolResult); ok && bytes.HasPrefix(result.Error, []byte(`"expired`)) {
			u.counts.add("expired", 1)
		}
	}
	u.counts.add("executed", len(u.tools.executedIn(u.context.Name())))
}

// checkRuns checks that the server ended no run, and counts those that continued as new.
func (u *user) checkRuns(ctx context.Context) (continued int, err error) {
	request := &workflowservice.ListWorkflowExecutionsRequest{Query: fmt.Sprintf("WorkflowId = '%s'", wire.WorkflowID(u.context.Name()))}
	terminated := 0
	for {
		page, err := u.Temporal.ListWorkflow(ctx, request)
		if err != nil {
			return 0, fmt.Errorf("list the runs: %w", err)
		}
		for _, run := range page.GetExecutions() {
			switch status := run.GetStatus(); status {
			case enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:
			case enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW:
				continued++
			case enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED:
				terminated++
			default:
				return 0, fmt.Errorf("run %s is %s", run.GetExecution().GetRunId(), status)
			}
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			break
		}
	}
	if terminated > u.journal.terminations {
		return 0, fmt.Errorf("%d runs were terminated, %d of them by the user", terminated, u.journal.terminations)
	}
	return continued, nil
}

// checkState compares the state of the session with the fold of the log, which may have grown since.
func checkState(p *problems, name string, log []event.Event, state wire.State) {
	if state.EventCount > len(log) {
		p.add("the session has %d events, but the log has %d", state.EventCount, len(log))
		return
	}
	folded := reducer.Load(name, reducer.Reduce, log[:state.EventCount]...)
	if want, got := encode(wire.StateOf(folded, state.UpdatedAt)), encode(state); !bytes.Equal(want, got) {
		p.add("the session state is not the fold of the log:\n  session %.2000s\n  log     %.2000s", got, want)
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
		key, tokens := rig.Answered(body.Content)
		want := m.Tokens
		if calls := callsAfter(log, i); len(calls) > 0 {
			want = 1
			if n := steps[key]; n >= len(m.Script.Steps) || !slices.EqualFunc(calls, m.Script.Steps[n], func(c event.ToolCall, scripted rig.Call) bool {
				return c.ToolName == scripted.Name && argumentsOf(c.Parameters) == argumentsOf([]byte(scripted.Arguments))
			}) {
				p.add("%s to %s: the calls of step %d differ from its script", e.ID, key, n+1)
			}
			steps[key]++
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

func argumentsOf(data []byte) (a arguments) {
	_ = json.Unmarshal(data, &a) // it was encoded by this program
	return a
}

// call is a tool call as the log shows it.
type call struct {
	event.ToolCall
	key                   string // as decided
	isWaiting, isApproved bool
	isEnded, isUnknown    bool // it has a result; and that is a placeholder, which another may replace
	value                 string
}

// checkCalls checks that each call has one result before the next request, that approvals are decided once, and that
// the executions are those that the log permits.
func checkCalls(p *problems, log []event.Event, executed map[string]int) {
	calls := map[string]*call{}
	find := func(id string) *call { return cmp.Or(calls[id], &call{}) } // any event about an unknown id is a problem
	for _, e := range log {
		switch body := e.Body.(type) {
		case event.ToolCall:
			if calls[body.ToolCallID] != nil {
				p.add("%s repeats the id %s of a call", e.ID, body.ToolCallID)
			}
			calls[body.ToolCallID] = &call{ToolCall: body, key: argumentsOf(body.Parameters).Key}
		case event.ApprovalRequested:
			c := find(body.ToolCallID)
			if c.ToolName != toolGuarded || c.isWaiting || c.isEnded {
				p.add("%s requests an approval of %s, which needs none", e.ID, body.ToolCallID)
			}
			c.isWaiting = true
		case event.ApprovalDecided:
			c := find(body.ToolCallID)
			if !c.isWaiting {
				p.add("%s decides about %s, which does not wait", e.ID, body.ToolCallID)
			}
			c.isWaiting, c.isApproved = false, body.Decision == event.Approve
			if len(body.Parameters) > 0 {
				c.key = argumentsOf(body.Parameters).Key
			}
		case event.ToolResult:
			find(body.ToolCallID).end(p, e, body)
		case event.LLMRequestStarted, event.SessionEnded, event.RequestEnd:
			requireResults(p, calls, e.ID)
		}
	}
	requireResults(p, calls, "the end of the log")
	byKey := map[string]*call{}
	for _, c := range calls {
		byKey[c.key] = c
		if c.value != "" && c.ToolName != toolAsk && (executed[c.key] == 0 || c.value != (arguments{Key: c.key}).result()) {
			p.add("call %s of %s has the value %q, after %d executions", c.ToolCallID, c.ToolName, c.value, executed[c.key])
		}
	}
	for key, n := range executed {
		switch c := byKey[key]; {
		case c == nil || c.ToolName == toolAsk:
			p.add("call %s was executed, but is not in the log", key)
		case c.ToolName == toolGuarded && !c.isApproved:
			p.add("call %s was executed without an approval", key)
		case n > 1:
			p.add("call %s was executed %d times", key, n)
		}
	}
}

func requireResults(p *problems, calls map[string]*call, before string) {
	for _, c := range calls {
		if !c.isEnded {
			p.add("call %s has no result before %s", c.ToolCallID, before)
			c.isEnded = true // report it once
		}
	}
}

// end adds a result to a call.
func (c *call) end(p *problems, e event.Event, body event.ToolResult) {
	var failure string
	_ = json.Unmarshal(body.Error, &failure) // ours is a string
	isError := body.IsError || len(body.Error) > 0
	isUnknown := failure == event.OutcomeUnknown
	switch {
	case c.ToolCallID == "":
		p.add("%s is the result of the unknown call %s", e.ID, body.ToolCallID)
	case c.isEnded && !c.isUnknown && !isUnknown:
		p.add("%s is another result of %s", e.ID, body.ToolCallID)
	case c.isWaiting && !isError:
		p.add("%s is the result of %s, which waits for an approval", e.ID, body.ToolCallID)
	case e.ClientEventID != "" && c.ToolName != toolAsk:
		p.add("%s is the result of a client for the worker's call %s", e.ID, body.ToolCallID)
	}
	c.isWaiting, c.isEnded, c.value = false, true, ""
	c.isUnknown = isUnknown || c.ToolName == toolAsk && strings.HasPrefix(failure, "expired: no result")
	if !isError {
		_ = json.Unmarshal(body.Value, &c.value) // ours is a string
	}
}
