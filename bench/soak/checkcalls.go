package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/bench/rig"
	"github.com/seed-9ed7edd4/chronicle/bench/soak/agent"
	"github.com/seed-9ed7edd4/chronicle/event"
)

// call is a tool call as the log shows it.
type call struct {
	event.ToolCall
	eventID   string
	arguments json.RawMessage // as decided
	// isRequested: an approval was requested. isWaiting: it is not decided yet.
	isRequested, isWaiting, isApproved bool
	results                            []string // errors begin with errorMark
}

const errorMark = "error: "

func (c *call) result() string {
	if len(c.results) == 0 {
		return ""
	}
	return c.results[len(c.results)-1]
}

func (c *call) needsApproval() bool {
	var a agent.Arguments
	return json.Unmarshal(c.Parameters, &a) == nil && agent.NeedsApproval(c.ToolName, a)
}

// callChecker checks the calls of requests.
type callChecker struct {
	calls    map[string]*call
	order    []*call
	problems []error
}

func (c *callChecker) wrong(format string, args ...any) {
	c.problems = append(c.problems, fmt.Errorf(format, args...))
}

// checkCalls checks that each call has one result before the next request, that approvals are decided
// or expire once, and that the executions are those that the log permits.
func (j *journal) checkCalls(log []event.Event) error {
	c := &callChecker{calls: map[string]*call{}}
	for _, e := range log {
		c.add(e)
	}
	c.requireResults("the log ends")
	c.checkExecutions(j.executions, j.count(true))
	return errors.Join(c.problems...)
}

func (c *callChecker) add(e event.Event) {
	switch body := e.Body.(type) {
	case event.ToolCall:
		if c.calls[body.ToolCallID] != nil {
			c.wrong("%s repeats the id %s of a call", e.ID, body.ToolCallID)
		}
		made := &call{ToolCall: body, eventID: e.ID, arguments: body.Parameters}
		c.calls[body.ToolCallID] = made
		c.order = append(c.order, made)
	case event.ApprovalRequested:
		made := c.calls[body.ToolCallID]
		if made == nil || made.isRequested || len(made.results) > 0 {
			c.wrong("%s requests an approval of %s, which is unknown, has a request or a result", e.ID, body.ToolCallID)
			return
		}
		made.isRequested, made.isWaiting = true, true
	case event.ApprovalDecided:
		c.decide(e.ID, body)
	case event.ToolResult:
		c.addResult(e, body)
	case event.LLMRequestStarted, event.SessionEnded, event.RequestEnd:
		c.requireResults(e.ID)
	}
}

func (c *callChecker) decide(id string, body event.ApprovalDecided) {
	found := false
	for _, made := range c.order {
		if !made.isWaiting || body.ToolCallID != "" && body.ToolCallID != made.ToolCallID {
			continue
		}
		found = true
		made.isWaiting, made.isApproved = false, body.Decision == event.Approve
		if len(body.Parameters) > 0 {
			made.arguments = body.Parameters
		}
	}
	if !found {
		c.wrong("%s decides about %q, but no such call waits", id, body.ToolCallID)
	}
}

func (c *callChecker) addResult(e event.Event, body event.ToolResult) {
	made := c.calls[body.ToolCallID]
	if made == nil {
		c.wrong("%s is the result of the unknown call %s", e.ID, body.ToolCallID)
		return
	}
	text := textOf(body.Value)
	if body.IsError || len(body.Error) > 0 {
		text = errorMark + textOf(body.Error)
	}
	isPlaceholder := text == unknownOutcome || agent.IsClients(made.ToolName) && strings.HasPrefix(made.result(), errorMark+"expired: no result")
	if last := made.result(); last != "" && last != unknownOutcome && !isPlaceholder {
		c.wrong("%s is another result of %s, which had %q", e.ID, body.ToolCallID, event.Redact(last, 60))
	}
	isEnded := strings.HasPrefix(text, errorMark+"expired: no approval") || strings.HasPrefix(text, errorMark+"not executed: interrupted before")
	if made.isWaiting && !isEnded {
		c.wrong("%s is the result of %s, which waits for an approval: %q", e.ID, body.ToolCallID, event.Redact(text, 60))
	}
	if isClients := agent.IsClients(made.ToolName); e.ClientEventID != "" && !isClients {
		c.wrong("%s is the result of a client for the worker's call %s", e.ID, body.ToolCallID)
	}
	made.isWaiting = false
	made.results = append(made.results, text)
}

const unknownOutcome = errorMark + event.OutcomeUnknown

func textOf(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

func (c *callChecker) requireResults(at string) {
	for _, made := range c.order {
		if len(made.results) == 0 {
			c.wrong("call %s has no result before %s", made.ToolCallID, at)
			made.results = append(made.results, unknownOutcome) // report it once
		}
	}
}

// checkExecutions compares the calls with what the tools did. After a reset, calls are made again,
// and may be decided differently.
func (c *callChecker) checkExecutions(executions []agent.Execution, resets int) {
	count := map[string]int{}
	for _, x := range executions {
		count[x.CallID]++
		made := c.calls[x.CallID]
		switch {
		case resets > 0:
		case made == nil:
			c.wrong("call %s of %s was executed, but is not in the log", x.CallID, x.Tool)
		case made.ToolName != x.Tool || !sameJSON(made.arguments, x.Arguments):
			c.wrong("call %s of %s was executed as %s with %s, want %s", x.CallID, made.ToolName, x.Tool, x.Arguments, made.arguments)
		case made.needsApproval() && !made.isApproved:
			c.wrong("call %s of %s was executed without an approval", x.CallID, x.Tool)
		}
	}
	for _, made := range c.order {
		n, result := count[made.ToolCallID], made.result()
		isError := strings.HasPrefix(result, errorMark)
		isIdempotent := made.ToolName == agent.Again || made.ToolName == agent.Large
		notExecuted := []string{"not executed", "denied", "expired", "invalid arguments"}
		isNot := func(start string) bool { return strings.HasPrefix(result, errorMark+start) }
		switch {
		case !isIdempotent && n > 1+resets:
			c.wrong("call %s of %s was executed %d times", made.ToolCallID, made.ToolName, n)
		case resets == 0 && n > 0 && slices.ContainsFunc(notExecuted, isNot):
			c.wrong("call %s of %s was executed, but its result is %q", made.ToolCallID, made.ToolName, event.Redact(result, 60))
		case made.needsApproval() && !made.isApproved && !isError:
			c.wrong("call %s of %s has a value without an approval", made.ToolCallID, made.ToolName)
		case isError || agent.IsClients(made.ToolName):
		case n == 0:
			c.wrong("call %s of %s has a value, but was not executed", made.ToolCallID, made.ToolName)
		case !isResult(made.arguments, result):
			c.wrong("call %s of %s has the value %q", made.ToolCallID, made.ToolName, event.Redact(result, 100))
		}
	}
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y agent.Arguments
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// isResult reports whether a text is the result of a call. A large result has lost its middle.
func isResult(arguments json.RawMessage, text string) bool {
	var a agent.Arguments
	if json.Unmarshal(arguments, &a) != nil {
		return false
	}
	want := agent.Result(a)
	return text == want || len(want) > 32<<10 && strings.HasPrefix(text, want[:200])
}

// callsOf returns the calls after an answer in the log.
func callsOf(log []event.Event, answerID string) (calls []event.ToolCall) {
	for _, e := range log {
		body, ok := e.Body.(event.ToolCall)
		if !ok || body.MessageID != answerID {
			break
		}
		calls = append(calls, body)
	}
	return calls
}

func isScripted(made event.ToolCall, scripted rig.Call) bool {
	var x, y any
	return made.ToolName == scripted.Name && json.Unmarshal(made.Parameters, &x) == nil &&
		json.Unmarshal([]byte(scripted.Arguments), &y) == nil && reflect.DeepEqual(x, y)
}
