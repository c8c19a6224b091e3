package main

import (
	"encoding/json"
	"testing"

	"github.com/seed-9ed7edd4/chronicle/bench/rig"
	"github.com/seed-9ed7edd4/chronicle/bench/soak/agent"
	"github.com/seed-9ed7edd4/chronicle/event"
)

var key = agent.Arguments{Key: "k"}

func toCall(name string, a agent.Arguments) rig.Call {
	return rig.Call{ID: "c", Name: name, Arguments: a.String()}
}

func toExecute(name string, a agent.Arguments) agent.Execution {
	return agent.Execution{ContextName: "demo", CallID: "c", Tool: name, Arguments: json.RawMessage(a.String())}
}

func returns(text string) event.Body {
	value, _ := json.Marshal(text)
	return event.ToolResult{ToolCallID: "c", Value: value}
}

func fails(text string) event.Body {
	value, _ := json.Marshal(text)
	return event.ToolResult{ToolCallID: "c", Error: value, IsError: true}
}

// turnOf is a turn with one call. Between the call and the last answer are the given events.
func turnOf(c rig.Call, between ...event.Body) []event.Event {
	m := event.UserMessage{Content: rig.Message{Key: "m1", Tokens: 1, Script: rig.Script{Steps: [][]rig.Call{{c}}}}.String()}
	bodies := []event.Body{
		begin, m, started(1, 1, 2), says(1, 2, "re:m1 a "),
		event.ToolCall{ToolCallID: c.ID, MessageID: id(4), ToolName: c.Name, Parameters: json.RawMessage(c.Arguments), RequestID: request(1)},
		event.LLMAttemptEnded{RequestID: request(1), Attempt: 1, Outcome: event.AttemptToolCalls, Usage: event.Usage{InputTokens: rig.InputTokens, OutputTokens: 2}},
	}
	bodies = append(bodies, between...)
	return log(append(bodies, started(1, 2, 2), says(1, 2, "re:m1 a "), completed(1))...)
}

func TestCheckFindsViolationsOfCalls(t *testing.T) {
	result := returns(agent.Result(key))
	requested := event.ApprovalRequested{ToolCallID: "c", RequestID: request(1)}
	decided := func(d event.Decision) event.Body { return event.ApprovalDecided{ToolCallID: "c", Decision: d} }
	edited := agent.Arguments{Key: "edited"}
	edit := event.ApprovalDecided{ToolCallID: "c", Decision: event.Approve, Parameters: json.RawMessage(edited.String())}
	once, again, guarded, ask := toCall(agent.Once, key), toCall(agent.Again, key), toCall(agent.Guarded, key), toCall(agent.Ask, key)
	ran, ranAgain, ranGuarded := toExecute(agent.Once, key), toExecute(agent.Again, key), toExecute(agent.Guarded, key)
	placeholder := fails(event.OutcomeUnknown)
	for name, test := range map[string]struct {
		executions []agent.Execution
		log        []event.Event
		want       string // "": none
	}{
		"a call":                        {[]agent.Execution{ran}, turnOf(once, result), ""},
		"a repeated call":               {[]agent.Execution{ran, ran}, turnOf(once, result), "executed 2 times"},
		"a repeated idempotent call":    {[]agent.Execution{ranAgain, ranAgain}, turnOf(again, result), ""},
		"no execution":                  {nil, turnOf(once, result), "was not executed"},
		"an error without an execution": {nil, turnOf(once, fails("x")), ""},
		"no result":                     {[]agent.Execution{ran}, turnOf(once), "has no result before demo:0007"},
		"two results":                   {[]agent.Execution{ran}, turnOf(once, result, result), "another result"},
		"a late result":                 {[]agent.Execution{ran}, turnOf(once, placeholder, result), ""},
		"another value":                 {[]agent.Execution{ran}, turnOf(once, returns("x")), `has the value "x"`},
		"a result of no call":           {nil, turnOf(once, fails("x"), event.ToolResult{ToolCallID: "d"}), "unknown call d"},
		"other arguments":               {[]agent.Execution{toExecute(agent.Once, edited)}, turnOf(once, result), "want {"},
		"a call that is not in the log": {[]agent.Execution{{CallID: "d"}}, turnOf(once, fails("x")), "not in the log"},
		"not executed":                  {[]agent.Execution{ran}, turnOf(once, fails("not executed: x")), "but its result is"},
		"approved":                      {[]agent.Execution{ranGuarded}, turnOf(guarded, requested, decided(event.Approve), result), ""},
		"without a request":             {[]agent.Execution{ranGuarded}, turnOf(guarded, result), "without an approval"},
		"denied":                        {nil, turnOf(guarded, requested, decided(event.Deny), fails("denied")), ""},
		"executed though denied":        {[]agent.Execution{ranGuarded}, turnOf(guarded, requested, decided(event.Deny), fails("denied")), "executed without"},
		"a value though denied":         {nil, turnOf(guarded, requested, decided(event.Deny), result), "a value without an approval"},
		"decided twice":                 {nil, turnOf(guarded, requested, decided(event.Deny), decided(event.Deny), fails("denied")), "no such call waits"},
		"requested twice":               {nil, turnOf(guarded, requested, requested, decided(event.Deny), fails("denied")), "requests an approval of c"},
		"expired":                       {nil, turnOf(guarded, requested, fails("expired: no approval until x")), ""},
		"a result while it waits":       {nil, turnOf(guarded, requested, fails("x")), "which waits for an approval"},
		"edited":                        {[]agent.Execution{toExecute(agent.Guarded, edited)}, turnOf(guarded, requested, edit, returns(agent.Result(edited))), ""},
		"not as edited":                 {[]agent.Execution{ranGuarded}, turnOf(guarded, requested, edit, returns(agent.Result(edited))), "want {"},
		"a client's call":               {nil, turnOf(ask, result), ""},
		"a client's late result":        {nil, turnOf(ask, fails("expired: no result until x"), result), ""},
		"another call than scripted":    {nil, turnOf(rig.Call{ID: "c", Name: agent.Fails, Arguments: "{}"}, fails("x")), ""},
	} {
		t.Run(name, func(t *testing.T) {
			j := journal{sent: []message{sent(test.log[1].Body.(event.UserMessage), stored)}, executions: test.executions}
			j.policy = event.PolicyReject
			for i, e := range test.log {
				if body, ok := e.Body.(event.ApprovalDecided); ok {
					test.log[i].ClientEventID = e.ID
					j.sent = append(j.sent, answered(e.ID, body))
				}
			}
			requireProblem(t, test.want, checked(j, test.log))
		})
	}
}

func TestCheckComparesCallsWithTheScript(t *testing.T) {
	events := turnOf(toCall(agent.Once, key), fails("x"))
	j := journal{sent: []message{sent(events[1].Body.(event.UserMessage), stored)}}
	body := events[4].Body.(event.ToolCall)
	body.ToolName = agent.Fails
	events[4].Body = body
	requireProblem(t, "the calls of step 1 differ from its script", checked(j, events))
}

func TestCheckFindsViolationsOfHooks(t *testing.T) {
	turn := func(hook, answer string, more ...event.Body) []event.Event {
		script := rig.Script{Hook: hook, Withheld: hook == agent.Refuse}
		m := event.UserMessage{Content: rig.Message{Key: "m1", Tokens: 1, Script: script}.String()}
		bodies := append([]event.Body{begin, m, started(1, 1, 2)}, more...)
		return log(append(bodies, says(1, 2, answer), completed(1))...)
	}
	applied := func(hook string, stage event.HookStage, outcome event.HookOutcome) event.HookApplied {
		return event.HookApplied{RequestID: request(1), Attempt: 1, Hook: hook, Stage: stage, Outcome: outcome}
	}
	instructed := applied(agent.Instruct, event.HookBefore, event.HookChanged)
	instructed.Reason, instructed.Change = "m1", &event.HookChange{Instructions: "instructed:m1"}
	other := instructed
	other.Change = &event.HookChange{Instructions: "x"}
	changed := applied(agent.ChangesAnswer, event.HookAfter, event.HookChanged)
	for name, test := range map[string]struct {
		log  []event.Event
		want string // "": none
	}{
		"a changed request":    {turn(agent.Instruct, "re:m1 a ", instructed), ""},
		"no report":            {turn(agent.Instruct, "re:m1 a "), "without a report of the hook instruct"},
		"a repeated report":    {turn(agent.Instruct, "re:m1 a ", instructed, instructed), "repeats the report"},
		"another change":       {turn(agent.Instruct, "re:m1 a ", other), "does not contain the change"},
		"a changed answer":     {turn(agent.ChangesAnswer, agent.Checked+"re:m1 a ", changed), ""},
		"the original answer":  {turn(agent.ChangesAnswer, "re:m1 a ", changed), "checked by a hook: false"},
		"a refused request":    {turn(agent.Refuse, "re:m1 a "), "which a hook refuses"},
		"a refused answer":     {turn(agent.RefusesAnswer, "re:m1 a "), "a hook has refused all answers"},
		"a stopped answer":     {turn(agent.StopsAnswer, "re:m1 a "), "completes an attempt that the hook"},
		"an unreported change": {turn(agent.ChangesAnswer, agent.Checked+"re:m1 a "), "without a report"},
	} {
		t.Run(name, func(t *testing.T) {
			j := journal{sent: []message{sent(test.log[1].Body.(event.UserMessage), stored)}}
			requireProblem(t, test.want, checked(j, test.log))
		})
	}
}

func TestCheckFindsViolationsOfUsage(t *testing.T) {
	j := journal{sent: []message{sent(m1, stored)}}
	turn := func(set event.Body, middle ...event.Body) []event.Event {
		bodies := append([]event.Body{begin, m1, set, started(1, 1, 3)}, middle...)
		return log(append(bodies, says(1, 3, "re:m1 a "), completed(1))...)
	}
	enough, little := event.BudgetSet{Tokens: new(int64(8))}, event.BudgetSet{Tokens: new(int64(7))}
	requireProblem(t, "", checked(j, turn(enough)))
	requireProblem(t, "more than the budget of 7", checked(j, turn(little)))
	requireProblem(t, "before the end of attempt 1", checked(j, turn(enough, started(1, 2, 3))))
	requireProblem(t, "", checked(j, turn(enough, lostAttempt(1, 1), started(1, 2, 3))))

	l := turn(enough)
	l[5].Body = event.LLMRequestCompleted{RequestID: request(1), Usage: event.Usage{InputTokens: 7, OutputTokens: 2}}
	requireProblem(t, "with 7 and 2 tokens, want 7 and 1", checked(j, l))
	state := stateOf(turn(enough))
	state.Usage.OutputTokens++
	requireProblem(t, "the session has 1 attempts with 7 and 2 tokens", checkUsage(turn(enough), state).Error())
}

func answered(key string, body event.Body) message {
	m := sent(event.UserMessage{Content: "  "}, unknown)
	m.key, m.content, m.answers = key, contentHash(body), true
	return m
}

// A reset delivers an answer again, to a call that no longer waits.
func TestAResetMayRejectAnAnswer(t *testing.T) {
	decision := answered("d", event.ApprovalDecided{ToolCallID: "c", Decision: event.Deny})
	decision.outcome, decision.eventID = recorded, id(6)
	events := log(begin, m1, event.InputRejected{Input: "d"}, started(1, 1, 2), says(1, 2, "re:m1 a "), completed(1))
	j := journal{sent: []message{sent(m1, stored), decision}}
	requireProblem(t, "message d is rejected, but it was reported as demo:0006", checked(j, events))
	j.faults = []fault{{isReset: true, sent: 2, lastRemaining: 2}}
	requireProblem(t, "", checked(j, events))

	rejection := answered("d", event.ApprovalDecided{})
	rejection.outcome = rejected
	accepted := turnOf(toCall(agent.Guarded, key), event.ApprovalRequested{ToolCallID: "c", RequestID: request(1)},
		event.ApprovalDecided{ToolCallID: "c", Decision: event.Deny}, fails("denied"))
	for i, e := range accepted {
		if body, ok := e.Body.(event.ApprovalDecided); ok {
			accepted[i].ClientEventID, rejection.content = "d", contentHash(body)
		}
	}
	j = journal{sent: []message{sent(accepted[1].Body.(event.UserMessage), stored), rejection}}
	requireProblem(t, "message d is demo:0008, but it was reported as rejected", checked(j, accepted))
	j.faults = []fault{{isReset: true, sent: 2, lastRemaining: 2}}
	requireProblem(t, "", checked(j, accepted))
}
