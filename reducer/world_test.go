package reducer_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// TestASessionSurvivesRandomFaults_Alone drives a session with random inputs: events of every kind,
// interrupts, closes, workers that fail, die or ignore a stop, lost, late and repeated
// signals, terminated runs, and runs that continue as new. Answers have tool calls with every
// outcome: errors, approvals, results of clients, expiry, lost workers and late results. It checks
// the invariants after every step, and that the session becomes idle when the faults end.
func TestASessionSurvivesRandomFaults_Alone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{T: t, session: reducer.NewSession("demo"), twin: reducer.NewSession("demo"), now: eventtest.Epoch, shown: map[string]int{}, started: map[string]bool{}}
		w.step(reducer.Opened{At: w.now})
		w.input(event.New(event.SetDeliveryPolicy{Policy: rapid.SampledFrom(event.Policies()).Draw(t, "policy")}))
		t.Repeat(map[string]func(*rapid.T){
			"message":   func(t *rapid.T) { w.in(t); w.input(event.New(eventtest.UserMessage().Draw(t, "message"))) },
			"any input": func(t *rapid.T) { w.in(t); w.anyInput() },
			"bad input": func(t *rapid.T) { w.in(t); w.step(reducer.Refused{At: w.now, Reason: "not an event", Input: "?"}) },
			"interrupt": func(t *rapid.T) { w.in(t); w.interrupt() },
			"close":     func(t *rapid.T) { w.in(t); w.excuseAll(); w.step(reducer.CloseAsked{At: w.now, Reason: "enough"}) },
			"terminate": func(t *rapid.T) { w.in(t); w.terminate() },
			"send":      func(t *rapid.T) { w.in(t); w.send() },
			"retry":     func(t *rapid.T) { w.in(t); w.retry() },
			"signal":    func(t *rapid.T) { w.in(t); w.signal() },
			"end":       func(t *rapid.T) { w.in(t); w.end() },
			"strategy":  func(t *rapid.T) { w.in(t); w.input(event.New(eventtest.SetCompaction().Draw(t, "compaction"))) },
			"too long":  func(t *rapid.T) { w.in(t); w.tooLong() },
			"steps":     func(t *rapid.T) { w.in(t); w.steps(); w.steps(); w.tooLong() },
			"tools":     func(t *rapid.T) { w.in(t); w.setTools() },
			"call":      func(t *rapid.T) { w.in(t); w.call() },
			"tool":      func(t *rapid.T) { w.in(t); w.tool() },
			"tool late": func(t *rapid.T) { w.in(t); w.lateTool() },
			"approval":  func(t *rapid.T) { w.in(t); w.decide() },
			"answer":    func(t *rapid.T) { w.in(t); w.answerAsClient() },
			"time":      func(t *rapid.T) { w.in(t); w.wake() },
			"continue":  func(t *rapid.T) { w.in(t); w.continueAsNew() },
			"":          func(t *rapid.T) { w.in(t); w.check() },
		})
		w.in(t)
		w.finish()
	})
}

// world simulates the workflow and a worker of a session.
type world struct {
	*rapid.T
	session reducer.Session
	twin    reducer.Session // a deep copy
	log     []event.Event
	history []event.Event // the log as it is read back
	now     time.Time

	running *activity
	// signals can be delivered, any number of times.
	signals []reducer.RequestStarted
	// calling are the calls that a worker executes, and cancelled those that it was asked to stop.
	calling, cancelled []reducer.CallTool
	// started are the ids of the calls that were executed, by whether they are idempotent.
	started map[string]bool
	timer   time.Time

	// waiting are the messages that require an answer.
	waiting []int
	// shown is the newest event that each request is known to include.
	shown map[string]int
}

// activity is a request at a worker.
type activity struct {
	reducer.StartRequest
	attempt int
	through string // "" in the quiet period
	model   string
	stop    event.Reason // "" if it was not asked to stop
	hooks   []event.HookApplied
	// heartbeat is the newest attempt that sent a heartbeat; nil for none.
	heartbeat *reducer.LostAttempt
}

func (a *activity) attempted() reducer.Attempted {
	at := reducer.Attempted{RequestID: a.RequestID, Attempt: a.attempt, Through: a.through}
	if a.through != "" {
		at.ProviderID, at.Model = "openai", a.model
	}
	return at
}

// in draws from t from now on.
func (w *world) in(t *rapid.T) {
	w.T = t
	w.now = w.now.Add(time.Duration(rapid.IntRange(0, 1000).Draw(t, "pause")) * time.Millisecond)
}

// step applies an input, checks the invariants of a step and performs the effects. It
// returns the recorded events.
func (w *world) step(in reducer.Input) []event.Event {
	next, effects := reducer.Step(w.session, in)
	require.Equal(w, w.twin, w.session, "Step modified its argument")
	w.session, w.twin = next, throughJSON(w, next)
	require.Equal(w, w.twin, w.session, "the session does not survive a JSON round trip")

	var recorded []event.Event
	for _, effect := range effects {
		switch effect := effect.(type) {
		case reducer.Record:
			require.NotEmpty(w, effect.Events)
			for _, e := range effect.Events {
				w.record(e)
			}
			recorded = append(recorded, effect.Events...)
		case reducer.StartRequest:
			require.Nil(w, w.running, "two requests at once")
			require.Equal(w, event.FormatID("demo", len(w.log)), effect.Through, "a request includes the newest recorded event")
			require.NotNil(w, next.Request)
			require.Equal(w, next.Request.ID, effect.RequestID)
			require.Equal(w, next.Requests, effect.Turn)
			require.Empty(w, next.OpenToolCalls, "a request starts with an open tool call")
			require.Empty(w, next.Request.Calls)
			require.Equal(w, next.Request.Limit, effect.Limit)
			require.Equal(w, next.Request.Steps, effect.Steps)
			if w.shown[effect.RequestID] == 0 {
				require.NotEmpty(w, w.waiting, "a request starts without a waiting message")
			}
			w.running = &activity{StartRequest: effect, attempt: effect.FirstAttempt, model: "m"}
			w.shown[effect.RequestID] = event.Counter(reducer.ThroughOf(next))
		case reducer.TellRequest:
			require.NotNil(w, w.running, "no request runs to notify")
			require.Equal(w, w.running.RequestID, effect.RequestID)
			if w.running.stop == "" && w.running.through != "" && event.Counter(effect.Through) > event.Counter(w.running.through) {
				w.running.stop = event.ReasonNewUserInput
			}
		case reducer.InterruptRequest:
			require.NotNil(w, w.running, "no request runs to interrupt")
			require.Equal(w, w.running.RequestID, effect.RequestID)
			w.running.stop = effect.Reason
		case reducer.CallTool:
			w.callTool(effect)
		case reducer.CancelTools:
			w.calling = slices.DeleteFunc(w.calling, func(c reducer.CallTool) bool {
				if c.RequestID == effect.RequestID {
					w.cancelled = append(w.cancelled, c)
				}
				return c.RequestID == effect.RequestID
			})
		case reducer.WakeAt:
			require.NotEqual(w, w.timer, effect.At)
			w.timer = effect.At
		}
	}
	isCalling := next.Phase() == reducer.PhaseCalling
	require.Equal(w, next.Request != nil && !isCalling, w.running != nil, "the session and the worker disagree whether a request runs")
	w.checkCalls()
	return recorded
}

// record appends an event to the log and checks its envelope.
func (w *world) record(e event.Event) {
	require.Equal(w, event.FormatID("demo", len(w.log)+1), e.ID)
	require.Equal(w, "demo", e.ContextName)
	parent := ""
	if last := len(w.log); last > 0 {
		parent = w.log[last-1].ID
		require.False(w, e.Timestamp.Before(w.log[last-1].Timestamp))
	}
	require.Equal(w, parent, e.ParentID)
	require.NoError(w, e.Validate())
	require.NotEqual(w, event.ClassEphemeral, e.Tag().Class())
	w.log = append(w.log, e)
	w.history = append(w.history, throughJSON(w, e))

	switch body := e.Body.(type) {
	case event.UserMessage:
		if body.Triggers() {
			w.waiting = append(w.waiting, len(w.log))
		}
	case event.LLMRequestStarted:
		w.shown[body.RequestID] = max(w.shown[body.RequestID], event.Counter(body.ThroughEventID))
	case event.LLMRequestCompleted:
		w.excuse(w.shown[body.RequestID])
	case event.LLMRequestFailed:
		w.excuse(w.shown[body.RequestID])
	case event.LLMRequestInterrupted:
		if body.Reason == event.ReasonTimeout {
			w.excuse(w.shown[body.RequestID])
		}
	}
}

// excuse removes the waiting messages up to an event.
func (w *world) excuse(through int) {
	w.waiting = slices.DeleteFunc(w.waiting, func(n int) bool { return n <= through })
}

func (w *world) excuseAll() { w.excuse(len(w.log)) }

// interrupt cancels the request; queued messages keep waiting.
func (w *world) interrupt() {
	if r := w.session.Request; r != nil && r.Through != "" && r.Stop != event.ReasonNewUserInput {
		w.excuse(event.Counter(r.Through))
	} else if r != nil && r.Limit != "" && event.Counter(w.session.Trigger) > event.Counter(r.Limit) {
		w.excuse(event.Counter(r.Limit))
	} else {
		w.excuseAll()
	}
	w.step(reducer.InterruptAsked{At: w.now})
}

func (w *world) anyInput() {
	var events []event.Event
	for _, body := range rapid.SliceOfN(eventtest.InputBody(), 1, 3).Draw(w.T, "bodies") {
		e := event.New(body)
		e.ContextName = rapid.SampledFrom([]string{"", "", "", "demo", "other"}).Draw(w.T, "context")
		e.ClientEventID = rapid.SampledFrom([]string{"", "", "client-1", "client-2", "client-3", "client-4"}).Draw(w.T, "client id")
		events = append(events, e)
	}
	w.input(events...)
}

// input checks that events are recorded completely and in order, or rejected as a whole.
func (w *world) input(events ...event.Event) {
	fresh, reuses := w.fresh(events), w.reusesID(events)
	recorded := w.step(reducer.Received{At: w.now, Events: events})
	if events = fresh; len(events) == 0 && !reuses {
		require.Empty(w, recorded, "repeated events are dropped")
		return
	}
	require.NotEmpty(w, recorded)
	if recorded[0].Tag() == event.TagSessionStarted {
		recorded = recorded[1:]
	}
	if recorded[0].Tag() == event.TagInputRejected {
		require.Len(w, recorded, 1, "only the rejection is recorded")
		return
	}
	require.False(w, reuses, "an id that belongs to a different event is rejected")
	require.GreaterOrEqual(w, len(recorded), len(events))
	for i, e := range events {
		require.Equal(w, e.Body, recorded[i].Body)
		require.Equal(w, e.ClientEventID, recorded[i].ClientEventID)
	}
	for _, e := range recorded[len(events):] {
		require.Contains(w, []event.Tag{event.TagToolResult, event.TagLLMRequestInterrupted}, e.Tag(), "only results of tool calls and their interruption follow the input")
	}
}

// reusesID reports whether an id of the events belongs to a different event of the log or of the input.
func (w *world) reusesID(events []event.Event) bool {
	for i, e := range events {
		for _, other := range slices.Concat(w.log, events[:i]) {
			isSame := e.ClientEventID != "" && other.ClientEventID == e.ClientEventID && other.Tag() != event.TagInputRejected
			if isSame && !reflect.DeepEqual(e.Body, other.Body) {
				return true
			}
		}
	}
	return false
}

// fresh returns the events that the log does not contain.
func (w *world) fresh(events []event.Event) (fresh []event.Event) {
	has := func(log []event.Event, clientEventID string) bool {
		return clientEventID != "" && slices.ContainsFunc(log, func(e event.Event) bool {
			return e.ClientEventID == clientEventID && e.Tag() != event.TagInputRejected
		})
	}
	for i, e := range events {
		if !has(w.log, e.ClientEventID) && !has(events[:i], e.ClientEventID) {
			fresh = append(fresh, e)
		}
	}
	return fresh
}

// terminate replaces the session by one loaded from the log.
func (w *world) terminate() {
	w.excuseAll()
	w.running, w.signals, w.timer = nil, nil, time.Time{}
	w.cancelled, w.calling = append(w.cancelled, w.calling...), nil
	w.session = reducer.Load("demo", reducer.Reduce, w.history...)
	w.twin = throughJSON(w, w.session)
	w.step(reducer.Opened{At: w.now, PreviousRunID: "run"})
}

// send ends the quiet period of the attempt.
func (w *world) send() {
	if w.running == nil || w.running.through != "" {
		return
	}
	w.running.through = reducer.ThroughOf(w.session)
	w.running.hooks = rapid.SliceOfN(eventtest.HookApplied(), 0, 3).Draw(w.T, "hooks")
	w.running.model = rapid.SampledFrom([]string{"m", "n"}).Draw(w.T, "model")
	if rapid.IntRange(0, 3).Draw(w.T, "lost") > 0 {
		w.signals = append(w.signals, reducer.RequestStarted{Attempted: w.running.attempted(), Lost: w.running.heartbeat, Hooks: w.running.hooks})
	}
	if rapid.Bool().Draw(w.T, "heartbeat") {
		w.running.heartbeat = &reducer.LostAttempt{Attempted: w.running.attempted(), Usage: eventtest.Usage().Draw(w.T, "usage so far")}
	}
}

// retry simulates a failed attempt that Temporal retries.
func (w *world) retry() {
	if w.running == nil {
		return
	}
	if w.running.through != "" && rapid.IntRange(0, 3).Draw(w.T, "lost") > 0 {
		w.signals = append(w.signals, reducer.RequestStarted{Attempted: w.running.attempted(), Ended: &reducer.AttemptEnd{
			Kind: event.FailureUnavailable, Retryable: true, Error: "busy", Usage: eventtest.Usage().Draw(w.T, "usage"),
		}, Hooks: w.running.hooks})
	}
	w.running.attempt++
	w.running.through, w.running.hooks = "", nil
}

// signal delivers a signal.
func (w *world) signal() {
	if len(w.signals) == 0 {
		return
	}
	i := rapid.IntRange(0, len(w.signals)-1).Draw(w.T, "signal")
	in := w.signals[i]
	in.At = w.now
	w.step(in)
}

// end ends the running activity in a possible way.
func (w *world) end() {
	if w.running == nil {
		return
	}
	ways := []string{"failed", "returned", "died"}
	if w.running.MayCompact {
		ways = append(ways, "too long")
	}
	if w.running.stop != "" {
		ways = append(ways, "stopped", "cancelled")
	}
	if w.running.through != "" {
		ways = append(ways, "completed", "completed", "timed out", "refused", "content refused", "called", "called", "called")
	}
	w.endBy(rapid.SampledFrom(ways).Draw(w.T, "way"))
}

func (w *world) endBy(way string) {
	in := reducer.RequestEnded{At: w.now, Attempted: w.running.attempted(), Text: "text", Lost: w.running.heartbeat, Hooks: w.running.hooks}
	in.Hooks = append(slices.Clip(in.Hooks), rapid.SliceOfN(eventtest.HookApplied(), 0, 2).Draw(w.T, "hooks")...)
	if in.Lost != nil && in.Lost.Attempt == in.Attempt {
		in.Lost = nil
	}
	if rapid.Bool().Draw(w.T, "offers tools") {
		in.Offered = new(eventtest.ToolsOffered().Draw(w.T, "offered"))
	}
	if in.Through == "" {
		in.Text = ""
	} else {
		in.Usage = eventtest.Usage().Draw(w.T, "usage")
		w.shown[in.RequestID] = max(w.shown[in.RequestID], event.Counter(in.Through))
	}
	switch way {
	case "completed":
		in.Outcome, in.FinishReason = reducer.Completed, "stop"
	case "called":
		in.Outcome, in.FinishReason, in.Calls = reducer.Called, "tool_calls", rapid.SliceOfN(calledTool(), 0, 5).Draw(w.T, "calls")
	case "failed":
		in.Outcome, in.Error, in.Text = reducer.Failed, "no", ""
		in.Retryable = rapid.Bool().Draw(w.T, "retryable")
		in.Kind = rapid.SampledFrom([]event.FailureKind{event.FailureBadRequest, event.FailureRefusedByHook}).Draw(w.T, "kind")
	case "too long":
		in.Outcome, in.Text, in.Overflow = reducer.TooLong, "", new(overflow().Draw(w.T, "overflow"))
	case "content refused":
		in.Outcome, in.Error, in.Text, in.Kind = reducer.Failed, "no", "", event.FailureBadRequest
		in.Suspects = rapid.SliceOfN(suspect(), 1, 3).Draw(w.T, "suspects")
	case "refused":
		in.Outcome, in.Error, in.Text, in.Overflow = reducer.Failed, "too long", "", new(overflow().Draw(w.T, "overflow"))
		in.Kind = event.FailureContextTooLong
	case "returned":
		in.Outcome, in.Text = reducer.HandedBack, ""
	case "died": // without a result
		last := w.running.heartbeat
		in = reducer.RequestEnded{At: w.now, Attempted: reducer.Attempted{RequestID: in.RequestID}, Outcome: reducer.Lost}
		if last != nil {
			in.Attempted, in.Usage = last.Attempted, last.Usage
		}
	case "timed out":
		in.Outcome, in.Reason = reducer.Interrupted, event.ReasonTimeout
	case "stopped": // by the stop message
		in.Outcome, in.Reason = reducer.Interrupted, w.running.stop
	case "cancelled": // by Temporal, while waiting for a retry
		in.Outcome, in.Attempted, in.Text = reducer.Interrupted, reducer.Attempted{RequestID: in.RequestID}, ""
	}
	if in.Text != "" && rapid.Bool().Draw(w.T, "reasons") {
		in.Reasoning, in.ProviderState = "reasoning", &event.ProviderState{
			ProviderID: "p", Model: "m", BaseURL: "https://p.example/v1", Data: []byte(`{"a":1}`),
		}
		in.Text = rapid.SampledFrom([]string{"", "text"}).Draw(w.T, "text")
	}
	w.running = nil
	w.step(in)
}

// finish ends every attempt in the same way, without new input, until the session is idle.
func (w *world) finish() {
	way := rapid.SampledFrom([]string{"completed", "called", "failed", "returned", "died", "timed out", "stopped", "too long", "refused", "content refused"}).Draw(w.T, "way")
	for range 200 {
		for len(w.calling) > 0 {
			w.tool()
		}
		for !w.timer.IsZero() {
			if w.timer.After(w.now) {
				w.now = w.timer
			}
			w.wake()
		}
		if w.running == nil && len(w.calling) == 0 {
			w.check()
			return
		}
		if w.running != nil {
			w.send()
			w.endBy(way)
		}
	}
	require.Fail(w, "the session does not become idle", "every attempt: %s", way)
}

// suspect generates content that a provider may have refused, some of it unknown.
func suspect() *rapid.Generator[reducer.Suspect] {
	return rapid.Custom(func(t *rapid.T) reducer.Suspect {
		return reducer.Suspect{
			Content: rapid.SampledFrom(append(event.Contents(), "colours")).Draw(t, "content"),
			Tool:    rapid.SampledFrom([]string{"", "", "fetch"}).Draw(t, "tool"),
		}
	})
}

// A custom reducer may drop anything, such as the fallback.
func TestASessionAcceptsACustomReducer(t *testing.T) {
	forgetful := func(current reducer.ReducedContext, events ...event.Event) reducer.ReducedContext {
		next := reducer.Reduce(current, events...)
		for _, e := range events {
			if e.Tag() == event.TagLLMRequestFellBack {
				next.Messages, next.Config.Fallback = nil, nil
			}
		}
		return next
	}
	step := reducer.NewStepper(forgetful)
	s, _ := step(reducer.NewSession("demo"), reducer.Opened{At: eventtest.Epoch})
	s, _ = step(s, reducer.Received{At: eventtest.Epoch, Events: []event.Event{
		event.New(event.SetProviderConfig{ProviderID: "ollama", Model: "m", AsFallback: true}),
		event.New(event.UserMessage{Content: "Hello"}),
	}})
	failed := reducer.RequestEnded{At: eventtest.Epoch, Attempted: reducer.Attempted{RequestID: s.Request.ID}, Outcome: reducer.Failed}
	s, _ = step(s, failed)
	require.NotNil(t, s.Request, "the request continues with the fallback")
	s, _ = step(s, failed)
	require.Nil(t, s.Request)
	require.Empty(t, s.Reduced.Messages)
}

func TestAnIncompleteLogContinuesAfterItsNewestEvent(t *testing.T) {
	s := reducer.Load("demo", reducer.Reduce, numbered(5, event.UserMessage{Content: "Hello"}, event.SessionEnded{})...)
	_, effects := reducer.Step(s, reducer.Opened{At: eventtest.Epoch})
	require.Len(t, effects, 1)
	started := effects[0].(reducer.Record).Events[0]
	require.Equal(t, "demo:0007", started.ID)
	require.Equal(t, "demo:0006", started.ParentID)
	require.Equal(t, event.SessionStarted{LoadedEventCount: 6}, started.Body)
}
