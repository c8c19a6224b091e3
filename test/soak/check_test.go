package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/reducer/transcript"
	"github.com/seed-9ed7edd4/chronicle/test/rig"
	"github.com/seed-9ed7edd4/chronicle/tool"
	"github.com/seed-9ed7edd4/chronicle/tool/mcp"
)

// logOf numbers bodies as a session does. The key of a message is its first two letters.
func logOf(bodies ...event.Body) []event.Event {
	var log []event.Event
	for i, body := range bodies {
		e := event.New(body)
		e.ID, e.ContextName = id(i+1), "demo"
		switch body := body.(type) {
		case event.UserMessage:
			e.ClientEventID = body.Content[:2]
		case event.InputRejected:
			e.ClientEventID = body.Input
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

var (
	m1, m2, m3 = event.UserMessage{Content: "m1 1 0s"}, event.UserMessage{Content: "m2 2 0s"}, event.UserMessage{Content: "m3 1 0s"}
	begin      = event.SessionStarted{}
	turn       = []event.Body{begin, m1, started(1, 1, 2), says(1, 2, "re:m1 a "), completed(1)}
)

func sent(m event.UserMessage, o outcome, eventID ...string) input {
	return input{key: m.Content[:2], first: m.Content[:2], content: contentOf(m), outcome: o, eventID: append(eventID, "")[0]}
}

func requireProblem(t *testing.T, want string, p problems) {
	t.Helper()
	if want == "" {
		require.Empty(t, p)
		return
	}
	require.NotEmpty(t, p)
	require.ErrorContains(t, p[0], want)
}

func TestCheckComparesTheJournalWithTheLog(t *testing.T) {
	answered := []event.Body{started(1, 1, 3), says(1, 3, "re:m2 a b "), completed(1)}
	both := func(more ...event.Body) []event.Body { return slices.Concat([]event.Body{begin, m1, m2}, more) }
	after := func(more ...event.Body) []event.Body { return slices.Concat(turn, more) }
	rejection, next := event.InputRejected{Input: "m2"}, event.SessionStarted{PreviousRunID: "run"}
	two := []input{sent(m1, stored), sent(m2, stored)}
	for name, test := range map[string]struct {
		journal journal
		log     []event.Body
		want    string // "": none
	}{
		"a turn":                       {journal{sent: two}, both(answered...), ""},
		"an unknown outcome":           {journal{sent: append(two, sent(m3, unknown))}, both(answered...), ""},
		"a lost message":               {journal{sent: two}, turn, "input m2 is lost"},
		"a duplicate":                  {journal{sent: two}, both(append([]event.Body{m2}, answered...)...), "duplicated"},
		"an unknown message":           {journal{sent: two}, both(append([]event.Body{m3}, answered...)...), "which was not sent"},
		"a modified message":           {journal{sent: two}, slices.Concat([]event.Body{begin, m1, event.UserMessage{Content: "m2 2 1s"}}, answered), "which was not sent"},
		"another order":                {journal{sent: two}, slices.Concat([]event.Body{begin, m2, m1}, answered), "after one that was sent later"},
		"a rejection":                  {journal{sent: two}, append(both(answered...), event.InputRejected{Input: "m3"}), "rejects input m3"},
		"no answer":                    {journal{sent: two}, after(m2), "neither an answer nor a reason"},
		"no end":                       {journal{sent: two}, both(started(1, 1, 3)), "neither an answer nor a reason"},
		"a session that ends":          {journal{sent: two}, append(both(answered...), event.SessionEnded{}), "1 sessions ended"},
		"a session that is cut off":    {journal{sent: two}, append(both(answered...), begin), "1 were cut off"},
		"recorded":                     {journal{sent: []input{sent(m1, recorded, id(2))}}, turn, ""},
		"recorded elsewhere":           {journal{sent: []input{sent(m1, recorded, id(3))}}, turn, "reported as demo:0003"},
		"rejected but recorded":        {journal{sent: []input{sent(m1, rejected)}}, turn, "reported as rejected"},
		"rejected":                     {journal{policy: event.PolicyReject, sent: []input{sent(m1, stored), sent(m2, rejected)}}, after(rejection), ""},
		"rejected without a rejection": {journal{policy: event.PolicyReject, sent: []input{sent(m1, stored), sent(m2, rejected)}}, turn, "no rejection"},
		"a rejected signal":            {journal{policy: event.PolicyReject, sent: two}, after(rejection), ""},
		"rejected after all":           {journal{policy: event.PolicyReject, sent: []input{sent(m1, stored), sent(m2, recorded, id(6))}}, after(rejection), "m2 is lost"},
		"a termination loses none":     {journal{terminations: 1, sent: two}, after(next), "m2 is lost"},
		"no answer after it":           {journal{terminations: 1, sent: two}, after(m2, next), ""},
		"no answer after a close":      {journal{closes: 1, sent: two}, after(m2, event.SessionEnded{}, next), "neither an answer"},
	} {
		t.Run(name, func(t *testing.T) {
			var p problems
			test.journal.check(&p, logOf(test.log...))
			test.journal.checkConversation(&p, logOf(test.log...))
			requireProblem(t, test.want, p)
		})
	}
}

// callTurn is a turn with one call. Between the call and the last answer are the given events.
func callTurn(tool string, between ...event.Body) []event.Event {
	scripted := rig.Call{ID: "c", Name: tool, Arguments: string(encode(arguments{Key: "k"}))}
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
	edited := arguments{Key: "edited"}
	result, other := returns(arguments{Key: "k"}.result()), returns(edited.result())
	requested := event.ApprovalRequested{ToolCallID: "c", RequestID: request(1)}
	approved := event.ApprovalDecided{ToolCallID: "c", Decision: event.Approve}
	denied := event.ApprovalDecided{ToolCallID: "c", Decision: event.Deny}
	edit := event.ApprovalDecided{ToolCallID: "c", Decision: event.Approve, Parameters: encode(edited)}
	once := map[string]int{"k": 1}
	for name, test := range map[string]struct {
		executed map[string]int
		log      []event.Event
		want     string // "": none
	}{
		"a call":                 {once, callTurn(toolOnce, result), ""},
		"a repeated call":        {map[string]int{"k": 2}, callTurn(toolOnce, result), "executed 2 times"},
		"no execution":           {nil, callTurn(toolOnce, result), "after 0 executions"},
		"a failed call":          {nil, callTurn(toolOnce, fails("x")), ""},
		"no result":              {once, callTurn(toolOnce), "has no result before demo:0006"},
		"two results":            {once, callTurn(toolOnce, result, result), "another result"},
		"a late result":          {once, callTurn(toolOnce, fails(event.OutcomeUnknown), result), ""},
		"another value":          {once, callTurn(toolOnce, other), `has the value "result of edited"`},
		"a result of no call":    {nil, callTurn(toolOnce, fails("x"), event.ToolResult{ToolCallID: "d"}), "unknown call d"},
		"an unknown call":        {map[string]int{"d": 1}, callTurn(toolOnce, fails("x")), "not in the log"},
		"approved":               {once, callTurn(toolGuarded, requested, approved, result), ""},
		"without a decision":     {once, callTurn(toolGuarded, requested, result), "which waits for an approval"},
		"executed though denied": {once, callTurn(toolGuarded, requested, denied, fails("denied")), "without an approval"},
		"denied":                 {nil, callTurn(toolGuarded, requested, denied, fails("denied")), ""},
		"decided twice":          {nil, callTurn(toolGuarded, requested, denied, denied, fails("denied")), "which does not wait"},
		"expired":                {nil, callTurn(toolGuarded, requested, fails("expired: no approval until x")), ""},
		"an approval of another": {nil, callTurn(toolOnce, requested, denied, fails("denied")), "needs none"},
		"edited":                 {map[string]int{"edited": 1}, callTurn(toolGuarded, requested, edit, other), ""},
		"not as edited":          {once, callTurn(toolGuarded, requested, edit, fails("x")), "not in the log"},
		"a client's call":        {nil, callTurn(toolAsk, result), ""},
	} {
		t.Run(name, func(t *testing.T) {
			var p problems
			checkAnswers(&p, test.log)
			require.Empty(t, p)
			checkCalls(&p, test.log, test.executed)
			requireProblem(t, test.want, p)
		})
	}
}

func TestCheckComparesAnswersWithTheScript(t *testing.T) {
	other := callTurn(toolOnce)
	call := other[4].Body.(event.ToolCall)
	call.ToolName = toolAsk
	other[4].Body = call
	answered := func(text string) []event.Event {
		return logOf(begin, m1, m2, started(1, 1, 3), says(1, 3, text), completed(1))
	}
	for name, test := range map[string]struct {
		log  []event.Event
		want string
	}{
		"an answer":            {answered("re:m2 a b "), ""},
		"a wrong answer":       {answered("re:m1 a "), `want "m2"`},
		"concatenated answers": {answered("re:m2 a re:m2 a b "), "with 4 tokens"},
		"another call":         {other, "the calls of step 1 differ"},
	} {
		t.Run(name, func(t *testing.T) {
			var p problems
			checkAnswers(&p, test.log)
			requireProblem(t, test.want, p)
		})
	}
}

func TestTheSessionStateIsTheFoldOfTheLog(t *testing.T) {
	log := logOf(turn...)
	state := wire.StateOf(reducer.Load("demo", reducer.Reduce, log...), log[len(log)-1].Timestamp)
	var p problems
	checkState(&p, "demo", log, state)
	checkState(&p, "demo", append(slices.Clone(log), event.New(m2)), state)
	require.Empty(t, p, "the log may have grown")
	checkState(&p, "demo", log[:4], state)
	requireProblem(t, "the session has 5 events, but the log has 4", p)
	p = nil
	checkState(&p, "demo", logOf(begin, m2, started(1, 1, 2), says(1, 2, "re:m2 a b "), completed(1)), state)
	requireProblem(t, "not the fold of the log", p)
}

func TestFlags(t *testing.T) {
	for args, want := range map[string]string{
		"-faults=1.5": "-faults 1.5: out of range (0 to 1)",
		"-faults=NaN": "-faults NaN: out of range (0 to 1)",
		"-contexts=0": "-contexts 0: out of range (1 to 10000)",
		"-workers=0":  "-workers 0: out of range (1 to 100)",
		"-for=-1s":    "-for -1s: out of range (more than 0)",
		"soak":        `unexpected argument "soak"`,
	} {
		_, err := parse([]string{args})
		require.ErrorContains(t, err, want)
	}
	o, err := parse([]string{"-seed", "7", "-stock"})
	require.NoError(t, err)
	require.EqualValues(t, 7, o.seed)
	require.True(t, o.stock)
}

func TestHostileInputIsInTheLogOnce(t *testing.T) {
	message := event.UserMessage{Content: "k1"}
	log := logOf(message, event.InputRejected{Input: "k2"}, event.UserMessage{Content: "k3"})
	twice := append(slices.Clone(log), log[2])
	var others []event.Body
	for i := range reducer.MaxRecent + 1 {
		others = append(others, event.UserMessage{Content: string(rune('A'+i/50)) + string(rune('a'+i%50))})
	}
	forgotten := append(append(slices.Clone(log[:1]), logOf(others...)...), log[0])
	for name, test := range map[string]struct {
		log    []event.Event
		input  input
		resets int
		want   string
	}{
		"recorded":                     {log, input{key: "k1", outcome: recorded, eventID: id(1)}, 0, ""},
		"recorded later":               {log, input{key: "k1", outcome: stored}, 0, ""},
		"rejected":                     {log, input{key: "k2", outcome: stored}, 0, ""},
		"rejected with its array":      {log, input{key: "second", first: "k2", outcome: stored}, 0, ""},
		"lost by a termination":        {log, input{key: "gone", outcome: unknown}, 0, ""},
		"lost":                         {log, input{key: "gone", outcome: stored}, 0, "is lost"},
		"twice":                        {twice, input{key: "k3", outcome: recorded, eventID: id(3)}, 0, "2 times"},
		"twice, and unsure":            {twice, input{key: "k3", outcome: unknown}, 0, "2 times"},
		"twice, after 1,000 others":    {forgotten, input{key: "k1", outcome: recorded, eventID: id(1)}, 0, ""},
		"elsewhere":                    {log, input{key: "k1", outcome: recorded, eventID: id(9)}, 0, "reported as demo:0009"},
		"elsewhere, because of resets": {log, input{key: "k1", outcome: recorded, eventID: id(9)}, 1, ""},
		"another note":                 {log, input{key: "k1", outcome: recorded, eventID: id(1), content: contentOf(event.Note{})}, 0, "another event"},
		"another, because of resets":   {log, input{key: "k1", outcome: recorded, eventID: id(1), content: contentOf(event.Note{})}, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			test.input.first = cmp.Or(test.input.first, test.input.key)
			var p problems
			(&journal{sent: []input{test.input}, resets: test.resets}).check(&p, test.log)
			requireProblem(t, test.want, p)
		})
	}
}

func TestASecretInALogOfAProcessIsFound(t *testing.T) {
	dir := t.TempDir()
	require.ErrorContains(t, checkLogs(dir), "no process has a log")
	file := filepath.Join(dir, "worker-001.log")
	require.NoError(t, os.WriteFile(file, []byte("fine"), 0o600))
	require.NoError(t, checkLogs(dir))
	require.NoError(t, os.WriteFile(file, []byte("the key is "+secrets[1]), 0o600))
	require.ErrorContains(t, checkLogs(dir), "contains the secret")
}

// The steps of a seed must stay the same, however they are timed.
func TestASeedDeterminesTheSteps(t *testing.T) {
	names := func(seed uint64) (names []string) {
		o := options{seed: seed}
		for i := range 25 {
			names = append(names, chooseStep(o.stepRandom(3, i)).name)
		}
		return names
	}
	require.Equal(t, names(1), names(1))
	require.NotEqual(t, names(1), names(2))
}

func TestTheHostileServerOffersItsTool(t *testing.T) {
	server := startEvil()
	defer server.Close()
	servers, err := mcp.New(mcp.Options{Servers: []mcp.Server{{
		Name: "evil", URL: server.URL, Headers: map[string]string{"Authorization": "Bearer env:TOKEN"},
	}}, Getenv: func(string) string { return secrets[1] }, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	servers.Start()
	defer servers.Close()
	status := servers.Status(t.Context(), "evil")
	require.NoError(t, status.Error)
	require.NotZero(t, status.Tools)
	set, err := tool.NewSet(tool.Options{Sources: map[string]tool.Source{mcp.Prefix: servers}})
	require.NoError(t, err)
	for _, hostile := range results {
		arguments := json.RawMessage(fmt.Sprintf(`{"how":%q}`, hostile.name))
		timeout := 200 * time.Millisecond
		if hostile.name == "fine" {
			timeout = time.Minute
		}
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		got := set.Call(ctx, activities.ToolCallRequest{Name: "mcp__evil__act", Arguments: arguments})
		cancel()
		require.Equal(t, hostile.name == "fine", string(got.Value) == `"fine"`, "%s: %.100s %.100s", hostile.name, got.Value, got.Error)
		require.NotContains(t, string(got.Value)+string(got.Error), secrets[1], hostile.name)
	}
}

func TestRequestsEndOnceAndDoNotOverlap(t *testing.T) {
	begins := func(id string, attempt int) event.Body {
		return event.LLMRequestStarted{RequestID: id, Attempt: attempt}
	}
	ends := func(id string) event.Body { return event.LLMRequestCompleted{RequestID: id} }
	for name, test := range map[string]struct {
		log  []event.Event
		want string
	}{
		"two":                {logOf(begins("r1", 1), begins("r1", 2), ends("r1"), begins("r2", 1), event.LLMRequestFailed{RequestID: "r2"}), ""},
		"never sent":         {logOf(event.LLMRequestFailed{RequestID: "r1"}), ""},
		"overlap":            {logOf(begins("r1", 1), begins("r2", 1)), `of request r2, which ended before: false; "r1" is running`},
		"ends twice":         {logOf(begins("r1", 1), ends("r1"), ends("r1")), "ended before: true"},
		"ends another":       {logOf(begins("r1", 1), ends("r2")), "of request r2"},
		"starts again":       {logOf(begins("r1", 1), ends("r1"), begins("r1", 2)), "ended before: true"},
		"a repeated attempt": {logOf(begins("r1", 1), begins("r1", 1)), "attempt 1 of r1, after attempt 1"},
	} {
		t.Run(name, func(t *testing.T) {
			var p problems
			checkRequests(&p, test.log)
			requireProblem(t, test.want, p)
		})
	}
}

func TestASecretInALogIsFound(t *testing.T) {
	var p problems
	checkSecrets(&p, logOf(event.UserMessage{Content: "xyz"}))
	require.Empty(t, p)
	checkSecrets(&p, logOf(event.UserMessage{Content: "it is " + rig.APIKey}))
	requireProblem(t, "contains the secret", p)
}

func TestTranscriptsAreComparedWithoutProgress(t *testing.T) {
	document := func(bodies ...event.Body) transcript.Document {
		p := transcript.NewPatcher()
		for _, e := range logOf(bodies...) {
			p.Apply(e)
		}
		return p.Document()
	}
	a, b := event.UserMessage{Content: "aa"}, event.UserMessage{Content: "bb"}
	got := document(a)
	got.Entries[0].Content.Progress = "half"
	for _, test := range []struct {
		message event.Body
		got     transcript.Document
		want    string
	}{
		{a, got, ""}, {b, got, "entry 0"}, {a, transcript.Document{}, "entry 0 of 0"}, {a, document(a, b), "entry 1 of 2"},
	} {
		var p problems
		checkTranscript(&p, logOf(test.message), test.got)
		requireProblem(t, test.want, p)
	}
}

func TestTheFoldOfALogCanBeCut(t *testing.T) {
	log := logOf(event.SessionStarted{}, event.UserMessage{Content: "aa"}, event.AssistantMessage{Content: "b", ThroughEventID: "demo:0002"})
	for cut := range log {
		var p problems
		checkFold(&p, log, cut)
		require.Empty(t, p)
	}
}
