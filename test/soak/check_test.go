package main

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/hook"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/reducer/transcript"
	"github.com/seed-9ed7edd4/chronicle/test/rig"
)

// logOf numbers and chains bodies as a session does. The key of a message is its first two letters.
func logOf(bodies ...event.Body) []event.Event {
	var log []event.Event
	for i, body := range bodies {
		e := event.New(body)
		e.ID, e.ContextName = id(i+1), "demo"
		if i > 0 {
			e.ParentID = id(i)
		}
		switch body := body.(type) {
		case event.UserMessage:
			e.ClientEventID = body.Content[:2]
		case event.InputRejected:
			e.ClientEventID = body.Input
		case event.ApprovalDecided:
			e.ClientEventID = "decision"
		}
		log = append(log, e)
	}
	return log
}

func id(n int) string      { return event.FormatID("demo", n) }
func request(n int) string { return event.FormatRequestID("demo", n) }

func started(n, attempt, seen int) event.Body {
	return event.LLMRequestStarted{RequestID: request(n), Attempt: attempt, ThroughEventID: id(seen)}
}

func says(n, seen int, text string) event.Body {
	return event.AssistantMessage{RequestID: request(n), ThroughEventID: id(seen), Content: text}
}

func completed(n int) event.Body { return event.LLMRequestCompleted{RequestID: request(n)} }

func interrupted(n, through int) event.Body {
	return event.LLMRequestInterrupted{RequestID: request(n), Reason: event.ReasonCancelled, ThroughEventID: id(through)}
}

var (
	m1, m2, m3 = event.UserMessage{Content: "m1 1 0s"}, event.UserMessage{Content: "m2 2 0s"}, event.UserMessage{Content: "m3 1 0s"}
	begin      = event.SessionStarted{}
	turn       = []event.Body{begin, m1, started(1, 1, 2), says(1, 2, "re:m1 a "), completed(1)}
)

func sent(m event.UserMessage, o outcome, eventID ...string) message {
	return message{key: m.Content[:2], content: contentOf(m), outcome: o, eventID: append(eventID, "")[0]}
}

func requireProblem(t *testing.T, want string, err error) {
	t.Helper()
	if want == "" {
		require.NoError(t, err)
		return
	}
	require.ErrorContains(t, err, want)
}

func TestCheckFindsViolations(t *testing.T) {
	all := []message{sent(m1, stored), sent(m2, stored), sent(m3, unknown)}
	answered := []event.Body{started(1, 1, 3), says(1, 3, "re:m2 a b "), completed(1)}
	after := func(before []event.Body, more ...event.Body) []event.Event {
		return logOf(slices.Concat([]event.Body{begin}, before, more)...)
	}
	both := []event.Body{m1, m2}
	leak := event.AssistantMessage{RequestID: request(1), ThroughEventID: id(3), Content: rig.APIKey}
	for name, test := range map[string]struct {
		log  []event.Event
		want string // "": none
	}{
		"a turn":                    {after(both, answered...), ""},
		"an unknown outcome":        {after(both, m3, started(1, 1, 4), says(1, 4, "re:m3 a "), completed(1)), ""},
		"a lost message":            {logOf(turn...), "input m2 is lost"},
		"a duplicate":               {after(both, m2, started(1, 1, 4), says(1, 4, "re:m2 a b "), completed(1)), "duplicated"},
		"an unknown message":        {after(both, event.UserMessage{Content: "m4 1 0s"}, started(1, 1, 4), says(1, 4, "re:m4 a "), completed(1)), "which was not sent"},
		"a modified message":        {after([]event.Body{m1, event.UserMessage{Content: "m2 2 1s"}}, answered...), "which was not sent"},
		"another order":             {after([]event.Body{m2, m1}, started(1, 1, 3), says(1, 3, "re:m1 a "), completed(1)), "after one that was sent later"},
		"a rejection":               {after(both, slices.Concat(answered, []event.Body{event.InputRejected{Input: "m3"}})...), "rejects input m3"},
		"no answer":                 {logOf(append(slices.Clone(turn), m2)...), "neither an answer nor a reason"},
		"no end":                    {after(both, started(1, 1, 3)), "has no end"},
		"two ends":                  {after(both, append(slices.Clone(answered), completed(1))...), "has ended"},
		"overlapping requests":      {after(both, started(1, 1, 3), started(2, 1, 3), completed(2), completed(1)), `"demo:r0001" is running`},
		"a repeated attempt":        {after(both, append([]event.Body{started(1, 1, 2)}, answered...)...), "attempt 1, after attempt 1"},
		"a wrong answer":            {after(both, started(1, 1, 3), says(1, 3, "re:m1 a "), completed(1)), `want "m2"`},
		"concatenated answers":      {after(both, started(1, 1, 3), says(1, 3, "re:m2 a re:m2 a b "), completed(1)), "with 4 tokens"},
		"a gap":                     {slices.Concat(after(both)[:2], after(both, answered...)[3:]), "want demo:0003"},
		"a key":                     {after(both, started(1, 1, 3), leak, completed(1)), "contains the key"},
		"a session that ends":       {after(both, append(slices.Clone(answered), event.SessionEnded{})...), "1 sessions ended"},
		"a session that is cut off": {after(both, append(slices.Clone(answered), begin)...), "1 were cut off"},
	} {
		t.Run(name, func(t *testing.T) {
			j := &journal{name: "demo", sent: all}
			requireProblem(t, test.want, j.check(test.log, test.log, nil))
		})
	}
}

func TestCheckComparesOutcomesWithTheLog(t *testing.T) {
	rejection := event.InputRejected{Input: "m2"}
	next := event.SessionStarted{PreviousRunID: "run"}
	for name, test := range map[string]struct {
		journal journal
		more    []event.Body
		want    string
	}{
		"recorded":                     {journal{sent: []message{sent(m1, recorded, id(2))}}, nil, ""},
		"recorded elsewhere":           {journal{sent: []message{sent(m1, recorded, id(3))}}, nil, "reported as demo:0003"},
		"rejected but recorded":        {journal{sent: []message{sent(m1, rejected)}}, nil, "reported as rejected"},
		"rejected":                     {journal{policy: event.PolicyReject, sent: []message{sent(m1, stored), sent(m2, rejected)}}, []event.Body{rejection}, ""},
		"rejected without a rejection": {journal{policy: event.PolicyReject, sent: []message{sent(m1, stored), sent(m2, rejected)}}, nil, "no rejection"},
		"a rejected signal":            {journal{policy: event.PolicyReject, sent: []message{sent(m1, stored), sent(m2, stored)}}, []event.Body{rejection}, ""},
		"rejected after all":           {journal{policy: event.PolicyReject, sent: []message{sent(m1, stored), sent(m2, recorded, id(6))}}, []event.Body{rejection}, "m2 is lost"},
		"a termination loses none":     {journal{terminations: 1, sent: []message{sent(m1, stored), sent(m2, stored)}}, []event.Body{next}, "m2 is lost"},
		"no answer after it":           {journal{terminations: 1, sent: []message{sent(m1, stored), sent(m2, stored)}}, []event.Body{m2, next}, ""},
		"no answer after a close":      {journal{closes: 1, sent: []message{sent(m1, stored), sent(m2, stored)}}, []event.Body{m2, event.SessionEnded{}, next}, "neither an answer"},
	} {
		t.Run(name, func(t *testing.T) {
			test.journal.name = "demo"
			log := logOf(slices.Concat(turn, test.more)...)
			requireProblem(t, test.want, test.journal.check(log, log, nil))
		})
	}
}

// callTurn is a turn with one call. Between the call and the last answer are the given events.
func callTurn(tool string, between ...event.Body) []event.Event {
	scripted := rig.Call{ID: "c", Name: tool, Arguments: arguments{Key: "k"}.String()}
	m := event.UserMessage{Content: rig.Message{Key: "m1", Tokens: 1, Script: rig.Script{Steps: [][]rig.Call{{scripted}}}}.String()}
	call := event.ToolCall{ToolCallID: "c", MessageID: id(4), ToolName: tool, Parameters: json.RawMessage(scripted.Arguments), RequestID: request(1)}
	return logOf(slices.Concat(
		[]event.Body{begin, m, started(1, 1, 2), says(1, 2, "re:m1 a "), call}, between,
		[]event.Body{started(1, 2, 2), says(1, 2, "re:m1 a "), completed(1)})...)
}

func TestCheckFindsViolationsOfCalls(t *testing.T) {
	returns := func(text string) event.Body { return event.ToolResult{ToolCallID: "c", Value: encode(text)} }
	fails := func(text string) event.Body {
		return event.ToolResult{ToolCallID: "c", Error: encode(text), IsError: true}
	}
	ran := func(tool, key string) execution {
		return execution{"demo", "c", tool, json.RawMessage(arguments{Key: key}.String())}
	}
	result, edited := returns(arguments{Key: "k"}.result()), arguments{Key: "edited"}
	requested := event.ApprovalRequested{ToolCallID: "c", RequestID: request(1)}
	approved := event.ApprovalDecided{ToolCallID: "c", Decision: event.Approve}
	denied := event.ApprovalDecided{ToolCallID: "c", Decision: event.Deny}
	edit := event.ApprovalDecided{ToolCallID: "c", Decision: event.Approve, Parameters: json.RawMessage(edited.String())}
	once, again, guarded := ran(toolOnce, "k"), ran(toolAgain, "k"), ran(toolGuarded, "k")
	for name, test := range map[string]struct {
		executions []execution
		log        []event.Event
		want       string // "": none
	}{
		"a call":                     {[]execution{once}, callTurn(toolOnce, result), ""},
		"a repeated call":            {[]execution{once, once}, callTurn(toolOnce, result), "executed again"},
		"a repeated idempotent call": {[]execution{again, again}, callTurn(toolAgain, result), ""},
		"no execution":               {nil, callTurn(toolOnce, result), "after 0 executions"},
		"a failed call":              {nil, callTurn(toolOnce, fails("x")), ""},
		"no result":                  {[]execution{once}, callTurn(toolOnce), "has no result before demo:0006"},
		"two results":                {[]execution{once}, callTurn(toolOnce, result, result), "another result"},
		"a late result":              {[]execution{once}, callTurn(toolOnce, fails(event.OutcomeUnknown), result), ""},
		"another value":              {[]execution{once}, callTurn(toolOnce, returns("x")), `has the value "x"`},
		"a result of no call":        {nil, callTurn(toolOnce, fails("x"), event.ToolResult{ToolCallID: "d"}), "unknown call d"},
		"other arguments":            {[]execution{ran(toolOnce, "x")}, callTurn(toolOnce, result), "want {"},
		"an unknown call":            {[]execution{{CallID: "d"}}, callTurn(toolOnce, fails("x")), "not in the log"},
		"approved":                   {[]execution{guarded}, callTurn(toolGuarded, requested, approved, result), ""},
		"without a decision":         {[]execution{guarded}, callTurn(toolGuarded, requested, result), "which waits for an approval"},
		"executed though denied":     {[]execution{guarded}, callTurn(toolGuarded, requested, denied, fails("denied")), "without an approval"},
		"denied":                     {nil, callTurn(toolGuarded, requested, denied, fails("denied")), ""},
		"decided twice":              {nil, callTurn(toolGuarded, requested, denied, denied, fails("denied")), "which does not wait"},
		"expired":                    {nil, callTurn(toolGuarded, requested, fails("expired: no approval until x")), ""},
		"an approval of another":     {nil, callTurn(toolOnce, requested, denied, fails("denied")), "needs none"},
		"edited":                     {[]execution{ran(toolGuarded, "edited")}, callTurn(toolGuarded, requested, edit, returns(edited.result())), ""},
		"not as edited":              {[]execution{guarded}, callTurn(toolGuarded, requested, edit, returns(edited.result())), "want {"},
		"a client's call":            {nil, callTurn(toolAsk, result), ""},
	} {
		t.Run(name, func(t *testing.T) {
			var p problems
			checkAnswers(&p, test.log)
			require.Empty(t, p)
			checkCalls(&p, test.log, test.executions)
			if test.want == "" {
				require.Empty(t, p)
				return
			}
			require.NotEmpty(t, p)
			requireProblem(t, test.want, p[0])
		})
	}
}

func TestCheckComparesAnswersWithTheScript(t *testing.T) {
	other := callTurn(toolOnce)
	call := other[4].Body.(event.ToolCall)
	call.ToolName = toolAgain
	other[4].Body = call
	hooked := func(hook, answer string) []event.Event {
		m := event.UserMessage{Content: rig.Message{Key: "m1", Tokens: 1, Script: rig.Script{Hook: hook}}.String()}
		return logOf(begin, m, started(1, 1, 2), says(1, 2, answer), completed(1))
	}
	for name, test := range map[string]struct {
		log  []event.Event
		want string
	}{
		"another call":       {other, "the calls of step 1 differ"},
		"a changed answer":   {hooked(hookChange, checked+"re:m1 a "), ""},
		"an original answer": {hooked(hookChange, "re:m1 a "), "changed by a hook: false"},
		"an unasked change":  {hooked("", checked+"re:m1 a "), "changed by a hook: true"},
		"a refused request":  {hooked(hookRefuse, "re:m1 a "), `its hook is "refuse"`},
	} {
		t.Run(name, func(t *testing.T) {
			var p problems
			checkAnswers(&p, test.log)
			if test.want == "" {
				require.Empty(t, p)
				return
			}
			require.Len(t, p, 1)
			requireProblem(t, test.want, p[0])
		})
	}
}

func TestReadersHaveTheLog(t *testing.T) {
	log, other := logOf(turn...), logOf(begin, m2, started(1, 1, 2), says(1, 2, "re:m2 a b "), completed(1))
	received := func(events []event.Event) (p problems) {
		checkFollowed(&p, log, events)
		return p
	}
	require.Empty(t, received(log))
	require.Empty(t, received(log[:3]), "the log may have grown")
	require.Len(t, received(other), 1)
	require.Len(t, received(append(slices.Clone(log), log[0])), 1)

	patched := transcript.NewPatcher()
	for _, e := range log {
		patched.Apply(e)
	}
	var p problems
	checkTranscript(&p, patched.Document(), log)
	require.Empty(t, p)
	checkTranscript(&p, patched.Document(), other)
	require.Len(t, p, 1)

	d := &delivered{}
	d.add(hook.Events{Events: log[:3], Epoch: 1})
	d.add(hook.Events{Events: log[1:], Epoch: 1})
	d.add(hook.Events{Events: other, Epoch: 0}) // of a branch that was replaced
	require.Equal(t, 2, d.repeated)
	r := &recorder{delivered: map[string]*delivered{"demo": d}}
	_, _, problems := r.check("demo", log)
	require.Empty(t, problems)
	_, _, problems = r.check("demo", other)
	require.NotEmpty(t, problems)
	_, _, problems = r.check("none", log)
	require.NotEmpty(t, problems)
	d.add(hook.Events{Events: other[1:2], Epoch: 1})
	require.ErrorContains(t, d.problems[0], "again with another content")
}

func TestTheSessionStateIsTheFoldOfTheLog(t *testing.T) {
	log := logOf(turn...)
	state := wire.StateOf(reducer.Load("demo", reducer.Reduce, log...), log[len(log)-1].Timestamp)
	var p problems
	checkState(&p, "demo", log, state, 2)
	checkState(&p, "demo", append(slices.Clone(log), event.New(m2)), state, 3)
	require.Empty(t, p, "the log may have grown")
	checkState(&p, "demo", log[:4], state, 2)
	requireProblem(t, "the session has 5 events, but the log has 4", p[0])
	p = nil
	checkState(&p, "demo", logOf(begin, m2, started(1, 1, 2), says(1, 2, "re:m2 a b "), interrupted(1, 4)), state, 2)
	requireProblem(t, "not the fold of the log", p[0])
}

func TestFlags(t *testing.T) {
	for args, want := range map[string]string{
		"-faults=1.5": "-faults 1.5: out of range (0 to 1)",
		"-faults=NaN": "-faults NaN: out of range (0 to 1)",
		"-contexts=0": "-contexts 0: out of range (1 to 10000)",
		"-workers=1":  "-workers 1: out of range (2 to 100)",
		"-for=-1s":    "-for -1s: out of range (more than 0)",
		"-kinds=odd":  "-kinds odd: unknown kind of context",
		"soak":        `unexpected argument "soak"`,
	} {
		_, err := parse([]string{args})
		require.ErrorContains(t, err, want)
	}
	o, err := parse([]string{"-seed", "7", "-stock", "-kinds", "calls,hooks"})
	require.NoError(t, err)
	require.EqualValues(t, 7, o.seed)
	require.True(t, o.stock)
	require.Len(t, o.kinds, 2)
}
