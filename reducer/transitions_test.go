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
		s.Options.IdleCloseMs = int64(time.Hour/time.Millisecond) * int64(seed%3)
		now := eventtest.Epoch
		for range 30 {
			now = now.Add([]time.Duration{0, 4 * time.Millisecond, time.Second, time.Minute, 25 * time.Hour}[r.IntN(5)])
			in := randomInput(r, s, now)
			next, effects := reducer.Step(s, in)
			i := slices.IndexFunc(rows, func(row transition) bool { return row.matches(t, s, in) })
			require.GreaterOrEqual(t, i, 0, "no row for phase %s and input %+v", s.Phase(), in)
			hits[i]++
			want, got := rows[i], effectNames(effects)
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
	isPhase := slices.ContainsFunc(row.phases, func(name string) bool { return name == "any" || name == string(s.Phase()) })
	name := strings.TrimPrefix(fmt.Sprintf("%T", in), "reducer.")
	return isPhase && slices.Contains(row.inputs, name) &&
		!slices.ContainsFunc(row.when, func(condition string) bool { return !holds(t, condition, s, in) })
}

// holds evaluates a condition of the table for the inputs of randomInput.
func holds(t *testing.T, condition string, s reducer.Session, in reducer.Input) bool {
	received, _ := in.(reducer.Received)
	ended, _ := in.(reducer.AttemptEnded)
	policy, r := s.Reduced.Config.Delivery.Policy, s.Request
	if r == nil {
		r = &reducer.Request{}
	}
	hasAttempt := r.Attempt > 0 && !r.AttemptEnded
	isOutdated := event.Counter(s.Trigger) > event.Counter(r.Through)
	switch condition {
	case "duplicate":
		_, isKnown := s.Find(received.Events[0].ClientEventID)
		return isKnown
	case "message":
		return isMessage(s, received)
	case "policy interrupts":
		if body, ok := received.Events[0].Body.(event.SetDeliveryPolicy); ok {
			policy = body.Policy
		}
		return policy == event.PolicyInterrupt
	case "attempt waits":
		return received.At.Before(r.SendAt) || !hasAttempt
	case "retry waits":
		if ended.Outcome == reducer.Failed {
			return ended.RetryAfterMs > 5000
		}
		return !hasAttempt
	case "retry due":
		return !hasAttempt && r.RetryAt.Sub(in.(reducer.Woken).At) <= 5*time.Second
	case "idle for long":
		limit := time.Duration(s.Options.IdleCloseMs) * time.Millisecond
		return limit > 0 && in.(reducer.Woken).At.Sub(s.LastEventAt) >= limit
	case "active":
		since := in.(reducer.CloseAsked).InactiveSince
		return !since.IsZero() && (s.Request != nil || s.LastEventAt.After(since))
	case "no attempt":
		return !hasAttempt || ended.RequestID != "" && (ended.RequestID != r.ID || ended.Attempt != r.Attempt)
	case "message queued":
		if _, ok := in.(reducer.InterruptAsked); ok && r.Taken != "" {
			return event.Counter(s.Trigger) > event.Counter(r.Taken)
		}
		return isOutdated
	case "called":
		return ended.Outcome == reducer.Called && r.Compaction == nil && r.Steps < s.Reduced.Config.Tools.Limits().MaxSteps
	case "calls done":
		return len(openCalls(s, in)) == 0
	case "retried":
		return isRetried(s, ended)
	case "goes on":
		if continued, ok := in.(reducer.Continued); ok && continued.Scheduled {
			ended.Outcome = reducer.HandedBack
		} else if ok && r.Stop == "" {
			return true
		} else if ok {
			ended.Outcome = reducer.Withdrawn
		}
		return goesOn(s, ended)
	case "closing":
		return s.Closing != ""
	}
	t.Fatalf("unknown condition %q", condition)
	return false
}

// isMessage reports whether a message requires an answer that the newest attempt does not give.
func isMessage(s reducer.Session, in reducer.Received) bool {
	r, policy := s.Request, s.Reduced.Config.Delivery.Policy
	body, isNew := in.Events[0].Body.(event.UserMessage)
	isNew = isNew && body.Triggers()
	if r == nil {
		return isNew
	}
	hasAttempt := !r.AttemptEnded
	isBusy := r.Steps > 0 || !r.RetryAt.IsZero() || hasAttempt && !in.At.Before(r.SendAt)
	if isNew && policy == event.PolicyReject && isBusy {
		isNew = false
	}
	trigger := event.Counter(s.Trigger)
	if isNew {
		trigger = s.EventCount + 1
	}
	if body, ok := in.Events[0].Body.(event.SetDeliveryPolicy); ok {
		policy = body.Policy
	}
	isQueued := r.Limit != "" && policy != event.PolicyInterrupt && trigger > event.Counter(r.Limit)
	return trigger > event.Counter(r.Through) && r.Compaction == nil && !isQueued
}

func isRetried(s reducer.Session, in reducer.AttemptEnded) bool {
	return in.Outcome == reducer.Failed && in.Retryable && in.Repair == nil && s.Request.Retries < s.Reduced.Config.Retry.MaxRetries
}

func goesOn(s reducer.Session, in reducer.AttemptEnded) bool {
	r := s.Request
	isSummary, isTimeout := r.Compaction != nil, in.Outcome == reducer.Interrupted && in.Reason == event.ReasonTimeout
	mayFallBack := !r.Fallback && s.Reduced.Config.Fallback != nil
	switch {
	case r.Stop != "":
		return in.Outcome == reducer.Withdrawn && r.Stop == event.ReasonNewUserInput
	case in.Outcome == reducer.Withdrawn && r.Taken != "":
		return true
	case isSummary && in.Outcome != reducer.HandedBack && in.Outcome != reducer.Lost && in.Outcome != reducer.Withdrawn && (in.Outcome != reducer.Interrupted || isTimeout):
		return true // no provider has rejected a request as too long
	case in.Outcome == reducer.Completed, in.Outcome == reducer.Called:
		return false
	case isTimeout:
		return mayFallBack || r.Retries < s.Reduced.Config.Retry.MaxRetries
	case in.Outcome == reducer.Failed:
		isRepaired := in.Repair != nil && r.Repair == nil
		isRefused := len(in.Suspects) > 0 && r.Refusals < reducer.MaxRefusals &&
			!slices.ContainsFunc(s.Reduced.Refused, func(refused event.ContentRefused) bool { return refused.Model == in.Model })
		return mayFallBack || isRepaired || isRefused || isRetried(s, in)
	case in.Outcome == reducer.TooLong:
		return mayFallBack || r.Compactions < reducer.MaxCompactions
	}
	return r.Returns < reducer.MaxReturns
}

// openCalls returns the ids of the calls without a result after an input that does not interrupt
// them.
func openCalls(s reducer.Session, in reducer.Input) (ids []string) {
	if in, ok := in.(reducer.AttemptEnded); ok {
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
			isAwaited := c.State == reducer.CallChecking || c.State == reducer.CallRunning
			isOpen = c.ID != in.CallID || s.Request.ID != in.RequestID || isValid || !isAwaited
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
func randomToolInput(r *rand.Rand, s reducer.Session, at time.Time) reducer.Input {
	requestID, callID := randomCall(r, s)
	received := func(body event.Body) reducer.Input {
		return reducer.Received{At: at, Events: []event.Event{event.New(body)}}
	}
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
		in := reducer.Continued{At: at, Scheduled: r.IntN(2) == 0, Options: s.Options}
		if r.IntN(2) == 0 {
			in.NotStarted = []string{callID}
		}
		return in
	case 5:
		return reducer.Woken{At: at}
	}
	ended := reducer.ToolEnded{At: at, RequestID: requestID, CallID: callID, Value: []byte(`1`),
		Outcome: []reducer.CallOutcome{reducer.CallReturned, reducer.CallReturned, reducer.CallLost, reducer.CallCancelled}[r.IntN(4)]}
	if r.IntN(4) == 0 {
		ended.Error = []byte(`"no"`)
	}
	return ended
}

// randomInput returns an input that may follow.
func randomInput(r *rand.Rand, s reducer.Session, at time.Time) reducer.Input {
	if r.IntN(4) == 0 || s.Phase() == reducer.PhaseCalling && r.IntN(2) == 0 {
		return randomToolInput(r, s, at)
	}
	if s.Phase() == reducer.PhaseRunning && r.IntN(3) == 0 || s.Phase() == reducer.PhaseStopping && r.IntN(2) == 0 {
		return randomEnd(r, s, at)
	}
	received := func(body event.Body, clientEventID string) reducer.Input {
		e := event.New(body)
		e.ClientEventID = clientEventID
		return reducer.Received{At: at, Events: []event.Event{e}}
	}
	switch r.IntN(12) {
	case 0, 1, 2:
		return received(event.UserMessage{Content: "Hello"}, "")
	case 3:
		return received(event.UserMessage{Content: "Hello"}, []string{"a", "b", "c"}[r.IntN(3)])
	case 4:
		return received(event.UserMessage{Content: "Hello", TriggersTurn: new(false)}, "")
	case 5, 6:
		return received(event.SetDeliveryPolicy{Policy: event.Policy("").Values()[r.IntN(len(event.Policy("").Values()))]}, "")
	case 7:
		return received(event.SetProviderConfig{ProviderID: "openai", Model: "m", AsFallback: true, UseDefault: false}, "")
	case 8:
		return reducer.Malformed{At: at, Reason: "not an event"}
	case 9:
		return reducer.InterruptAsked{At: at}
	case 10:
		return reducer.Continued{At: at, Scheduled: r.IntN(2) == 0, Options: s.Options}
	}
	if r.IntN(8) == 0 {
		return reducer.Opened{At: at, Options: s.Options}
	}
	return reducer.CloseAsked{At: at, InactiveSince: []time.Time{{}, {}, s.LastEventAt, s.LastEventAt.Add(-time.Nanosecond)}[r.IntN(4)]}
}

// randomEnd returns a report of the newest attempt, seldom of another one.
func randomEnd(r *rand.Rand, s reducer.Session, at time.Time) reducer.Input {
	in := reducer.AttemptEnded{At: at, RequestID: "demo:r0000", Attempt: 1, Text: "Hi", ProviderID: "openai", Model: []string{"m", "n"}[r.IntN(2)],
		Outcome: []reducer.Outcome{
			reducer.Completed, reducer.Called, reducer.Called, reducer.Interrupted, reducer.Withdrawn, reducer.Failed, reducer.Failed, reducer.Failed,
			reducer.HandedBack, reducer.Lost, reducer.TooLong,
		}[r.IntN(11)],
		Reason: []event.Reason{"", event.ReasonTimeout, event.ReasonNewUserInput}[r.IntN(3)]}
	if s.Request != nil && r.IntN(10) > 0 {
		in.RequestID, in.Attempt = s.Request.ID, s.Request.Attempt
	}
	switch in.Outcome {
	case reducer.Called:
		in.Calls = randomCalls(r, s)
	case reducer.TooLong:
		in.Overflow = &reducer.Overflow{Tokens: 100, Window: 100}
	case reducer.Failed:
		in.Text, in.Reason = "", ""
		switch r.IntN(4) {
		case 0:
			in.Suspects = []reducer.Suspect{{Content: event.ContentSchemas}}
		case 1:
			in.Repair = &reducer.Repair{Problem: "no JSON"}
		case 2:
			in.Retryable, in.RetryAfterMs = true, 60_000*r.Int64N(2)
		}
	}
	return in
}

func received(body event.Body) reducer.Received {
	return reducer.Received{At: eventtest.Epoch, Events: []event.Event{event.New(body)}}
}

func effectNames(effects []reducer.Effect) (names []string) {
	for _, effect := range effects {
		if _, isTimer := effect.(reducer.WakeAt); !isTimer {
			names = append(names, strings.TrimPrefix(fmt.Sprintf("%T", effect), "reducer."))
		}
	}
	return slices.Compact(names)
}
