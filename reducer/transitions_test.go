package reducer_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

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
		for range 30 {
			in := randomInput(r, s)
			next, effects := reducer.Step(s, in)
			i := slices.IndexFunc(rows, func(row transition) bool { return row.matches(t, s, in) })
			require.GreaterOrEqual(t, i, 0, "no row for phase %s and input %+v", s.Phase(), in)
			hits[i]++
			want, got := rows[i], effectNames(effects)
			require.Equal(t, cmp.Or(want.next, s.Phase()), next.Phase(), "next phase of row %q for %T %+v in %+v", want.text, in, in, s)
			isOptional := len(want.effects) > 0 && want.effects[0] == "[Record]"
			if isOptional && !slices.Contains(got, "Record") {
				require.Equal(t, want.effects[1:], got, "effects of row %q", want.text)
			} else {
				require.Equal(t, strings.NewReplacer("[", "", "]", "").Replace(strings.Join(want.effects, " ")), strings.Join(got, " "), "effects of row %q for %+v in %+v", want.text, in, s)
			}
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
	ended, isEnd := in.(reducer.RequestEnded)
	policy, trigger := s.Reduced.Config.Delivery.Policy, event.Counter(s.Trigger)
	isStopping := s.Phase().IsStopping() ||
		isEnd && ended.Reason == event.ReasonNewUserInput && s.Phase() == reducer.PhaseAnswering && trigger > event.Counter(s.Request.Through)
	switch condition {
	case "duplicate":
		_, isKnown := s.Find(received.Events[0].ClientEventID)
		return isKnown
	case "message":
		body, isMessage := received.Events[0].Body.(event.UserMessage)
		if s.Phase() == reducer.PhaseAnswering && !isMessage {
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
	case "failed":
		return ended.Outcome == reducer.Failed
	case "fallback configured":
		return !isStopping && !s.Request.Fallback && s.Reduced.Config.Fallback != nil
	case "handed back":
		isHandedBack := !isEnd || ended.Outcome == reducer.HandedBack || ended.Outcome == reducer.Lost ||
			ended.Outcome == reducer.Interrupted && ended.Reason != event.ReasonTimeout
		return isHandedBack && !isStopping && s.Request.Returns < reducer.MaxReturns
	case "message waits":
		included := max(event.Counter(s.Request.Asked), event.Counter(s.Request.Through))
		return trigger > included || trigger > 0 && isStopping && ended.Outcome != reducer.Completed
	case "closing":
		return s.Closing != ""
	}
	t.Fatalf("unknown condition %q", condition)
	return false
}

// randomInput returns an input that may follow. It reports attempts as they are, and no
// attempt with its result that was not reported before; see TestStories for the others.
func randomInput(r *rand.Rand, s reducer.Session) reducer.Input {
	at := eventtest.Epoch
	a := reducer.Attempted{RequestID: "demo:r0000", ProviderID: "openai", Model: "m", Worker: []string{"", "w"}[r.IntN(2)]}
	if s.Request != nil {
		a.RequestID, a.Attempt, a.Through = s.Request.ID, s.Request.Attempt, s.Request.Through
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
			a.Through = event.FormatID("demo", first+r.IntN(s.EventCount-first+1))
		}
		in := reducer.RequestStarted{At: at, Attempted: a}
		if r.IntN(4) == 0 {
			in.Ended = &reducer.AttemptEnd{Error: "no"}
		}
		return in
	case 11, 12:
		return reducer.RequestEnded{At: at, Attempted: a, Text: "Hi",
			Outcome: []reducer.Outcome{reducer.Completed, reducer.Interrupted, reducer.Failed, reducer.HandedBack, reducer.Lost}[r.IntN(5)],
			Reason:  []event.Reason{"", event.ReasonTimeout, event.ReasonNewUserInput}[r.IntN(3)]}
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
