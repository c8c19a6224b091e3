package reducer_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// TestTheDocumentedTransitionsAreThoseOfStep drives sessions with random inputs and compares
// each transition with the first matching row of the table in the package documentation.
func TestTheDocumentedTransitionsAreThoseOfStep(t *testing.T) {
	rows := documentedTransitions(t)
	hits := make([]int, len(rows))
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 0))
		s := reducer.NewSession("demo")
		if seed%2 == 0 {
			s, _ = reducer.Step(s, received(event.SetTools{Tools: event.ToolList{clientTool}}))
		}
		for range 30 {
			in := randomInput(r, s)
			next, effects := reducer.Step(s, in)
			i := slices.IndexFunc(rows, func(row transition) bool { return row.matches(t, s, in) })
			require.GreaterOrEqual(t, i, 0, "no row for phase %s and input %+v", s.Phase(), in)
			hits[i]++
			want, got := rows[i], slices.Compact(effectNames(effects))
			require.Equal(t, cmp.Or(want.next, s.Phase()), next.Phase(), "next phase of row %q for %T %+v in %+v", want.text, in, in, s)
			require.Equal(t, want.effectsOf(got), got, "effects of row %q for %T %+v in %+v", want.text, in, in, s)
			s = next
		}
	}
	for i, row := range rows {
		require.NotZero(t, hits[i], "row %q never applies", row.text)
	}
}

// transition is a row of the table. An empty next means the same phase.
type transition struct {
	text                 string
	phases, inputs, when []string
	next                 reducer.Phase
	effects              []string
}

// effectsOf returns the effects of the row, with those optional ones that are in got.
func (row transition) effectsOf(got []string) (effects []string) {
	for _, effect := range row.effects {
		name, isOptional := strings.CutPrefix(strings.TrimSuffix(effect, "]"), "[")
		if !isOptional || slices.Contains(got, name) {
			effects = append(effects, name)
		}
	}
	return effects
}

func documentedTransitions(t *testing.T) (rows []transition) {
	doc, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	for line := range strings.Lines(string(doc)) {
		cells := strings.Split(strings.TrimPrefix(line, "//\t"), "|")
		if len(cells) != 5 || strings.HasPrefix(cells[0], "phase") {
			continue
		}
		lists := make([][]string, len(cells))
		for i, cell := range cells {
			for item := range strings.SplitSeq(strings.TrimSpace(cell), ", ") {
				if item != "-" {
					lists[i] = append(lists[i], item)
				}
			}
		}
		row := transition{text: strings.TrimSpace(line), phases: lists[0], inputs: lists[1], when: lists[2], effects: lists[4]}
		if lists[3][0] != "same" {
			row.next = reducer.Phase(lists[3][0])
		}
		rows = append(rows, row)
	}
	require.NotEmpty(t, rows)
	return rows
}

func (row transition) matches(t *testing.T, s reducer.Session, in reducer.Input) bool {
	isPhase := slices.ContainsFunc(row.phases, func(name string) bool {
		return name == "any" || name == "running" && s.Request != nil || name == string(s.Phase())
	})
	name := strings.TrimPrefix(fmt.Sprintf("%T", in), "reducer.")
	return isPhase && slices.Contains(row.inputs, name) &&
		!slices.ContainsFunc(row.when, func(condition string) bool { return !holds(t, condition, s, in) })
}

// holds evaluates a condition of the table for the inputs of randomInput.
func holds(t *testing.T, condition string, s reducer.Session, in reducer.Input) bool {
	received, _ := in.(reducer.Received)
	started, _ := in.(reducer.RequestStarted)
	tool, _ := in.(reducer.ToolEnded)
	ended, isEnd := in.(reducer.RequestEnded)
	policy, trigger := s.Reduced.Config.Delivery.Policy, event.Counter(s.Trigger)
	isSummarising := s.Request != nil && s.Request.Compaction != nil
	isStopping := s.Phase().IsStopping() ||
		isEnd && !isSummarising && ended.Reason == event.ReasonNewUserInput && s.Phase() == reducer.PhaseAnswering && trigger > event.Counter(s.Request.Through)
	switch condition {
	case "duplicate":
		_, isKnown := s.Find(received.Events[0].ClientEventID)
		return isKnown
	case "message":
		body, isMessage := received.Events[0].Body.(event.UserMessage)
		if (s.Phase() == reducer.PhaseAnswering || s.Phase() == reducer.PhaseCalling) && !isMessage {
			return trigger > event.Counter(s.Request.Through) // the policy changes while a message waits
		}
		return isMessage && body.Triggers()
	case "policy interrupts":
		if len(received.Events) > 0 {
			if body, ok := received.Events[0].Body.(event.SetDeliveryPolicy); ok {
				policy = body.Policy
			}
		}
		return policy == event.PolicyInterrupt
	case "newest attempt ended":
		r := s.Request
		return r != nil && started.RequestID == r.ID && started.Ended != nil && started.Attempt == r.Attempt && r.Attempt > 0 && !r.AttemptEnded
	case "implausible":
		r := s.Request
		return r == nil || started.RequestID != r.ID || started.Attempt <= max(r.Attempt, r.FirstAttempt-1)
	case "outdated":
		return trigger > event.Counter(started.Through)
	case "worker known":
		return s.Request.Worker != ""
	case "summarising":
		return isSummarising
	case "content refused": // the schemas of all tools
		return len(ended.Suspects) > 0 && !isStopping && s.Request.Refusals < reducer.MaxRefusals && len(s.Reduced.Refused) == 0
	case "too long":
		return ended.Outcome == reducer.TooLong && !isStopping && s.Request.Compactions < reducer.MaxCompactions
	case "summary complete":
		return isSummarising && !isStopping && (ended.Outcome == reducer.Completed || ended.Outcome == reducer.Called)
	case "summary fails": // no provider has rejected a request as too long
		return isSummarising && !isStopping && (ended.Outcome == reducer.Failed || ended.Outcome == reducer.TooLong ||
			ended.Outcome == reducer.Interrupted && ended.Reason == event.ReasonTimeout)
	case "failed":
		return ended.Outcome == reducer.Failed || ended.Outcome == reducer.TooLong
	case "may fall back":
		return !isStopping && !s.Request.Fallback && s.Reduced.Config.Fallback != nil
	case "handed back":
		isHandedBack := !isEnd || ended.Outcome == reducer.HandedBack || ended.Outcome == reducer.Lost ||
			ended.Outcome == reducer.Interrupted && ended.Reason != event.ReasonTimeout
		return isHandedBack && !isStopping && s.Request.Returns < reducer.MaxReturns
	case "called":
		isLate := trigger > event.Counter(s.Request.Through) && policy == event.PolicyInterrupt
		return ended.Outcome == reducer.Called && !isStopping && !isLate && s.Request.Steps < s.Reduced.Config.Tools.Limits().MaxSteps
	case "calls done":
		return len(openCalls(s, in)) == 0
	case "call runs":
		return slices.ContainsFunc(s.Request.Calls, func(c reducer.Call) bool {
			return s.Request.ID == tool.RequestID && c.ID == tool.CallID && c.State == reducer.CallRunning
		})
	case "check ends":
		return slices.ContainsFunc(s.Request.Calls, func(c reducer.Call) bool {
			return s.Request.ID == tool.RequestID && c.ID == tool.CallID && c.State == reducer.CallChecking
		})
	case "late result":
		isPlaceholder := func(m reducer.Message) bool { return m.ToolCallID == tool.CallID && m.Content == event.OutcomeUnknown }
		return tool.Outcome == reducer.CallReturned && !s.Ended && slices.ContainsFunc(s.Reduced.Messages, isPlaceholder)
	case "message waits":
		included := max(event.Counter(s.Request.Asked), event.Counter(s.Request.Through))
		return trigger > included || trigger > 0 && isStopping && (isSummarising || ended.Outcome != reducer.Completed)
	case "closing":
		return s.Closing != ""
	}
	t.Fatalf("unknown condition %q", condition)
	return false
}

// openCalls returns the ids of the calls without a result after an input that does not interrupt
// them.
func openCalls(s reducer.Session, in reducer.Input) (ids []string) {
	if in, ok := in.(reducer.RequestEnded); ok {
		for _, c := range in.Calls {
			if c.Error == "" {
				ids = append(ids, c.ID)
			}
		}
		return ids
	}
	for _, c := range s.Request.Calls {
		isOpen := true
		switch in := in.(type) {
		case reducer.Received:
			switch body := in.Events[0].Body.(type) {
			case event.ToolResult:
				isOpen = c.State != reducer.CallClient && c.State != reducer.CallChecking || c.ID != body.ToolCallID
			case event.ApprovalDecided:
				isOpen = body.Decision == event.Approve || c.State != reducer.CallApproval || body.ToolCallID != "" && body.ToolCallID != c.ID
			}
		case reducer.ToolEnded:
			isValid := c.State == reducer.CallChecking && in.Outcome == reducer.CallReturned && in.Error == nil && !in.IsError
			isOpen = c.ID != in.CallID || isValid
		case reducer.Woken:
			isOpen = c.Deadline.IsZero() || in.At.Before(c.Deadline)
		case reducer.Continued:
			isOpen = c.State != reducer.CallRunning || c.Idempotent || slices.Contains(in.NotStarted, c.ID)
		}
		if isOpen {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

var clientTool = event.Tool{Name: "fetch", Parameters: event.Object(`{"type":"object"}`)}

// randomCalls returns calls whose ids and arguments are unique in the context.
func randomCalls(r *rand.Rand, s reducer.Session) (calls []reducer.CalledTool) {
	for i := range 1 + r.IntN(3) {
		c := reducer.CalledTool{ID: fmt.Sprintf("c%d-%d", s.EventCount, i), Name: "fetch", Idempotent: r.IntN(2) == 0}
		c.Arguments = fmt.Appendf(nil, `{"n":%q}`, c.ID)
		switch r.IntN(8) {
		case 0:
			c.Error = "unknown tool"
		case 1:
			c.Client = true
		case 2:
			c.Approve = true
		case 3, 4, 5:
			c.Client, c.Approve = true, true
		}
		calls = append(calls, c)
	}
	return calls
}

// randomCall returns the request and the id of a call; mostly an open one.
func randomCall(r *rand.Rand, s reducer.Session) (requestID, callID string) {
	if s.Request != nil && len(s.Request.Calls) > 0 && r.IntN(8) > 0 {
		isChecking := func(c reducer.Call) bool { return c.State == reducer.CallChecking }
		if i := slices.IndexFunc(s.Request.Calls, isChecking); i >= 0 && r.IntN(2) == 0 {
			return s.Request.ID, s.Request.Calls[i].ID // rare
		}
		return s.Request.ID, s.Request.Calls[r.IntN(len(s.Request.Calls))].ID
	}
	for _, m := range slices.Backward(s.Reduced.Messages) {
		if len(m.ToolCalls) > 0 {
			return m.RequestID, m.ToolCalls[r.IntN(len(m.ToolCalls))].ID
		}
	}
	return "demo:r0001", "unknown"
}

// randomToolInput returns an input about tools that may follow.
func randomToolInput(r *rand.Rand, s reducer.Session) reducer.Input {
	at := eventtest.Epoch
	requestID, callID := randomCall(r, s)
	switch r.IntN(9) {
	case 0:
		return received(event.SetTools{Tools: event.ToolList{[]event.Tool{{Pattern: "fetch"}, clientTool}[r.IntN(2)]}, Parallel: new(1 + r.IntN(2)), MaxSteps: new(1 + r.IntN(3))})
	case 1:
		return received(event.ToolResult{ToolCallID: callID, Value: []byte(`1`)})
	case 2, 3:
		if r.IntN(4) == 0 {
			callID = ""
		}
		decided := event.ApprovalDecided{ToolCallID: callID, Decision: []event.Decision{event.Approve, event.Deny}[r.IntN(2)]}
		if callID != "" && decided.Decision == event.Approve && r.IntN(2) == 0 {
			decided.Parameters = fmt.Appendf(nil, `{"edited":%q}`, callID)
		}
		return received(decided)
	case 4:
		in := reducer.Continued{At: at}
		if r.IntN(2) == 0 {
			in.NotStarted = []string{callID}
		}
		return in
	case 5:
		return reducer.Woken{At: at.Add(time.Duration(r.IntN(2)) * 25 * time.Hour)}
	}
	ended := reducer.ToolEnded{At: at, RequestID: requestID, CallID: callID, Value: []byte(`1`),
		Outcome: []reducer.CallOutcome{reducer.CallReturned, reducer.CallReturned, reducer.CallLost, reducer.CallCancelled}[r.IntN(4)]}
	if r.IntN(4) == 0 {
		ended.Error = []byte(`"no"`)
	}
	return ended
}

// randomInput returns an input that may follow. Reports of attempts are true, and results are only
// those of reported attempts; TestStories covers the others.
func randomInput(r *rand.Rand, s reducer.Session) reducer.Input {
	at := eventtest.Epoch
	a := reducer.Attempted{RequestID: "demo:r0000", ProviderID: "openai", Model: "m", Worker: []string{"", "w"}[r.IntN(2)]}
	if s.Request != nil {
		a.RequestID, a.Attempt, a.Through = s.Request.ID, s.Request.Attempt, s.Request.Through
	}
	if r.IntN(3) == 0 || s.Phase() == reducer.PhaseCalling && r.IntN(2) == 0 {
		return randomToolInput(r, s)
	}
	if s.Phase() == reducer.PhaseAnswering && r.IntN(3) == 0 {
		return reducer.RequestEnded{At: at, Attempted: a, Outcome: reducer.Called, Calls: randomCalls(r, s), Text: "Hm"}
	}
	if s.Phase() == reducer.PhaseDebouncing && r.IntN(8) == 0 {
		return reducer.RequestEnded{At: at, Attempted: a, Outcome: reducer.TooLong, Overflow: &reducer.Overflow{Tokens: 100, Window: 100}}
	}
	switch r.IntN(16) {
	case 0, 1, 2:
		return received(event.UserMessage{Content: "Hello"})
	case 3:
		e := event.New(event.UserMessage{Content: "Hello"})
		e.ClientEventID = []string{"a", "b", "c"}[r.IntN(3)]
		return reducer.Received{At: at, Events: []event.Event{e}}
	case 4:
		return received(event.UserMessage{Content: "Hello", TriggersTurn: new(false)})
	case 5:
		return received(event.SetDeliveryPolicy{Policy: event.Policies()[r.IntN(len(event.Policies()))]})
	case 6:
		return received(event.SetProviderConfig{ProviderID: "openai", Model: "m", AsFallback: true})
	case 7:
		return reducer.Refused{At: at, Reason: "not an event"}
	case 8, 9, 10:
		if s.Request != nil {
			first := max(event.Counter(s.Request.Asked), s.EventCount-3)
			a.Attempt = max(a.Attempt, s.Request.FirstAttempt-1) + r.IntN(2)
			a.Through = cmp.Or(s.Request.Limit, event.FormatID("demo", first+r.IntN(s.EventCount-first+1)))
		}
		in := reducer.RequestStarted{At: at, Attempted: a}
		if r.IntN(4) == 0 {
			in.Ended = &reducer.AttemptEnd{Error: "no"}
		}
		return in
	case 11, 12:
		in := reducer.RequestEnded{At: at, Attempted: a, Text: "Hi",
			Outcome: []reducer.Outcome{reducer.Completed, reducer.Interrupted, reducer.Failed, reducer.HandedBack, reducer.Lost}[r.IntN(5)],
			Reason:  []event.Reason{"", event.ReasonTimeout, event.ReasonNewUserInput}[r.IntN(3)]}
		if in.Outcome == reducer.Failed && r.IntN(3) == 0 {
			in.Suspects = []reducer.Suspect{{Content: event.ContentSchemas}}
		}
		return in
	case 13:
		return reducer.InterruptAsked{At: at}
	case 14:
		return reducer.Continued{At: at}
	}
	if r.IntN(8) == 0 {
		return reducer.Opened{At: at}
	}
	return reducer.CloseAsked{At: at}
}

func received(body event.Body) reducer.Received {
	return reducer.Received{At: eventtest.Epoch, Events: []event.Event{event.New(body)}}
}

func effectNames(effects []reducer.Effect) (names []string) {
	for _, effect := range effects {
		names = append(names, strings.TrimPrefix(fmt.Sprintf("%T", effect), "reducer."))
	}
	return names
}
