package reducer_test

import (
	"cmp"
	"fmt"
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

// TestASessionSurvivesRandomFaults drives a session with random inputs: events of every kind, bursts in
// the quiet period, interrupts, closes, attempts with every outcome, retries that wait, lost stops, terminated runs, and
// runs that continue as new, also during an attempt, and sessions that end when they are idle. Answers have tool calls with every
// outcome: errors, approvals, results of clients, expiry, lost workers and late results. It checks
// the invariants after every step, and that the session becomes idle when the faults end.
func TestASessionSurvivesRandomFaults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &simulation{
			T: t, session: reducer.NewSession("demo"), twin: reducer.NewSession("demo"), now: eventtest.Epoch,
			shown: map[string]int{}, started: map[string]bool{}, withdrawn: map[string]bool{},
		}
		w.options.DefaultProviderID, w.options.DefaultModel = "ollama", "llama3.2"
		w.options.IdleCloseMs = rapid.SampledFrom([]int64{0, time.Hour.Milliseconds()}).Draw(t, "idle close")
		w.step(reducer.Opened{At: w.now, Options: w.options})
		w.input(event.New(event.SetDeliveryPolicy{Policy: rapid.SampledFrom(event.Policy("").Values()).Draw(t, "policy")}))
		t.Repeat(map[string]func(*rapid.T){
			"message":   func(t *rapid.T) { w.in(t); w.input(event.New(eventtest.UserMessage().Draw(t, "message"))) },
			"again":     func(t *rapid.T) { w.in(t); w.input(event.New(event.AnswerRequested{})) },
			"burst":     func(t *rapid.T) { w.in(t); w.burst() },
			"any input": func(t *rapid.T) { w.in(t); w.anyInput() },
			"bad input": func(t *rapid.T) { w.in(t); w.step(reducer.Malformed{At: w.now, Reason: "not an event", Input: "?"}) },
			"interrupt": func(t *rapid.T) { w.in(t); w.interrupt() },
			"close":     func(t *rapid.T) { w.in(t); w.excuseAll(); w.step(reducer.CloseAsked{At: w.now, Reason: "enough"}) },
			"terminate": func(t *rapid.T) { w.in(t); w.terminate() },
			"send":      func(t *rapid.T) { w.in(t); w.send() },
			"end":       func(t *rapid.T) { w.in(t); w.end() },
			"fail":      func(t *rapid.T) { w.in(t); w.fail() },
			"strategy": func(t *rapid.T) {
				w.in(t)
				w.input(event.New(eventtest.Of[event.SetCompaction]().Draw(t, "compaction")))
			},
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

// simulation replaces the workflow and a worker of a session.
type simulation struct {
	*rapid.T
	session reducer.Session
	twin    reducer.Session // a deep copy
	options reducer.Options
	log     []event.Event
	history []event.Event // the log as it is read back
	now     time.Time
	timer   time.Time

	running *activity
	// since is when the newest attempt that does not replace a withdrawn one was scheduled.
	since time.Time
	// withdrawn are the attempts that were not sent.
	withdrawn map[string]bool
	// calling are the calls that a worker executes, and cancelled those that it was asked to stop.
	calling, cancelled []reducer.CallTool
	// started are the ids of the calls that were executed, by whether they are idempotent.
	started map[string]bool

	// waiting are the messages that require an answer.
	waiting []int
	// shown is the newest event that each request is known to include.
	shown map[string]int
}

// activity is an attempt at a worker.
type activity struct {
	reducer.StartAttempt
	isSent       bool
	stop         event.Reason // "" if it was not asked to stop
	isStopUnsent bool         // it was asked to stop before it was sent
}

func (a *activity) key() string { return fmt.Sprint(a.RequestID, " ", a.Attempt) }

// in draws from t from now on.
func (w *simulation) in(t *rapid.T) {
	w.T = t
	w.pause()
}

func (w *simulation) pause() {
	w.now = w.now.Add(time.Duration(rapid.SampledFrom([]int{0, 1, 4, 20, 300, 1000, 7000}).Draw(w.T, "pause")) * time.Millisecond)
}

// step applies an input, checks the invariants of a step and performs the effects. It
// returns the recorded events.
func (w *simulation) step(in reducer.Input) []event.Event {
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
		case reducer.StartAttempt:
			w.start(effect)
		case reducer.StopAttempt:
			w.stop(effect)
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
			require.True(w, w.timer.IsZero() || effect.At.Before(w.timer), "the timer is set needlessly")
			w.timer = effect.At
		}
	}
	isRunning := next.Request != nil && next.Phase() != reducer.PhaseCalling && !next.Request.AttemptEnded
	require.Equal(w, isRunning, w.running != nil, "the session and the worker disagree whether an attempt runs")
	w.checkCalls()
	w.checkTimer()
	return recorded
}

// start schedules an attempt.
func (w *simulation) start(effect reducer.StartAttempt) {
	next := w.session
	require.Nil(w, w.running, "two attempts at once")
	require.NotNil(w, next.Request)
	require.Equal(w, next.Request.ID, effect.RequestID)
	require.Equal(w, next.Request.Attempt, effect.Attempt)
	require.Equal(w, next.Requests, effect.Turn)
	require.Empty(w, next.OpenToolCalls, "an attempt starts with an open tool call")
	require.Empty(w, next.Request.Calls)
	require.Equal(w, next.LastEventID(), effect.Through, "its input is the session of the step")
	require.Equal(w, next.LastEventAt, effect.ThroughAt)
	newest := w.log[len(w.log)-1]
	recorded, ok := newest.Body.(event.LLMRequestStarted)
	require.True(w, ok, "its start is the newest event")
	require.Equal(w, effect.RequestID, recorded.RequestID)
	require.Equal(w, effect.Attempt, recorded.Attempt)
	require.Equal(w, effect.Model, recorded.Model)
	require.Equal(w, effect.Compaction != nil, recorded.Purpose == event.PurposeCompaction)
	require.Equal(w, cmp.Or(effect.Limit, newest.ParentID), recorded.ThroughEventID)
	if !w.withdrawn[fmt.Sprint(effect.RequestID, " ", effect.Attempt-1)] {
		w.since = w.now
	}
	if !effect.SendAt.IsZero() {
		require.True(w, effect.SendAt.After(w.now))
		isRetry := effect.SendAt.Equal(next.Request.RetryAt)
		bound := w.since.Add(time.Duration(next.Reduced.Config.Delivery.MaxWaitMs) * time.Millisecond)
		require.True(w, isRetry || !effect.SendAt.After(bound), "a stream of input delays an attempt beyond the maximum wait")
		require.LessOrEqual(w, effect.SendAt.Sub(w.now), time.Minute)
		require.True(w, isRetry || effect.JitterMs == 0)
	}
	w.checkInput(effect)
	w.running = &activity{StartAttempt: effect}
}

// checkInput requires that a worker that loads the log sends the same as one that has the session.
func (w *simulation) checkInput(effect reducer.StartAttempt) {
	loaded := reducer.Load("demo", reducer.Reduce, w.history...)
	loaded.Request.Steps, loaded.Request.Limit, loaded.Request.Compaction = effect.Steps, effect.Limit, effect.Compaction
	require.Equal(w, reducer.MessagesOf(w.session), reducer.MessagesOf(loaded))
	require.Equal(w, reducer.SettingsOf(w.session), reducer.SettingsOf(loaded))
	require.Equal(w, reducer.MustOffer(w.session), reducer.MustOffer(loaded))
	require.Equal(w, w.session.Usage, loaded.Usage)
	require.Equal(w, w.session.Request.Through, loaded.Request.Through)
}

// stop delivers a request to stop, or loses it if the attempt may go on.
func (w *simulation) stop(effect reducer.StopAttempt) {
	require.NotNil(w, w.running, "no attempt runs to stop")
	require.Equal(w, w.running.RequestID, effect.RequestID)
	require.Equal(w, w.running.Attempt, effect.Attempt)
	require.True(w, w.running.Compaction == nil || effect.Reason == event.ReasonCancelled, "input stops a summary")
	require.Empty(w, w.running.stop, "an attempt is asked to stop twice")
	switch {
	case !effect.Unsent:
		w.running.stop = effect.Reason
	case !w.running.isSent:
		w.running.isStopUnsent = rapid.Bool().Draw(w.T, "the stop arrives")
	}
}

// record appends an event to the log and checks its envelope.
func (w *simulation) record(e event.Event) {
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

	if event.RequiresAnswer(e.Body) {
		w.waiting = append(w.waiting, len(w.log))
	}
	switch body := e.Body.(type) {
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
func (w *simulation) excuse(through int) {
	w.waiting = slices.DeleteFunc(w.waiting, func(n int) bool { return n <= through })
}

func (w *simulation) excuseAll() { w.excuse(len(w.log)) }

// interrupt cancels the request; queued messages keep waiting.
func (w *simulation) interrupt() {
	included := 0
	if r := w.session.Request; r != nil {
		included = max(event.Counter(r.Through), event.Counter(r.Taken))
	}
	if event.Counter(w.session.Trigger) > included {
		w.excuse(included)
	} else {
		w.excuseAll()
	}
	w.step(reducer.InterruptAsked{At: w.now})
}

// burst sends messages in quick succession. The attempt may be withdrawn in between.
func (w *simulation) burst() {
	for range rapid.IntRange(2, 6).Draw(w.T, "messages") {
		w.input(event.New(eventtest.UserMessage().Draw(w.T, "message")))
		w.now = w.now.Add(time.Duration(rapid.IntRange(0, 8).Draw(w.T, "milliseconds")) * time.Millisecond)
		if a := w.running; a != nil && !a.isSent && (a.stop != "" || a.isStopUnsent) && rapid.Bool().Draw(w.T, "withdrawn") {
			w.endBy("withdrawn")
		}
	}
}

func (w *simulation) anyInput() {
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
func (w *simulation) input(events ...event.Event) {
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
		require.Contains(w, []event.Tag{event.TagToolResult, event.TagLLMRequestInterrupted, event.TagLLMRequestStarted}, e.Tag(),
			"only results of tool calls, their interruption and an attempt follow the input")
	}
}

// reusesID reports whether an id of the events belongs to a different event of the log or of the input.
func (w *simulation) reusesID(events []event.Event) bool {
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
func (w *simulation) fresh(events []event.Event) (fresh []event.Event) {
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
func (w *simulation) terminate() {
	w.excuseAll()
	w.running, w.timer = nil, time.Time{}
	w.cancelled, w.calling = append(w.cancelled, w.calling...), nil
	w.session = reducer.Load("demo", reducer.Reduce, w.history...)
	w.twin = throughJSON(w, w.session)
	w.step(reducer.Opened{At: w.now, PreviousRunID: "run", Options: w.options})
}

// send sends the attempt once its time has come. One that was asked to stop in time is not sent.
func (w *simulation) send() {
	if a := w.running; a != nil && a.stop == "" && !a.isStopUnsent {
		a.isSent = true
		if earliest := a.SendAt.Add(-time.Duration(a.JitterMs) * time.Millisecond); earliest.After(w.now) {
			w.now = earliest
		}
	}
}

// end ends the attempt in a possible way.
func (w *simulation) end() {
	if w.running == nil {
		return
	}
	ways := []string{"failed", "handed back", "lost"}
	if !w.running.isSent {
		ways = append(ways, "withdrawn", "withdrawn")
		if w.running.MayCompact {
			ways = append(ways, "too long")
		}
	}
	if w.running.isSent {
		ways = append(ways, "completed", "completed", "timed out", "rejected as too long", "content refused", "invalid", "called", "called", "called", "stopped")
	}
	w.endBy(rapid.SampledFrom(ways).Draw(w.T, "way"))
}

// fail makes the attempt fail, so that a retry follows or waits.
func (w *simulation) fail() {
	if w.running == nil {
		return
	}
	w.send()
	w.endBy("failed")
}

func (w *simulation) endBy(way string) {
	a := w.running
	in := reducer.AttemptEnded{
		At: w.now, RequestID: a.RequestID, Attempt: a.Attempt, ProviderID: rapid.SampledFrom([]string{"openai", "ollama"}).Draw(w.T, "provider"),
		Model: rapid.SampledFrom([]string{a.Model, a.Model, "n"}).Draw(w.T, "model"),
		Hooks: rapid.SliceOfNDistinct(eventtest.Of[event.HookApplied](), 0, 3, func(h event.HookApplied) string { return fmt.Sprint(h.Stage, h.Hook) }).Draw(w.T, "hooks"),
	}
	if rapid.Bool().Draw(w.T, "offers tools") {
		in.Offered = new(eventtest.Of[event.ToolsOffered]().Draw(w.T, "offered"))
	}
	if a.isSent {
		in.Usage = eventtest.Usage().Draw(w.T, "usage")
	}
	failed := func(kind event.FailureKind) { in.Outcome, in.Error, in.Kind = reducer.Failed, "no", kind }
	switch way {
	case "completed":
		in.Outcome, in.FinishReason, in.Text = reducer.Completed, "stop", "text"
	case "called":
		in.Outcome, in.FinishReason, in.Text = reducer.Called, "tool_calls", "text"
		in.Calls = rapid.SliceOfN(calledTool(), 0, 5).Draw(w.T, "calls")
	case "failed":
		failed(rapid.SampledFrom([]event.FailureKind{event.FailureUnavailable, event.FailureUnavailable, event.FailureRefusedByHook}).Draw(w.T, "kind"))
		in.Retryable, in.Final = rapid.Bool().Draw(w.T, "retryable"), rapid.IntRange(0, 5).Draw(w.T, "final") == 0
		in.RetryAfterMs = 1000 * rapid.SampledFrom([]int64{0, 0, 2, 90, 301}).Draw(w.T, "retry after")
	case "too long":
		in.Outcome, in.Overflow = reducer.TooLong, new(overflow().Draw(w.T, "overflow"))
	case "content refused":
		failed(event.FailureBadRequest)
		in.Retryable, in.Suspects = rapid.Bool().Draw(w.T, "retryable"), rapid.SliceOfN(suspect(), 1, 3).Draw(w.T, "suspects")
	case "rejected as too long":
		failed(event.FailureContextTooLong)
		in.Overflow = new(overflow().Draw(w.T, "overflow"))
	case "invalid":
		failed(event.FailureBadResponse)
		in.Repair = &reducer.Repair{Answer: "{", Problem: "no JSON"}
	case "handed back":
		in.Outcome = reducer.HandedBack
	case "lost":
		in.Outcome, in.ProviderID, in.Model, in.Hooks, in.Offered = reducer.Lost, "", "", nil, nil
	case "timed out":
		in.Outcome, in.Reason, in.Text = reducer.Interrupted, event.ReasonTimeout, "text"
		in.Kind, in.Retryable, in.Error = event.FailureTimeout, true, "too slow"
	case "stopped": // perhaps by a forged stop
		in.Outcome, in.Reason, in.Text = reducer.Interrupted, cmp.Or(a.stop, event.ReasonNewUserInput), "text"
	case "withdrawn":
		in.Outcome = reducer.Withdrawn
		w.withdrawn[a.key()] = true
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
func (w *simulation) finish() {
	way := rapid.SampledFrom([]string{
		"completed", "called", "failed", "handed back", "lost", "timed out", "stopped", "too long", "rejected as too long", "content refused", "invalid",
		"withdrawn",
	}).Draw(w.T, "way")
	for range 1000 {
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
			require.Contains(w, []reducer.Phase{reducer.PhaseIdle, reducer.PhaseEnded}, w.session.Phase())
			require.True(w, w.session.Ended || w.options.IdleCloseMs == 0, "an idle session does not end")
			return
		}
		if w.running != nil {
			if way != "withdrawn" && way != "too long" {
				w.send()
			}
			w.endBy(way)
		}
	}
	require.Fail(w, "the session does not become idle", "every attempt: %s", way)
}

// suspect generates content that a provider may have refused, some of it unknown.
func suspect() *rapid.Generator[reducer.Suspect] {
	return rapid.Custom(func(t *rapid.T) reducer.Suspect {
		return reducer.Suspect{
			Content: rapid.SampledFrom(append(event.Content("").Values(), "colours")).Draw(t, "content"),
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
	s, _ = step(s, endOf(s, reducer.AttemptEnded{Outcome: reducer.Failed}))
	require.NotNil(t, s.Request, "the request continues with the fallback")
	s, _ = step(s, endOf(s, reducer.AttemptEnded{Outcome: reducer.Failed}))
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
