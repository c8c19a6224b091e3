package main

import (
	"crypto/sha256"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// log numbers and chains bodies as a session does. The key of a message is how it
// begins.
func log(bodies ...event.Body) []event.Event {
	var out []event.Event
	for i, body := range bodies {
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

// sent is a message of which its sender knows the outcome.
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

func completed(n int) event.Body { return event.LLMRequestCompleted{RequestID: request(n)} }

func interrupted(n, through int) event.Body {
	return event.LLMRequestInterrupted{RequestID: request(n), Reason: event.ReasonCancelled, ThroughEventID: id(through)}
}

// checked is what the check says of a log that was told and is the session's.
func checked(s story, log []event.Event) string {
	s.name = "demo"
	told := view{}
	for _, e := range log {
		if !told.tell(e) {
			told.events = append(told.events, e) // checkChain is to say so
		}
	}
	if err := s.check(log, told, stateOf(log)); err != nil {
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

func TestViolationsOfALogAreFound(t *testing.T) {
	taken := story{sent: []message{sent(m1, stored), sent(m2, stored), sent(m3, unsure)}}
	for name, test := range map[string]struct {
		log  []event.Event
		want string // "": none
	}{
		"two turns":        {log(begin, m1, started(1, 1, 2), says(1, 2, "re:m1 a "), completed(1), m2, started(2, 1, 6), says(2, 6, "re:m2 a b "), completed(2)), ""},
		"an unsure one":    {log(begin, m1, m2, m3, started(1, 1, 4), says(1, 4, "re:m3 a "), completed(1)), ""},
		"a lost message":   {log(begin, m1, started(1, 1, 2), says(1, 2, "re:m1 a "), completed(1)), "message m2 is lost"},
		"a doubled one":    {log(begin, m1, m2, m2, started(1, 1, 4), says(1, 4, "re:m2 a b "), completed(1)), "doubled"},
		"a strange one":    {log(begin, m1, m2, event.UserMessage{Content: "m4 1 0s"}, started(1, 1, 4), says(1, 4, "re:m4 a "), completed(1)), "which was not sent"},
		"a damaged one":    {log(begin, m1, event.UserMessage{Content: "m2 2 1s"}, started(1, 1, 3), says(1, 3, "re:m2 a b "), completed(1)), "which was not sent"},
		"another order":    {log(begin, m2, m1, started(1, 1, 3), says(1, 3, "re:m1 a "), completed(1)), "order"},
		"a refused one":    {log(begin, m1, m2, event.InputRejected{Input: "m3"}, started(1, 1, 3), says(1, 3, "re:m2 a b "), completed(1)), "was refused"},
		"no answer":        {log(begin, m1, started(1, 1, 2), says(1, 2, "re:m1 a "), completed(1), m2), "neither an answer nor a reason"},
		"no end":           {log(begin, m1, m2, started(1, 1, 3)), "has no end"},
		"two ends":         {log(begin, m1, m2, started(1, 1, 3), says(1, 3, "re:m2 a b "), completed(1), completed(1)), "has ended"},
		"two at a time":    {log(begin, m1, m2, started(1, 1, 3), started(2, 1, 3), completed(2), completed(1)), "but demo:r0001 runs"},
		"an attempt back":  {log(begin, m1, m2, started(1, 2, 3), started(1, 1, 3), says(1, 3, "re:m2 a b "), completed(1)), "attempt 1, after attempt 2"},
		"an attempt again": {log(begin, m1, m2, started(1, 1, 2), started(1, 1, 3), says(1, 3, "re:m2 a b "), completed(1)), "attempt 1, after attempt 1"},
		"a wrong answer":   {log(begin, m1, m2, started(1, 1, 3), says(1, 3, "re:m1 a "), completed(1)), `want "m2"`},
		"two glued":        {log(begin, m1, m2, started(1, 1, 3), says(1, 3, "re:m2 a re:m2 a b "), completed(1)), "with 4 tokens"},
		"a gap": {append(log(begin, m1), log(begin, m1, m2, m2, started(1, 1, 4), says(1, 4, "re:m2 a b "), completed(1))[3:]...),
			"want demo:0003 after demo:0002"},
		"a session that ends":       {log(begin, m1, m2, started(1, 1, 3), says(1, 3, "re:m2 a b "), completed(1), event.SessionEnded{}), "1 sessions ended"},
		"a session that breaks off": {log(begin, m1, m2, started(1, 1, 3), says(1, 3, "re:m2 a b "), completed(1), begin), "1 broke off"},
	} {
		t.Run(name, func(t *testing.T) { requireProblem(t, test.want, checked(taken, test.log)) })
	}
}

func TestAMessageStaysWhereItsSenderWasTold(t *testing.T) {
	turn := log(begin, m1, started(1, 1, 2), says(1, 2, "re:m1 a "), completed(1))
	moved := log(begin, event.SystemPrompt{}, m1, started(1, 1, 3), says(1, 3, "re:m1 a "), completed(1))
	for name, test := range map[string]struct {
		outcome message
		log     []event.Event
		want    string
	}{
		"recorded":                  {sent(m1, recorded, id(2)), turn, ""},
		"recorded elsewhere":        {sent(m1, recorded, id(2)), moved, "told that it is demo:0002"},
		"lost":                      {sent(m1, lost), turn, "told that it is lost"},
		"refused, and yet taken":    {sent(m1, refused), turn, "told that it is refused"},
		"with an attachment":        {message{key: "m1", content: sent(m1, stored).content, file: blobs.RefOf([]byte("x")), outcome: stored}, moved, "without its attachment"},
		"an attachment of nobody's": {sent(m1, stored), log(begin, file("m9.file"), m1, started(1, 1, 3), says(1, 3, "re:m1 a "), completed(1)), "an attachment m9.file, which was not sent"},
	} {
		t.Run(name, func(t *testing.T) {
			requireProblem(t, test.want, checked(story{sent: []message{test.outcome}}, test.log))
		})
	}
}

func file(name string) event.Body {
	return event.FileAttachment{FileName: name, MediaType: "application/pdf", Source: event.Source{Type: event.SourceBlob, Ref: string(blobs.RefOf([]byte("x")))}}
}

func TestAnAttachmentIsThereOnce(t *testing.T) {
	m := sent(m1, stored)
	m.file = blobs.RefOf([]byte("x"))
	s := story{sent: []message{m}}
	turn := func(n int) []event.Body {
		return []event.Body{m1, started(1, 1, n), says(1, n, "re:m1 a "), completed(1)}
	}
	require.Empty(t, checked(s, log(append([]event.Body{begin, file("m1.file")}, turn(3)...)...)))
	require.Contains(t, checked(s, log(append([]event.Body{begin, file("m1.file"), file("m1.file")}, turn(4)...)...)), "attachment m1.file is doubled")
	require.Contains(t, checked(s, log(append([]event.Body{begin}, turn(2)...)...)), "without its attachment")
}

func TestThePolicyRejectRefusesAndSaysSo(t *testing.T) {
	rejected := event.InputRejected{Input: "m2"}
	answered := []event.Body{begin, m1, started(1, 1, 2), says(1, 2, "re:m1 a "), completed(1)}
	for name, test := range map[string]struct {
		second message
		more   []event.Body
		want   string
	}{
		"its sender was told":              {sent(m2, refused), []event.Body{rejected}, ""},
		"only its sender was told":         {sent(m2, refused), nil, "the log does not say so"},
		"a signal is refused in the log":   {sent(m2, stored), []event.Body{rejected}, ""},
		"a signal that nobody refused":     {sent(m2, stored), nil, "message m2 is lost"},
		"its sender was told the opposite": {sent(m2, recorded, id(6)), []event.Body{rejected}, "m2 is refused, though its sender"},
	} {
		t.Run(name, func(t *testing.T) {
			s := story{policy: event.PolicyReject, sent: []message{sent(m1, stored), test.second}}
			requireProblem(t, test.want, checked(s, log(append(answered, test.more...)...)))
		})
	}
}

func TestARefusalIsNotTheMessageThatIsSentAgain(t *testing.T) {
	l := (&story{sent: []message{sent(m1, recorded, id(3))}}).ledger()
	for _, e := range log(begin, event.InputRejected{Input: "m1"}) {
		l.note(e)
	}
	require.False(t, l.rests())
	l = (&story{sent: []message{sent(m1, stored)}}).ledger()
	for _, e := range log(begin, event.InputRejected{Input: "m1"}) {
		l.note(e)
	}
	require.True(t, l.rests())
}

func TestATerminationLosesOnlyWhatWasNotRecorded(t *testing.T) {
	answered := []event.Body{begin, m1, started(1, 1, 2), says(1, 2, "re:m1 a "), completed(1)}
	next := event.SessionStarted{PreviousRunID: "run"}
	terminated := func(after int) []fault { return []fault{{sent: after}} }
	for name, test := range map[string]struct {
		story story
		log   []event.Event
		want  string
	}{
		"a stored message goes":           {story{sent: []message{sent(m1, stored), sent(m2, stored)}, faults: terminated(2)}, log(append(answered, next)...), ""},
		"a message whose sender was told": {story{sent: []message{sent(m1, stored), sent(m2, lost)}, faults: terminated(2)}, log(append(answered, next)...), ""},
		"a recorded message stays":        {story{sent: []message{sent(m1, stored), sent(m2, recorded, id(6))}, faults: terminated(2)}, log(append(answered, next)...), "m2 is lost"},
		"so does one that is sent later":  {story{sent: []message{sent(m1, stored), sent(m2, stored)}, faults: terminated(1)}, log(append(answered, next)...), "m2 is lost"},
		"a request ends with the next session": {story{sent: []message{sent(m1, stored)}, faults: terminated(1)},
			log(begin, m1, started(1, 1, 2), next, interrupted(1, 4)), ""},
		"a message goes without an answer": {story{sent: []message{sent(m1, stored)}, faults: terminated(1)}, log(begin, m1, next), ""},
		"which no closing excuses":         {story{sent: []message{sent(m1, stored)}, closed: 1}, log(begin, m1, event.SessionEnded{}, next), "neither an answer nor a reason"},
	} {
		t.Run(name, func(t *testing.T) { requireProblem(t, test.want, checked(test.story, test.log)) })
	}
}

func TestAResetTakesBackAndDeliversAgain(t *testing.T) {
	turn := func(first, second event.UserMessage, firstKey, answer string) []event.Event {
		return log(begin, first, started(1, 1, 2), says(1, 2, "re:"+firstKey+" a "), completed(1), second, started(2, 1, 6), says(2, 6, answer), completed(2))
	}
	inOrder := turn(m1, m2, "m1", "re:m2 a b ")
	swapped := turn(m3, m1, "m3", "re:m1 a ")
	reset := func(after, kept int) []fault { return []fault{{isReset: true, sent: after, kept: kept}} }
	for name, test := range map[string]struct {
		story story
		log   []event.Event
		want  string
	}{
		"what it keeps stays":                 {story{sent: []message{sent(m1, recorded, id(2)), sent(m2, recorded, id(6))}, faults: reset(2, math.MaxInt)}, inOrder, ""},
		"what it takes back comes again":      {story{sent: []message{sent(m1, recorded, id(2)), sent(m2, recorded, id(9))}, faults: reset(2, 5)}, inOrder, ""},
		"what it takes back must not be lost": {story{sent: []message{sent(m1, recorded, id(2)), sent(m3, recorded, id(9)), sent(m2, stored)}, faults: reset(3, 5)}, inOrder, "m3 is lost"},
		"what it keeps must not move":         {story{sent: []message{sent(m1, recorded, id(2)), sent(m2, recorded, id(4))}, faults: reset(2, 5)}, inOrder, "told that it is demo:0004"},
		"what is sent later must not move":    {story{sent: []message{sent(m1, recorded, id(2)), sent(m2, recorded, id(9))}, faults: reset(1, 5)}, inOrder, "told that it is demo:0009"},
		"what comes again may come later":     {story{sent: []message{sent(m1, recorded, id(2)), sent(m3, recorded, id(3))}, faults: reset(1, 1)}, swapped, "told that it is demo:0003"},
		"also behind what is sent later":      {story{sent: []message{sent(m1, recorded, id(2)), sent(m3, recorded, id(2))}, faults: reset(1, 1)}, swapped, ""},
		"an attempt may be corrected": {story{sent: []message{sent(m1, stored)}, faults: reset(1, 1)},
			log(begin, event.SystemPrompt{}, m1, started(1, 1, 2), started(1, 1, 3), says(1, 3, "re:m1 a "), completed(1)), ""},
		"a termination then may lose it": {story{sent: []message{sent(m1, recorded, id(2)), sent(m2, recorded, id(6)), sent(m3, recorded, id(9))},
			faults: append(reset(3, 7), fault{sent: 3})}, inOrder, ""},
	} {
		t.Run(name, func(t *testing.T) { requireProblem(t, test.want, checked(test.story, test.log)) })
	}
}

func TestAFollowerIsToldTheLogAndGoesBackOnlyAfterResets(t *testing.T) {
	answered := log(begin, m1, started(1, 1, 2), says(1, 2, "re:m1 a "), completed(1))
	abandoned := log(begin, m2, m3)
	tell := func(events ...event.Event) (v view) {
		for _, e := range events {
			require.True(t, v.tell(e))
		}
		return v
	}
	twice := tell(append(abandoned[:3:3], answered[1:]...)...)
	one, none := story{faults: []fault{{isReset: true}}}, story{}
	require.NoError(t, none.checkTold(answered, tell(answered...)))
	require.NoError(t, none.checkTold(answered, tell(answered[:3]...)), "the log may have grown")
	require.NoError(t, one.checkTold(answered, twice))
	require.ErrorContains(t, none.checkTold(answered, twice), "sent back 1 times, after 0 resets and 0 terminations")
	require.ErrorContains(t, one.checkTold(answered, tell(abandoned...)), "was told UserMessageEvent demo:0002 as event 2")
	require.ErrorContains(t, none.checkTold(answered[:3], tell(answered...)), "which is not in the log")
	behindAGap := view{}
	require.False(t, behindAGap.tell(answered[1]))
}

func TestTheSessionIsWhatItsLogAmountsTo(t *testing.T) {
	answered := log(begin, m1, started(1, 1, 2), says(1, 2, "re:m1 a "), completed(1))
	state := stateOf(answered)
	require.NoError(t, checkState("demo", answered, state))
	require.NoError(t, checkState("demo", append(answered, event.New(m2)), state), "the log may have grown")
	require.ErrorContains(t, checkState("demo", answered[:4], state), "the session has 5 events, and the log 4")
	other := log(begin, m2, started(1, 1, 2), says(1, 2, "re:m2 a b "), completed(1))
	require.ErrorContains(t, checkState("demo", other, state), "not what its log amounts to")
}

func TestARunIsEndedByItsUserAlone(t *testing.T) {
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
		"-workers=0":               "-workers 0: out of range (1 to 100)",
		"-for=-1s":                 "-for -1s: out of range (more than 0)",
		"-continue-as-new-after=3": "-continue-as-new-after 3: out of range (0, or at least 50)",
		"-without=kill,gravity":    "-without gravity: no such kind of fault",
		"-kinds=odd":               "-kinds odd: no such kind of context",
		"soak":                     `unexpected argument "soak"`,
	} {
		_, err := parse([]string{args})
		require.ErrorContains(t, err, want)
	}
	o, err := parse([]string{"-seed", "7", "-without", "kill,reset"})
	require.NoError(t, err)
	require.EqualValues(t, 7, o.seed)
	require.True(t, o.leavesOut(faultReset))
	require.False(t, o.leavesOut(faultStop))
	o, err = parse(nil)
	require.NoError(t, err)
	require.NotZero(t, o.seed)
}
