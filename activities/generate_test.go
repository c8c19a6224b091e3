package activities_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/stream"
	"github.com/seed-9ed7edd4/chronicle/stream/streamtest"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

func TestAnswerIsTheResult(t *testing.T) {
	w := newWorld(t, newSession(), llmtest.Answer("Hel", "lo"))
	result, err := w.generate()
	require.NoError(t, err)
	require.Equal(t, activities.GenerateResult{
		Attempted: sent, Outcome: reducer.Completed, Text: "Hello", Usage: event.Usage{InputTokens: 7, OutputTokens: 2}, FinishReason: "stop",
	}, result)
	require.Equal(t, "Hello", w.model.Requests()[0].LastUser())
}

// newStep returns a session whose request waits for an attempt after a tool call, under the delivery
// policy queue.
func newStep() reducer.Session {
	s := newSession(event.SetDeliveryPolicy{Policy: event.PolicyQueue})
	s, _ = reducer.Step(s, reducer.RequestEnded{
		At: time.Now(), Outcome: reducer.Called, Calls: []reducer.CalledTool{{ID: "call_1", Name: "weather"}},
		Attempted: reducer.Attempted{RequestID: s.Request.ID, Attempt: 1, Through: reducer.ThroughOf(s), ProviderID: "openai", Model: "m"},
	})
	s, _ = reducer.Step(s, reducer.ToolEnded{At: time.Now(), RequestID: s.Request.ID, CallID: "call_1", Outcome: reducer.CallReturned})
	return s
}

func TestEveryAttemptOfAStepBeginsWithAResetDelta(t *testing.T) {
	again, _ := reducer.Step(newStep(), reducer.RequestEnded{
		At: time.Now(), Outcome: reducer.HandedBack, Attempted: reducer.Attempted{RequestID: "demo:r0001", Attempt: 2},
	})
	for name, s := range map[string]reducer.Session{"the first one": newStep(), "after a hand-back": again} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, s, llmtest.Answer("Sunny"))
			w.in.FirstAttempt, w.in.Steps, w.in.Limit = s.Request.FirstAttempt, s.Request.Steps, s.Request.Limit
			sub := w.connect()
			_, err := w.generate()
			require.NoError(t, err)
			var deltas []stream.Delta
			for len(deltas) < 2 {
				select {
				case m := <-sub.Messages():
					if d, ok := streamtest.Delta(sub, m); ok {
						deltas = append(deltas, d)
					}
				case <-time.After(10 * time.Second):
					t.Fatal("a delta is missing")
				}
			}
			want := event.TextDelta{RequestID: "demo:r0001", Attempt: s.Request.FirstAttempt, Reset: true}
			require.Equal(t, stream.Delta{TextDelta: want, After: s.LastEventID()}, deltas[0])
			want.Index, want.Delta, want.Reset, want.ThroughEventID = 1, "Sunny", false, s.Request.Limit
			require.Equal(t, stream.Delta{TextDelta: want, After: s.LastEventID()}, deltas[1])
		})
	}
}

func TestCachedSessionIsUsedIfItIsCommitted(t *testing.T) {
	session := newSession()
	lost := newSession()
	lost.Reduced.Messages[0].Content = "lost"
	unknown := session
	unknown.LastEventAt = time.Time{}
	for name, test := range map[string]struct {
		here    reducer.Session
		queries int
	}{
		"committed":                              {session, 0},
		"behind":                                 {reducer.NewSession("demo"), 1},
		"ahead of the server":                    {withInput(session, "lost"), 2},
		"of a task that was lost":                {lost, 2},
		"with an unknown time of its last event": {unknown, 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, session, llmtest.Answer("Hi"))
			cache := activities.NewSessionCache(0)
			cache.Entry(runID).Put(test.here)
			w.reset(cache)
			_, err := w.generate()
			require.NoError(t, err)
			require.Equal(t, test.queries, w.server.queries)
			require.Equal(t, "Hello", w.model.Requests()[0].LastUser())
		})
	}
}

func TestCachedInputIsSentOnceItIsCommitted(t *testing.T) {
	session := newSession()
	newer := withInput(session, "and you?")
	w := newWorld(t, session, llmtest.Answer("Both."))
	cache := activities.NewSessionCache(0)
	cache.Entry(runID).Put(newer)
	w.reset(cache)
	w.server.session = func(int) (reducer.Session, error) { return newer, nil }
	result, err := w.generate()
	require.NoError(t, err)
	require.Equal(t, newer.LastEventID(), result.Through)
	require.Equal(t, 1, w.server.queries, "a stop check")
	require.Equal(t, "and you?", w.model.Requests()[0].LastUser())
}

func TestRequestIncludesInputOfItsQuietPeriod(t *testing.T) {
	w := newWorld(t, newSession(), llmtest.Answer("Both."))
	first := newSession(debounce(20, 60_000))
	first.TriggerAt = time.Now().Add(time.Hour) // as if input kept arriving
	second := withInput(first, "and you?")
	first.Reduced.Config.Delivery.MaxWaitMs = 300 // less than the interval of heartbeats, which query, too
	second.TriggerAt = time.Now().Add(-time.Hour)
	w.server.session = func(query int) (reducer.Session, error) {
		if query == 1 {
			return first, nil
		}
		return second, nil
	}
	result, err := w.generate()
	require.NoError(t, err)
	require.Equal(t, second.LastEventID(), result.Through)
	require.Equal(t, "and you?", w.model.Requests()[0].LastUser())
}

func TestDebounceEndsAfterTheMaximumWait(t *testing.T) {
	s := newSession(debounce(60_000, 300))
	s.TriggerAt = time.Now().Add(time.Hour) // as if input kept arriving
	w := newWorld(t, s, llmtest.Answer("Hi"))
	result, err := w.generate()
	require.NoError(t, err)
	require.Equal(t, reducer.Completed, result.Outcome)
	require.Equal(t, 2, w.server.queries)
}

func TestStopDuringTheDebounceSendsNoRequest(t *testing.T) {
	s := newSession(debounce(60_000, 60_000))
	s.TriggerAt = time.Now()
	w := newWorld(t, s)
	w.connect()
	stopped := make(chan error, 1)
	w.server.session = func(int) (reducer.Session, error) {
		go func() {
			stopped <- w.stream.Stop(t.Context(), "demo", stream.Stop{RequestID: "demo:r0001", Reason: event.ReasonCancelled})
		}()
		return s, nil
	}
	result, err := w.generate()
	require.NoError(t, err)
	require.NoError(t, <-stopped)
	require.Equal(t, activities.GenerateResult{
		Attempted: activities.Attempted{Attempt: 1}, Outcome: reducer.Interrupted, Reason: event.ReasonCancelled,
	}, result)
	require.Empty(t, w.server.started)
}

func TestStoppedAttemptKeepsItsText(t *testing.T) {
	for name, stop := range map[string]stream.Stop{
		"cancelled":       {RequestID: "demo:r0001", Reason: event.ReasonCancelled},
		"for newer input": {RequestID: "demo:r0001", Reason: event.ReasonNewUserInput, Through: "demo:0003"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newSession(), llmtest.Answer("One", " two").HoldAfter(1, llmtest.NewGate()))
			sub := w.connect()
			stopped := make(chan error, 1)
			go func() {
				awaitDelta(t, sub, "One")
				stopped <- w.stream.Stop(t.Context(), "demo", stop)
			}()
			result, err := w.generate()
			require.NoError(t, err)
			require.NoError(t, <-stopped)
			require.Equal(t, activities.GenerateResult{
				Attempted: sent, Outcome: reducer.Interrupted, Reason: stop.Reason, Text: "One",
				Usage: event.Usage{InputTokens: 8, OutputTokens: 1, Estimated: true},
			}, result)
			require.NoError(t, w.model.Aborted(t.Context(), 1))
		})
	}
}

func TestReasoningIsStreamedAndKept(t *testing.T) {
	w := newWorld(t, newSession(), llmtest.Answer("Hel", "lo").Thinking("Hm, ", "yes"))
	sub := w.connect()
	result, err := w.generate()
	require.NoError(t, err)
	require.Equal(t, activities.GenerateResult{
		Attempted: sent, Outcome: reducer.Completed, Text: "Hello", Reasoning: "Hm, yes", Usage: event.Usage{InputTokens: 7, OutputTokens: 2}, FinishReason: "stop",
	}, result)
	require.Equal(t, []string{"-Hm, ", "-yes", "Hel", "lo"}, deltas(t, sub, 4))
}

// deltas returns the next n deltas, those of reasoning with a dash before the text.
func deltas(t *testing.T, sub *stream.Subscription, n int) (texts []string) {
	waited := time.After(10 * time.Second)
	for len(texts) < n {
		select {
		case m := <-sub.Messages():
			d, ok := streamtest.Delta(sub, m)
			switch {
			case !ok:
			case d.Reasoning != "":
				texts = append(texts, "-"+d.Reasoning)
			default:
				texts = append(texts, d.Delta)
			}
		case <-waited:
			require.FailNow(t, "no more deltas", texts)
		}
	}
	return texts
}

func TestAnAttemptThatStopsWhileReasoningKeepsIt(t *testing.T) {
	w := newWorld(t, newSession(), llmtest.Answer("One").Thinking("Hm").HoldAfter(1, llmtest.NewGate()))
	sub := w.connect()
	stopped := make(chan error, 1)
	go func() {
		deltas(t, sub, 1)
		stopped <- w.stream.Stop(t.Context(), "demo", stream.Stop{RequestID: "demo:r0001", Reason: event.ReasonCancelled})
	}()
	result, err := w.generate()
	require.NoError(t, err)
	require.NoError(t, <-stopped)
	require.Equal(t, activities.GenerateResult{
		Attempted: sent, Outcome: reducer.Interrupted, Reason: event.ReasonCancelled, Reasoning: "Hm",
		Usage: event.Usage{InputTokens: 8, OutputTokens: 1, ReasoningTokens: 1, Estimated: true},
	}, result)
}

func TestTheSettingLimitsTheReasoningThatIsKept(t *testing.T) {
	long := strings.Repeat("é", event.MaxReasoningBytes)
	for name, test := range map[string]struct {
		setting event.Reasoning
		length  int
	}{
		"the default": {"", 16 << 10}, "a summary": {event.ReasoningSummary, 16 << 10},
		"all": {event.ReasoningFull, event.MaxReasoningBytes}, "nothing": {event.ReasoningOff, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession()
			s.Reduced.Config.Request.Reasoning = test.setting
			w := newWorld(t, s, llmtest.Answer("Hi").Thinking(long))
			sub := w.connect()
			result, err := w.generate()
			require.NoError(t, err)
			require.Equal(t, "Hi", result.Text)
			require.Equal(t, "stop", result.FinishReason)
			require.LessOrEqual(t, len(result.Reasoning), test.length)
			require.Greater(t, len(result.Reasoning), test.length-4)
			require.NotContains(t, result.Reasoning, "\uFFFD")
			require.Equal(t, []string{"Hi"}, deltas(t, sub, 1), "more than an event can have is not streamed")
		})
	}
}

func TestTheSettingDecidesWhetherReasoningIsStreamed(t *testing.T) {
	for setting, want := range map[event.Reasoning][]string{
		"": {"-Hm", "Hi"}, event.ReasoningSummary: {"-Hm", "Hi"}, event.ReasoningFull: {"-Hm", "Hi"}, event.ReasoningOff: {"Hi"},
	} {
		t.Run(string(setting), func(t *testing.T) {
			s := newSession()
			s.Reduced.Config.Request.Reasoning = setting
			w := newWorld(t, s, llmtest.Answer("Hi").Thinking("Hm"))
			sub := w.connect()
			_, err := w.generate()
			require.NoError(t, err)
			require.Equal(t, want, deltas(t, sub, len(want)))
		})
	}
}

func TestAnAnswerWithReasoningAndStateFitsIntoAnEvent(t *testing.T) {
	details := `[{"type":"reasoning.encrypted","data":"` + strings.Repeat("A", event.MaxProviderStateBytes-1000) + `"}]`
	for name, text := range map[string]string{
		"short": "Hi", "long": strings.Repeat("x", event.MaxAnswerBytes-1), "of escapes": strings.Repeat("\x01", 240_000),
	} {
		t.Run(name, func(t *testing.T) {
			delta, err := json.Marshal(map[string]any{
				"content": text, "reasoning": strings.Repeat("\x02", event.MaxReasoningBytes), "reasoning_details": json.RawMessage(details),
			})
			require.NoError(t, err)
			s := newSession()
			s.Reduced.Config.Request.Reasoning = event.ReasoningFull
			w := newWorld(t, s, llmtest.Raw("text/event-stream", llmtest.Chunk(string(delta), "stop"), llmtest.Done))
			w.useProvider("openrouter")
			result, err := w.generate()
			require.NoError(t, err)
			require.Equal(t, text, result.Text)
			data, err := event.New(event.AssistantMessage{
				Content: result.Text, Reasoning: result.Reasoning, ProviderState: result.ProviderState,
			}).MarshalJSON()
			require.NoError(t, err)
			require.LessOrEqual(t, len(data), wire.MaxEventBytes)
			if name != "of escapes" {
				require.NotNil(t, result.ProviderState)
			}
		})
	}
}

func TestInputThatTheModelWasShownDoesNotStopTheAttempt(t *testing.T) {
	gate := llmtest.NewGate()
	w := newWorld(t, newSession(), llmtest.Answer("One", " two").HoldAfter(1, gate))
	sub := w.connect()
	stopped := make(chan error, 1)
	go func() {
		awaitDelta(t, sub, "One")
		stopped <- w.stream.Stop(t.Context(), "demo", stream.Stop{
			RequestID: "demo:r0001", Reason: event.ReasonNewUserInput, Through: "demo:0002",
		})
		gate.Open()
	}()
	result, err := w.generate()
	require.NoError(t, err)
	require.NoError(t, <-stopped, "it is acknowledged")
	require.Equal(t, reducer.Completed, result.Outcome)
	require.Equal(t, "One two", result.Text)
}

func TestObsoleteRequestIsNotSent(t *testing.T) {
	s := newSession()
	s.Request = nil
	w := newWorld(t, s)
	result, err := w.generate()
	require.NoError(t, err)
	require.Equal(t, reducer.Interrupted, result.Outcome)
	require.False(t, result.Sent)
}

func TestStopInTheSessionNeedsNoStopMessage(t *testing.T) {
	s := newSession()
	request := *s.Request
	request.Stop = event.ReasonCancelled
	s.Request = &request
	w := newWorld(t, s)
	result, err := w.generate()
	require.NoError(t, err)
	require.Equal(t, event.ReasonCancelled, result.Reason)
	require.Equal(t, reducer.Interrupted, result.Outcome)
}

func TestShutdownHandsTheRequestBack(t *testing.T) {
	w := newWorld(t, newSession(), llmtest.Answer("One", " two").HoldAfter(1, llmtest.NewGate()))
	w.handBack = make(chan struct{})
	sub := w.connect()
	go func() {
		awaitDelta(t, sub, "One")
		close(w.handBack)
	}()
	result, err := w.generate()
	require.NoError(t, err)
	require.Equal(t, activities.GenerateResult{
		Attempted: sent, Outcome: reducer.HandedBack, Usage: event.Usage{InputTokens: 8, OutputTokens: 1, Estimated: true},
	}, result)
}

func TestNoRequestIsSentDuringShutdown(t *testing.T) {
	w := newWorld(t, newSession())
	w.handBack = make(chan struct{})
	close(w.handBack)
	w.reset(nil)
	result, err := w.generate()
	require.NoError(t, err)
	require.Equal(t, activities.GenerateResult{Attempted: activities.Attempted{Attempt: 1}, Outcome: reducer.HandedBack}, result)
	require.Empty(t, w.server.started, "an attempt that is not sent is not announced")
}

func TestSlowAnswerIsAnnounced(t *testing.T) {
	gate := llmtest.NewGate()
	w := newWorld(t, newSession(), llmtest.Answer("One", " two").HoldAfter(1, gate))
	w.connect()
	w.server.onSignal = gate.Open
	result, err := w.generate()
	require.NoError(t, err)
	require.Equal(t, "One two", result.Text)
	require.Equal(t, []wire.RequestStarted{{
		RequestID: "demo:r0001", Attempt: 1, Through: sent.Through, ProviderID: sent.ProviderID, Model: sent.Model,
	}}, w.server.started)
}

func TestFailedAnnouncementDoesNotDelayTheAnswer(t *testing.T) {
	w := newWorld(t, newSession(), llmtest.Answer("Hi"))
	w.server.signalErr = errors.New("away")
	result, err := w.generate()
	require.NoError(t, err)
	require.Equal(t, "Hi", result.Text)
}

func TestStopReportsAMissingAcknowledgement(t *testing.T) {
	for name, connected := range map[string]bool{"without NATS": false, "without an attempt": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newSession())
			if connected {
				w.connect()
			}
			value, err := w.env.ExecuteActivity(acts.Stop, activities.StopInput{ContextName: "demo"})
			require.NoError(t, err)
			acknowledged := true
			require.NoError(t, value.Get(&acknowledged))
			require.False(t, acknowledged)
		})
	}
}
