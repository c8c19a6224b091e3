package activities_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/stream"
	"github.com/seed-9ed7edd4/chronicle/internal/stream/streamtest"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

func TestAnswerIsTheResult(t *testing.T) {
	w := newEnvironment(t, newSession(), llmtest.Answer("Hel", "lo"))
	require.Equal(t, reducer.AttemptEnded{
		Outcome: reducer.Completed, ProviderID: "openai", Model: "scripted", Text: "Hello", Usage: event.Usage{InputTokens: 7, OutputTokens: 2}, FinishReason: "stop",
	}, w.generated())
	require.Equal(t, "Hello", w.model.Requests()[0].LastUser())
}

// newStep returns a session with an attempt after a tool call, under the delivery policy queue.
func newStep() reducer.Session {
	s := newSession(event.SetDeliveryPolicy{Policy: event.PolicyQueue})
	s, _ = reducer.Step(s, reducer.AttemptEnded{
		At: time.Now(), RequestID: s.Request.ID, Attempt: 1, Outcome: reducer.Called, Calls: []reducer.CalledTool{{ID: "call_1", Name: "weather"}},
	})
	s, _ = reducer.Step(s, reducer.ToolEnded{At: time.Now(), RequestID: s.Request.ID, CallID: "call_1", Outcome: reducer.CallReturned})
	return s
}

func TestEveryAttemptOfAStepBeginsWithAResetDelta(t *testing.T) {
	again, _ := reducer.Step(newStep(), reducer.AttemptEnded{At: time.Now(), RequestID: "demo:r0001", Attempt: 2, Outcome: reducer.HandedBack})
	for name, s := range map[string]reducer.Session{"the first one": newStep(), "after a hand-back": again} {
		t.Run(name, func(t *testing.T) {
			w := newEnvironment(t, s, llmtest.Answer("Sunny"))
			sub := w.connect()
			w.generated()
			var deltas []stream.Delta
			for len(deltas) < 2 {
				select {
				case m := <-sub.Messages():
					if d, ok := streamtest.Delta(sub, m); ok {
						deltas = append(deltas, d)
					}
				case <-time.After(time.Minute):
					t.Fatal("a delta is missing")
				}
			}
			want := event.TextDelta{RequestID: "demo:r0001", Attempt: s.Request.Attempt, Reset: true}
			require.Equal(t, stream.Delta{TextDelta: want, After: s.LastEventID()}, deltas[0])
			want.Index, want.Delta, want.Reset, want.ThroughEventID = 1, "Sunny", false, s.Request.Limit
			require.Equal(t, stream.Delta{TextDelta: want, After: s.LastEventID()}, deltas[1])
		})
	}
}

func TestAnAttemptIsSentWhenItIsDue(t *testing.T) {
	w := newEnvironment(t, newSession(), llmtest.Answer("Hi"))
	w.in.SendAt = time.Now().Add(300 * time.Millisecond)
	w.generated()
	require.False(t, time.Now().Before(w.in.SendAt))
}

func TestTheJitterSpreadsAttempts(t *testing.T) {
	in := activities.AttemptInput{StartAttempt: reducer.StartAttempt{SendAt: time.Now(), JitterMs: 1000}}
	times := map[time.Time]bool{}
	for range 100 {
		due := activities.Due(in)
		require.False(t, due.After(in.SendAt))
		require.False(t, due.Before(in.SendAt.Add(-time.Second)))
		times[due] = true
	}
	require.Greater(t, len(times), 50)
}

func TestAnAttemptThatIsStoppedBeforeItWasSentIsWithdrawn(t *testing.T) {
	for name, stop := range map[string]stream.Stop{
		"by a person":                   stopFor(event.ReasonCancelled),
		"for newer input":               stopFor(event.ReasonNewUserInput),
		"for newer input, while unsent": {RequestID: "demo:r0001", Attempt: 1, Reason: event.ReasonNewUserInput, Unsent: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnvironment(t, newSession())
			w.connect()
			w.in.SendAt = time.Now().Add(time.Hour)
			session := w.server.session
			stopped := make(chan error, 1)
			w.server.session = func(n int) (reducer.Session, error) {
				go func() { stopped <- w.stream.Stop(t.Context(), "demo", stop) }()
				return session(n)
			}
			result := w.generated()
			require.NoError(t, <-stopped)
			require.Equal(t, reducer.AttemptEnded{Outcome: reducer.Withdrawn, Reason: stop.Reason}, result)
		})
	}
}

func TestStoppedAttemptKeepsItsText(t *testing.T) {
	for _, reason := range []event.Reason{event.ReasonCancelled, event.ReasonNewUserInput} {
		t.Run(string(reason), func(t *testing.T) {
			w := newEnvironment(t, newSession(), llmtest.Answer("One", " two").HoldAfter(1, llmtest.NewGate()))
			sub := w.connect()
			stopped := make(chan error, 1)
			go func() {
				awaitDelta(t, sub, "One")
				stopped <- w.stream.Stop(t.Context(), "demo", stopFor(reason))
			}()
			result := w.generated()
			require.NoError(t, <-stopped)
			require.Equal(t, reducer.AttemptEnded{
				Outcome: reducer.Interrupted, ProviderID: "openai", Model: "scripted", Reason: reason, Text: "One",
				Usage: event.Usage{InputTokens: 8, OutputTokens: 1, Estimated: true},
			}, result)
			require.NoError(t, w.model.Aborted(t.Context(), 1))
		})
	}
}

func TestOtherStopMessagesDoNotStopAnAttempt(t *testing.T) {
	for name, test := range map[string]struct {
		stop           stream.Stop
		isAcknowledged bool
	}{
		"of unsent attempts": {stream.Stop{RequestID: "demo:r0001", Attempt: 1, Reason: event.ReasonNewUserInput, Unsent: true}, true},
		"of another attempt": {stream.Stop{RequestID: "demo:r0001", Attempt: 2, Reason: event.ReasonCancelled}, false},
		"of another request": {stream.Stop{RequestID: "demo:r0002", Attempt: 1, Reason: event.ReasonCancelled}, false},
	} {
		t.Run(name, func(t *testing.T) {
			gate := llmtest.NewGate()
			w := newEnvironment(t, newSession(), llmtest.Answer("One", " two").HoldAfter(1, gate))
			sub := w.connect()
			stopped := make(chan error, 1)
			go func() {
				awaitDelta(t, sub, "One")
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if !test.isAcknowledged {
					time.AfterFunc(20*time.Millisecond, cancel)
				}
				stopped <- w.stream.Stop(ctx, "demo", test.stop)
				gate.Open()
			}()
			result := w.generated()
			require.Equal(t, test.isAcknowledged, <-stopped == nil)
			require.Equal(t, reducer.Completed, result.Outcome)
			require.Equal(t, "One two", result.Text)
		})
	}
}

func TestReasoningIsStreamedAndKept(t *testing.T) {
	w := newEnvironment(t, newSession(), llmtest.Answer("Hel", "lo").Thinking("Hm, ", "yes"))
	sub := w.connect()
	result, err := w.generate()
	require.NoError(t, err)
	require.Equal(t, reducer.AttemptEnded{
		ProviderID: "openai", Model: "scripted", Outcome: reducer.Completed, Text: "Hello", Reasoning: "Hm, yes", Usage: event.Usage{InputTokens: 7, OutputTokens: 2}, FinishReason: "stop",
	}, result)
	require.Equal(t, []string{"-Hm, ", "-yes", "Hel", "lo"}, deltas(t, sub, 4))
}

// deltas returns the next n deltas, those of reasoning with a dash before the text.
func deltas(t *testing.T, sub *stream.Subscription, n int) (texts []string) {
	waited := time.After(time.Minute)
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
	w := newEnvironment(t, newSession(), llmtest.Answer("One").Thinking("Hm").HoldAfter(1, llmtest.NewGate()))
	sub := w.connect()
	stopped := make(chan error, 1)
	go func() {
		deltas(t, sub, 1)
		stopped <- w.stream.Stop(t.Context(), "demo", stopFor(event.ReasonCancelled))
	}()
	result, err := w.generate()
	require.NoError(t, err)
	require.NoError(t, <-stopped)
	require.Equal(t, reducer.AttemptEnded{
		ProviderID: "openai", Model: "scripted", Outcome: reducer.Interrupted, Reason: event.ReasonCancelled, Reasoning: "Hm",
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
			w := newEnvironment(t, s, llmtest.Answer("Hi").Thinking(long))
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
			w := newEnvironment(t, s, llmtest.Answer("Hi").Thinking("Hm"))
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
			w := newEnvironment(t, s, llmtest.Raw("text/event-stream", llmtest.Chunk(string(delta), "stop"), llmtest.Done))
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

func TestShutdownHandsTheRequestBack(t *testing.T) {
	w := newEnvironment(t, newSession(), llmtest.Answer("One", " two").HoldAfter(1, llmtest.NewGate()))
	w.handBack = make(chan struct{})
	sub := w.connect()
	go func() {
		awaitDelta(t, sub, "One")
		close(w.handBack)
	}()
	require.Equal(t, reducer.AttemptEnded{
		Outcome: reducer.HandedBack, ProviderID: "openai", Model: "scripted", Usage: event.Usage{InputTokens: 8, OutputTokens: 1, Estimated: true},
	}, w.generated())
}

func TestNoRequestIsSentDuringShutdown(t *testing.T) {
	for maxAttempts := 1; maxAttempts <= 2; maxAttempts++ {
		w := newEnvironment(t, newSession())
		w.handBack = make(chan struct{})
		close(w.handBack)
		w.in.SendAt, w.in.MaxAttempts = time.Now().Add(time.Hour), maxAttempts
		w.reset(nil)
		result, err := w.generate()
		if maxAttempts == 1 {
			require.NoError(t, err)
			require.Equal(t, reducer.AttemptEnded{Outcome: reducer.HandedBack}, result)
			continue
		}
		failed := unsent(t, err)
		require.Equal(t, "the worker is shutting down", failed.Message())
		require.Equal(t, time.Millisecond, failed.NextRetryDelay(), "another worker takes over at once")
	}
}

func TestAPanicIsAResultOnceTheAttemptWasSent(t *testing.T) {
	for name, model := range map[string]*caller{"sent": {panics: true}, "unsent": nil} {
		t.Run(name, func(t *testing.T) {
			options := activities.Options{Models: panicking{}}
			if model != nil {
				options.Models = model
			}
			result, err := answeredWith(t, options)
			if model == nil {
				require.Equal(t, "generate: panic: no model", unsent(t, err).Message())
				return
			}
			require.NoError(t, err)
			require.Equal(t, reducer.Failed, result.Outcome)
			require.Equal(t, event.FailureUnavailable, result.Kind)
			require.True(t, result.Retryable)
			require.Equal(t, "generate: panic: a bug", result.Error)
		})
	}
}

type panicking struct{}

func (panicking) Resolve(reducer.ProviderConfig) (activities.Model, error) { panic("no model") }

func TestStopReportsAMissingAcknowledgement(t *testing.T) {
	for name, connected := range map[string]bool{"without NATS": false, "without an attempt": true} {
		t.Run(name, func(t *testing.T) {
			w := newEnvironment(t, newSession())
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
