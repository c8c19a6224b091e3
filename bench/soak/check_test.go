package main

import (
	"crypto/sha256"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/seed-9ed7edd4/chronicle/bench/rig"
	"github.com/seed-9ed7edd4/chronicle/bench/soak/agent"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// log numbers and chains bodies as a session does. The key of a message is its first two
// letters.
func log(bodies ...event.Body) []event.Event {
	var out []event.Event
	tokens := 0
	for i, body := range bodies {
		switch b := body.(type) {
		case event.AssistantMessage:
			_, tokens = rig.Answered(strings.TrimPrefix(b.Content, agent.Checked))
		case event.LLMRequestCompleted:
			b.Usage = event.Usage{InputTokens: rig.InputTokens, OutputTokens: tokens}
			body = b
		}
		e := event.New(body)
		e.ID, e.ParentID, e.ContextName = event.FormatID("demo", i+1), "", "demo"
		if i > 0 {
			e.ParentID = event.FormatID("demo", i)
		}
		switch body := body.(type) {
		case event.UserMessage:
			e.ClientEventID = body.Content[:2]
		case event.InputRejected:
			e.ClientEventID = body.Input
		case event.FileAttachment:
			e.ClientEventID = body.FileName
		}
		out = append(out, e)
	}
	return out
}

var (
	m1, m2, m3 = event.UserMessage{Content: "m1 1 0s"}, event.UserMessage{Content: "m2 2 0s"}, event.UserMessage{Content: "m3 1 0s"}
	begin      = event.SessionStarted{}
)

// sent returns a message with a known outcome.
func sent(m event.UserMessage, o outcome, eventID ...string) message {
	out := message{key: m.Content[:2], content: sha256.Sum256([]byte(m.Content)), outcome: o}
	if len(eventID) > 0 {
		out.eventID = eventID[0]
	}
	return out
}

func id(n int) string      { return event.FormatID("demo", n) }
func request(n int) string { return event.FormatRequestID("demo", n) }

func started(n, attempt, seen int) event.Body {
	return event.LLMRequestStarted{RequestID: request(n), Attempt: attempt, ThroughEventID: id(seen)}
}

func says(n, seen int, text string) event.Body {
	return event.AssistantMessage{RequestID: request(n), ThroughEventID: id(seen), Content: text}
}

func lostAttempt(n, attempt int) event.Body {
	return event.LLMAttemptEnded{RequestID: request(n), Attempt: attempt, Outcome: event.AttemptLost}
}

func completed(n int) event.Body { return event.LLMRequestCompleted{RequestID: request(n)} }

func interrupted(n, through int) event.Body {
	return event.LLMRequestInterrupted{RequestID: request(n), Reason: event.ReasonCancelled, ThroughEventID: id(through)}
}

// checked returns the result of checking a log that was followed and folded.
func checked(j journal, log []event.Event) string {
	j.name = "demo"
	followed := view{}
	for _, e := range log {
		if !followed.add(e) {
			followed.events = append(followed.events, e) // checkChain reports it
		}
	}
	if err := j.check(log, followed, stateOf(log)); err != nil {
		return err.Error()
	}
	return ""
}

func stateOf(log []event.Event) wire.State {
	state := wire.StateOf(reducer.Load("demo", reducer.Reduce, log...), log[len(log)-1].Timestamp)
	state.EventCount = len(log)
	return state
}

func requireProblem(t *testing.T, want, got string) {
	t.Helper()
	if want == "" {
		require.Empty(t, got)
		return
	}
	require.Contains(t, got, want)
}

func TestCheckFindsViolations(t *testing.T) {
	taken := journal{sent: []message{sent(m1, stored), sent(m2, stored), sent(m3, unknown)}}
	for name, test := range map[string]struct {
		log  []event.Event
		want string // "": none
	}{
		"two turns":            {log(begin, m1, started(1, 1, 2), says(1, 2, "re:m1 a "), completed(1), m2, started(2, 1, 6), says(2, 6, "re:m2 a b "), completed(2)), ""},
		"an unknown one":       {log(begin, m1, m2, m3, started(1, 1, 4), says(1, 4, "re:m3 a "), completed(1)), ""},
		"a lost message":       {log(begin, m1, started(1, 1, 2), says(1, 2, "re:m1 a "), completed(1)), "message m2 is lost"},
		"a duplicate":          {log(begin, m1, m2, m2, started(1, 1, 4), says(1, 4, "re:m2 a b "), completed(1)), "duplicated"},
		"an unknown message":   {log(begin, m1, m2, event.UserMessage{Content: "m4 1 0s"}, started(1, 1, 4), says(1, 4, "re:m4 a "), completed(1)), "which was not sent"},
		"a modified message":   {log(begin, m1, event.UserMessage{Content: "m2 2 1s"}, started(1, 1, 3), says(1, 3, "re:m2 a b "), completed(1)), "which was not sent"},
		"another order":        {log(begin, m2, m1, started(1, 1, 3), says(1, 3, "re:m1 a "), completed(1)), "order"},
		"a rejected one":       {log(begin, m1, m2, event.InputRejected{Input: "m3"}, started(1, 1, 3), says(1, 3, "re:m2 a b "), completed(1)), "was rejected"},
		"no answer":            {log(begin, m1, started(1, 1, 2), says(1, 2, "re:m1 a "), completed(1), m2), "neither an answer nor a reason"},
		"no end":               {log(begin, m1, m2, started(1, 1, 3)), "has no end"},
		"two ends":             {log(begin, m1, m2, started(1, 1, 3), says(1, 3, "re:m2 a b "), completed(1), completed(1)), "has ended"},
		"overlapping requests": {log(begin, m1, m2, started(1, 1, 3), started(2, 1, 3), completed(2), completed(1)), "but demo:r0001 is running"},
		"a decreasing attempt": {log(begin, m1, m2, started(1, 2, 3), started(1, 1, 3), says(1, 3, "re:m2 a b "), completed(1)), "attempt 1, after attempt 2"},
		"a repeated attempt":   {log(begin, m1, m2, started(1, 1, 2), started(1, 1, 3), says(1, 3, "re:m2 a b "), completed(1)), "attempt 1, after attempt 1"},
		"a wrong answer":       {log(begin, m1, m2, started(1, 1, 3), says(1, 3, "re:m1 a "), completed(1)), `want "m2"`},
		"concatenated answers": {log(begin, m1, m2, started(1, 1, 3), says(1, 3, "re:m2 a re:m2 a b "), completed(1)), "with 4 tokens"},
		"a gap": {append(log(begin, m1), log(begin, m1, m2, m2, started(1, 1, 4), says(1, 4, "re:m2 a b "), completed(1))[3:]...),
			"want demo:0003 after demo:0002"},
		"a session that ends":       {log(begin, m1, m2, started(1, 1, 3), says(1, 3, "re:m2 a b "), completed(1), event.SessionEnded{}), "1 sessions ended"},
		"a session that is cut off": {log(begin, m1, m2, started(1, 1, 3), says(1, 3, "re:m2 a b "), completed(1), begin), "1 were cut off"},
	} {
		t.Run(name, func(t *testing.T) { requireProblem(t, test.want, checked(taken, test.log)) })
	}
}

func TestARecordedMessageKeepsItsID(t *testing.T) {
	turn := log(begin, m1, started(1, 1, 2), says(1, 2, "re:m1 a "), completed(1))
	moved := log(begin, event.SystemPrompt{}, m1, started(1, 1, 3), says(1, 3, "re:m1 a "), completed(1))
	for name, test := range map[string]struct {
		outcome message
		log     []event.Event
		want    string
	}{
		"recorded":              {sent(m1, recorded, id(2)), turn, ""},
		"recorded elsewhere":    {sent(m1, recorded, id(2)), moved, "reported as demo:0002"},
		"lost":                  {sent(m1, lost), turn, "reported as lost"},
		"rejected but recorded": {sent(m1, rejected), turn, "reported as rejected"},
		"with an attachment":    {message{key: "m1", content: sent(m1, stored).content, file: blobs.RefOf([]byte("x")), outcome: stored}, moved, "without its attachment"},
		"an unknown attachment": {sent(m1, stored), log(begin, file("m9.file"), m1, started(1, 1, 3), says(1, 3, "re:m1 a "), completed(1)), "attachment m9.file, which was not sent"},
	} {
		t.Run(name, func(t *testing.T) {
			requireProblem(t, test.want, checked(journal{sent: []message{test.outcome}}, test.log))
		})
	}
}

func file(name string) event.Body {
	return event.FileAttachment{FileName: name, MediaType: "application/pdf", Source: event.Source{Type: event.SourceBlob, Ref: string(blobs.RefOf([]byte("x")))}}
}

func TestAnAttachmentIsInTheLogOnce(t *testing.T) {
	m := sent(m1, stored)
	m.file = blobs.RefOf([]byte("x"))
	s := journal{sent: []message{m}}
	turn := func(n int) []event.Body {
		return []event.Body{m1, started(1, 1, n), says(1, n, "re:m1 a "), completed(1)}
	}
	require.Empty(t, checked(s, log(append([]event.Body{begin, file("m1.file")}, turn(3)...)...)))
	require.Contains(t, checked(s, log(append([]event.Body{begin, file("m1.file"), file("m1.file")}, turn(4)...)...)), "attachment m1.file is duplicated")
	require.Contains(t, checked(s, log(append([]event.Body{begin}, turn(2)...)...)), "without its attachment")
}

func TestTheRejectPolicyRecordsRejections(t *testing.T) {
	rejection := event.InputRejected{Input: "m2"}
	answered := []event.Body{begin, m1, started(1, 1, 2), says(1, 2, "re:m1 a "), completed(1)}
	for name, test := range map[string]struct {
		second message
		more   []event.Body
		want   string
	}{
		"reported as rejected": {sent(m2, rejected), []event.Body{rejection}, ""},
		"reported but missing": {sent(m2, rejected), nil, "the log has no rejection"},
		"a rejected signal":    {sent(m2, stored), []event.Body{rejection}, ""},
		"a missing signal":     {sent(m2, stored), nil, "message m2 is lost"},
		"reported as recorded": {sent(m2, recorded, id(6)), []event.Body{rejection}, "m2 is rejected, but it was reported as demo:0006"},
	} {
		t.Run(name, func(t *testing.T) {
			s := journal{policy: event.PolicyReject, sent: []message{sent(m1, stored), test.second}}
			requireProblem(t, test.want, checked(s, log(append(answered, test.more...)...)))
		})
	}
}

func TestARejectionDoesNotReplaceARecordedMessage(t *testing.T) {
	l := (&journal{sent: []message{sent(m1, recorded, id(3))}}).progress()
	for _, e := range log(begin, event.InputRejected{Input: "m1"}) {
		l.add(e)
	}
	require.False(t, l.isIdle())
	l = (&journal{sent: []message{sent(m1, stored)}}).progress()
	for _, e := range log(begin, event.InputRejected{Input: "m1"}) {
		l.add(e)
	}
	require.True(t, l.isIdle())
}

func TestATerminationLosesOnlyUnrecordedInput(t *testing.T) {
	answered := []event.Body{begin, m1, started(1, 1, 2), says(1, 2, "re:m1 a "), completed(1)}
	next := event.SessionStarted{PreviousRunID: "run"}
	terminated := func(after int) []fault { return []fault{{sent: after}} }
	for name, test := range map[string]struct {
		journal journal
		log     []event.Event
		want    string
	}{
		"a stored message may be lost":   {journal{sent: []message{sent(m1, stored), sent(m2, stored)}, faults: terminated(2)}, log(append(answered, next)...), ""},
		"a message reported as lost":     {journal{sent: []message{sent(m1, stored), sent(m2, lost)}, faults: terminated(2)}, log(append(answered, next)...), ""},
		"a recorded message must stay":   {journal{sent: []message{sent(m1, stored), sent(m2, recorded, id(6))}, faults: terminated(2)}, log(append(answered, next)...), "m2 is lost"},
		"a message sent later must stay": {journal{sent: []message{sent(m1, stored), sent(m2, stored)}, faults: terminated(1)}, log(append(answered, next)...), "m2 is lost"},
		"a request may end in the next session": {journal{sent: []message{sent(m1, stored)}, faults: terminated(1)},
			log(begin, m1, started(1, 1, 2), next, interrupted(1, 4)), ""},
		"a message may have no answer": {journal{sent: []message{sent(m1, stored)}, faults: terminated(1)}, log(begin, m1, next), ""},
		"but not after a close":        {journal{sent: []message{sent(m1, stored)}, closed: 1}, log(begin, m1, event.SessionEnded{}, next), "neither an answer nor a reason"},
	} {
		t.Run(name, func(t *testing.T) { requireProblem(t, test.want, checked(test.journal, test.log)) })
	}
}

func TestAResetDeliversInputAgain(t *testing.T) {
	turn := func(first, second event.UserMessage, firstKey, answer string) []event.Event {
		return log(begin, first, started(1, 1, 2), says(1, 2, "re:"+firstKey+" a "), completed(1), second, started(2, 1, 6), says(2, 6, answer), completed(2))
	}
	inOrder := turn(m1, m2, "m1", "re:m2 a b ")
	swapped := turn(m3, m1, "m3", "re:m1 a ")
	reset := func(after, last int) []fault { return []fault{{isReset: true, sent: after, lastRemaining: last}} }
	for name, test := range map[string]struct {
		journal journal
		log     []event.Event
		want    string
	}{
		"earlier events stay":                   {journal{sent: []message{sent(m1, recorded, id(2)), sent(m2, recorded, id(6))}, faults: reset(2, math.MaxInt)}, inOrder, ""},
		"later events are delivered again":      {journal{sent: []message{sent(m1, recorded, id(2)), sent(m2, recorded, id(9))}, faults: reset(2, 5)}, inOrder, ""},
		"later events must not be lost":         {journal{sent: []message{sent(m1, recorded, id(2)), sent(m3, recorded, id(9)), sent(m2, stored)}, faults: reset(3, 5)}, inOrder, "m3 is lost"},
		"earlier events must not move":          {journal{sent: []message{sent(m1, recorded, id(2)), sent(m2, recorded, id(4))}, faults: reset(2, 5)}, inOrder, "reported as demo:0004"},
		"messages sent later must not move":     {journal{sent: []message{sent(m1, recorded, id(2)), sent(m2, recorded, id(9))}, faults: reset(1, 5)}, inOrder, "reported as demo:0009"},
		"messages sent later keep their id":     {journal{sent: []message{sent(m1, recorded, id(2)), sent(m3, recorded, id(3))}, faults: reset(1, 1)}, swapped, "reported as demo:0003"},
		"repeated messages may be out of order": {journal{sent: []message{sent(m1, recorded, id(2)), sent(m3, recorded, id(2))}, faults: reset(1, 1)}, swapped, ""},
		"an attempt may be corrected": {journal{sent: []message{sent(m1, stored)}, faults: reset(1, 1)},
			log(begin, event.SystemPrompt{}, m1, started(1, 1, 2), lostAttempt(1, 1), started(1, 1, 3), says(1, 3, "re:m1 a "), completed(1)), ""},
		"a later termination may lose them": {journal{sent: []message{sent(m1, recorded, id(2)), sent(m2, recorded, id(6)), sent(m3, recorded, id(9))},
			faults: append(reset(3, 7), fault{sent: 3})}, inOrder, ""},
	} {
		t.Run(name, func(t *testing.T) { requireProblem(t, test.want, checked(test.journal, test.log)) })
	}
}

func TestAFollowerIsRewoundOnlyByResets(t *testing.T) {
	answered := log(begin, m1, started(1, 1, 2), says(1, 2, "re:m1 a "), completed(1))
	abandoned := log(begin, m2, m3)
	tell := func(events ...event.Event) (v view) {
		for _, e := range events {
			require.True(t, v.add(e))
		}
		return v
	}
	twice := tell(append(abandoned[:3:3], answered[1:]...)...)
	one, none := journal{faults: []fault{{isReset: true}}}, journal{}
	require.NoError(t, none.checkFollowed(answered, tell(answered...)))
	require.NoError(t, none.checkFollowed(answered, tell(answered[:3]...)), "the log may have grown")
	require.NoError(t, one.checkFollowed(answered, twice))
	require.ErrorContains(t, none.checkFollowed(answered, twice), "rewound 1 times, after 0 resets and 0 terminations")
	require.ErrorContains(t, one.checkFollowed(answered, tell(abandoned...)), "received UserMessageEvent demo:0002 as event 2")
	require.ErrorContains(t, none.checkFollowed(answered[:3], tell(answered...)), "which is not in the log")
	behindAGap := view{}
	require.False(t, behindAGap.add(answered[1]))
}

func TestTheSessionStateIsTheFoldOfTheLog(t *testing.T) {
	answered := log(begin, m1, started(1, 1, 2), says(1, 2, "re:m1 a "), completed(1))
	state := stateOf(answered)
	require.NoError(t, checkState("demo", answered, state))
	require.NoError(t, checkState("demo", append(answered, event.New(m2)), state), "the log may have grown")
	require.ErrorContains(t, checkState("demo", answered[:4], state), "the session has 5 events, but the log has 4")
	other := log(begin, m2, started(1, 1, 2), says(1, 2, "re:m2 a b "), completed(1))
	require.ErrorContains(t, checkState("demo", other, state), "not the fold of the log")
}

func TestTheServerMustNotEndRuns(t *testing.T) {
	require.NoError(t, checkEnd("run", enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, ""))
	require.NoError(t, checkEnd("run", enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, ""))
	require.NoError(t, checkEnd("run", enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW, ""))
	require.NoError(t, checkEnd("run", enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED, reason))
	require.ErrorContains(t, checkEnd("run", enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED, "Workflow history size exceeds limit."), "history size")
	require.Error(t, checkEnd("run", enumspb.WORKFLOW_EXECUTION_STATUS_FAILED, ""))
	require.Error(t, checkEnd("run", enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT, ""))
	require.Error(t, checkEnd("run", enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED, ""))
}

func TestFlags(t *testing.T) {
	for args, want := range map[string]string{
		"-faults=1.5":              "-faults 1.5: out of range (0 to 1)",
		"-faults=NaN":              "-faults NaN: out of range (0 to 1)",
		"-contexts=0":              "-contexts 0: out of range (1 to 10000)",
		"-workers=0":               "-workers 0: out of range (2 to 100)",
		"-for=-1s":                 "-for -1s: out of range (more than 0)",
		"-continue-as-new-after=3": "-continue-as-new-after 3: out of range (0, or at least 50)",
		"-without=kill,gravity":    "-without gravity: unknown kind of fault",
		"-kinds=odd":               "-kinds odd: unknown kind of context",
		"soak":                     `unexpected argument "soak"`,
	} {
		_, err := parse([]string{args})
		require.ErrorContains(t, err, want)
	}
	o, err := parse([]string{"-seed", "7", "-without", "kill,reset"})
	require.NoError(t, err)
	require.EqualValues(t, 7, o.seed)
	require.True(t, o.excludes(faultReset))
	require.False(t, o.excludes(faultStop))
	o, err = parse(nil)
	require.NoError(t, err)
	require.NotZero(t, o.seed)
	require.Contains(t, o.String(), "continue as new after 150 entries")
	o, err = parse([]string{"-continue-as-new-after", "0"})
	require.NoError(t, err)
	require.Contains(t, o.String(), "continue as new after the default number of entries")
}
