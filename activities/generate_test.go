package activities_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"google.golang.org/grpc"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/hook"
	"github.com/seed-9ed7edd4/chronicle/internal/backend"
	"github.com/seed-9ed7edd4/chronicle/internal/natsserver"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/baseurl"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/stream"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// runID is the run in which Temporal's test environment runs activities.
const runID = "default-test-run-id"

// server fakes a Temporal server with one workflow, whose session is returned by session.
type server struct {
	client.Client
	mu      sync.Mutex
	session func(query int) (reducer.Session, error)
	queries int
	// started contains the signals. signalErr is their result; onSignal, unless nil, is called for each.
	started   []wire.RequestStarted
	signalErr error
	onSignal  func()
}

func (s *server) QueryWorkflow(_ context.Context, _, run, query string, _ ...any) (converter.EncodedValue, error) {
	if query != wire.QuerySnapshot && query != wire.QueryStopCheck || run != runID {
		panic(query + " " + run)
	}
	s.mu.Lock()
	s.queries++
	n := s.queries
	s.mu.Unlock()
	session, err := s.session(n)
	if err != nil {
		return nil, err
	}
	var answer any = session
	if query == wire.QueryStopCheck {
		answer = wire.StopCheckOf(session)
	}
	payloads, err := converter.GetDefaultDataConverter().ToPayloads(answer)
	return client.NewValue(payloads), err
}

func (s *server) WorkflowService() workflowservice.WorkflowServiceClient { return noHistory{} }

// noHistory fails, so that the log is not an alternative to the query.
type noHistory struct {
	workflowservice.WorkflowServiceClient
}

func (noHistory) GetWorkflowExecutionHistory(context.Context, *workflowservice.GetWorkflowExecutionHistoryRequest, ...grpc.CallOption) (*workflowservice.GetWorkflowExecutionHistoryResponse, error) {
	return nil, serviceerror.NewPermissionDenied("no history", "")
}

func (s *server) SignalWorkflow(_ context.Context, _, run, name string, input any) error {
	if name != wire.SignalRequestStarted || run != runID {
		panic(name + " " + run)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started = append(s.started, input.(wire.RequestStarted))
	if s.onSignal != nil {
		s.onSignal()
	}
	return s.signalErr
}

// newSession returns a session of context demo with a request to answer "Hello", its second event.
func newSession(settings ...event.Body) reducer.Session {
	s, _ := reducer.Step(reducer.NewSession("demo"), reducer.Opened{At: time.Now()})
	var events []event.Event
	for _, body := range append([]event.Body{event.UserMessage{Content: "Hello"}}, settings...) {
		events = append(events, event.New(body))
	}
	s, _ = reducer.Step(s, reducer.Received{At: time.Now(), Events: events})
	// The quiet period has passed.
	s.TriggerAt = s.TriggerAt.Add(-time.Minute)
	return s
}

func withInput(s reducer.Session, text string) reducer.Session {
	s, _ = reducer.Step(s, reducer.Received{At: time.Now().Add(-time.Minute), Events: []event.Event{event.New(event.UserMessage{Content: text})}})
	return s
}

func debounce(ms, maxWaitMs int64) event.Body {
	return event.SetDeliveryPolicy{QuietPeriodMs: &ms, MaxWaitMs: &maxWaitMs}
}

// world is the environment of an activity.
type world struct {
	t      *testing.T
	env    *testsuite.TestActivityEnvironment
	server *server
	model  *llmtest.Server
	stream *stream.Conn
	in     activities.GenerateInput
	// providerID is that of the model server; "" for openai.
	providerID string
	// handBack is Options.HandBack.
	handBack chan struct{}
	hooks    []hook.Hook
	window   int // of the model; 0: not configured
}

func newWorld(t *testing.T, session reducer.Session, steps ...llmtest.Step) *world {
	t.Helper()
	w := &world{t: t, model: llmtest.Start(t, steps...)}
	w.server = &server{session: func(int) (reducer.Session, error) { return session, nil }}
	w.in = activities.GenerateInput{
		ContextName: "demo", RequestID: "demo:r0001", FirstAttempt: 1, MaxAttempts: 4, Through: session.LastEventID(), ThroughAt: session.LastEventAt,
		TimeoutMs: session.Reduced.Config.TimeoutMs,
	}
	w.reset(nil)
	return w
}

// useProvider gives the model server the id of a preset.
func (w *world) useProvider(id string) {
	w.providerID = id
	w.reset(nil)
}

// reset creates a new environment with a cache.
func (w *world) reset(cache *activities.SessionCache) {
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	w.env = suite.NewTestActivityEnvironment()
	w.env.RegisterActivity(activities.New(activities.Options{
		Temporal: w.server, Cache: cache, Stream: backend.Stream(w.stream), HandBack: w.handBack, Hooks: w.hooks,
		Models: backend.Models(llm.New(llm.Options{
			Getenv:        func(string) string { return "" },
			AllowLoopback: true,
			Defaults:      llm.Defaults{ProviderID: cmp.Or(w.providerID, "openai"), BaseURL: w.model.URL, Model: "scripted"},
			Providers:     w.providers(),
		})),
	}))
}

func (w *world) providers() []llm.Provider {
	if w.window == 0 {
		return nil
	}
	return []llm.Provider{{ID: cmp.Or(w.providerID, "openai"), BaseURL: baseurl.MustParse(w.model.URL), ContextWindow: w.window}}
}

// connect starts NATS and returns a subscription to the deltas.
func (w *world) connect() *stream.Subscription {
	w.t.Helper()
	nats, err := natsserver.Start(natsserver.Options{})
	require.NoError(w.t, err)
	w.t.Cleanup(nats.Shutdown)
	w.stream, err = stream.Connect(nats.URL(), stream.Options{})
	require.NoError(w.t, err)
	w.t.Cleanup(w.stream.Close)
	sub, err := w.stream.Subscribe("demo")
	require.NoError(w.t, err)
	w.t.Cleanup(sub.Close)
	w.reset(nil)
	return sub
}

var acts *activities.Activities

func (w *world) generate() (activities.GenerateResult, error) {
	var result activities.GenerateResult
	value, err := w.env.ExecuteActivity(acts.Generate, w.in)
	if err == nil {
		err = value.Get(&result)
	}
	result.DurationMs = 0
	return result, err
}

// awaitDelta waits for a delta with a text.
func awaitDelta(t *testing.T, sub *stream.Subscription, text string) {
	waited := time.After(10 * time.Second)
	for {
		select {
		case m := <-sub.Messages():
			if d, ok := sub.Delta(m); ok {
				if d.Delta != text {
					t.Errorf("received %q, want %q", d.Delta, text)
				}
				return
			}
		case <-waited:
			t.Errorf("no delta %q", text)
			return
		}
	}
}

var sent = activities.Attempted{Attempt: 1, Sent: true, Through: "demo:0002", ProviderID: "openai", Model: "scripted"}

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

func TestEveryAttemptOfAStepBeginsWithAReset(t *testing.T) {
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
					if d, ok := sub.Delta(m); ok {
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
		"here":                      {session, 0},
		"behind":                    {reducer.NewSession("demo"), 1},
		"ahead of the server":       {withInput(session, "lost"), 2},
		"of a task that was lost":   {lost, 2},
		"of an unknown time of day": {unknown, 2},
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
			d, ok := sub.Delta(m)
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

func TestAnAnswerWithReasoningAndStateFitsIntoAnEvent(t *testing.T) {
	details := `[{"type":"reasoning.encrypted","data":"` + strings.Repeat("A", event.MaxProviderStateBytes-1000) + `"}]`
	for name, text := range map[string]string{
		"short": "Hi", "long": strings.Repeat("x", activities.MaxAnswerBytes-1), "of escapes": strings.Repeat("\x01", 240_000),
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

// failure returns the error of an attempt, and the attempt in its details.
func failure(t *testing.T, err error) (*temporal.ApplicationError, activities.Attempted) {
	t.Helper()
	var application *temporal.ApplicationError
	require.ErrorAs(t, err, &application)
	var attempt activities.Attempted
	require.NoError(t, application.Details(&attempt))
	return application, attempt
}

func TestTimeoutOfTheLastAttemptKeepsItsText(t *testing.T) {
	w := newWorld(t, newSession(event.SetTimeout{TimeoutMs: 1000}), llmtest.Answer("One", " two").HoldAfter(1, llmtest.NewGate()))
	w.in.MaxAttempts = 1
	result, err := w.generate()
	require.NoError(t, err)
	require.Equal(t, reducer.Interrupted, result.Outcome)
	require.Equal(t, event.ReasonTimeout, result.Reason)
	require.Equal(t, "One", result.Text)
}

func TestTimeoutIsAFailureIfAnotherAttemptOrProviderRemains(t *testing.T) {
	spare := event.SetProviderConfig{ProviderID: "spare", Model: "m", BaseURL: "http://127.0.0.1:1/v1", AsFallback: true}
	for name, test := range map[string]struct {
		settings    []event.Body
		maxAttempts int
		step        llmtest.Step
	}{
		"another attempt": {nil, 2, llmtest.Answer("One", " two").HoldAfter(1, llmtest.NewGate())},
		"a fallback":      {[]event.Body{spare}, 1, llmtest.Answer("One", " two").HoldAfter(1, llmtest.NewGate())},
		"no text yet":     {nil, 1, llmtest.Stall()},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession(append(test.settings, event.SetTimeout{TimeoutMs: 200})...)
			w := newWorld(t, s, test.step)
			w.in.MaxAttempts = test.maxAttempts
			_, err := w.generate()
			failed, attempt := failure(t, err)
			require.Equal(t, "timeout", failed.Type())
			require.Equal(t, test.maxAttempts == 1, failed.NonRetryable())
			require.True(t, attempt.Sent)
		})
	}
}

func TestRetryDecisions(t *testing.T) {
	const none = time.Duration(0)
	silent := event.Usage{InputTokens: 8, Estimated: true}
	for name, test := range map[string]struct {
		step         llmtest.Step
		kind         string
		failure      event.FailureKind
		retryable    bool
		nonRetryable bool
		delay        time.Duration
		usage        event.Usage
	}{
		"a bad key":                      {llmtest.Error(401, "invalid_api_key", "no"), "unauthorized", event.FailureUnauthorized, false, true, none, event.Usage{}},
		"an overloaded server":           {llmtest.Error(503, "overloaded", "busy"), "server error", event.FailureUnavailable, true, false, none, event.Usage{}},
		"a rate limit with a delay":      {llmtest.Error(429, "rate_limit_exceeded", "slow").RetryAfter("7"), "rate limited", event.FailureRateLimited, true, false, 7 * time.Second, event.Usage{}},
		"a rate limit with a long delay": {llmtest.Error(429, "rate_limit_exceeded", "slow").RetryAfter("3600"), "rate limited", event.FailureRateLimited, true, true, time.Hour, event.Usage{}},
		"a broken connection":            {llmtest.Drop(), "connection failed", event.FailureUnavailable, true, false, none, event.Usage{}},
		"a truncated answer":             {llmtest.Answer("One", " two").CutAt(200), "answer cut off", event.FailureBadResponse, true, false, none, silent},
		"a rejected request":             {llmtest.Error(400, "invalid_request", "bad"), "bad request", event.FailureBadRequest, false, true, none, event.Usage{}},
		"a conversation beyond the context window": {
			llmtest.Error(400, "context_length_exceeded", "too long"), "context too long", event.FailureContextTooLong, false, true, none, event.Usage{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newSession(), test.step)
			w.in.FirstAttempt = 5
			_, err := w.generate()
			failed, attempt := failure(t, err)
			require.Equal(t, test.kind, failed.Type())
			require.Equal(t, test.nonRetryable, failed.NonRetryable())
			require.Equal(t, test.delay, failed.NextRetryDelay())
			require.Equal(t, test.delay == time.Hour, strings.HasSuffix(failed.Message(), "slow (the provider asks to wait 1h0m0s)"), failed.Message())
			want := sent
			want.Attempt = 5
			require.Equal(t, want, attempt)
			var details activities.Failure
			require.NoError(t, failed.Details(&details))
			details.DurationMs, details.Overflow = 0, nil
			require.Equal(t, activities.Failure{Attempted: want, Kind: test.failure, Retryable: test.retryable, Usage: test.usage}, details)

			started := wire.RequestStarted{RequestID: "demo:r0001", Attempt: 5, Through: "demo:0002", ProviderID: "openai", Model: "scripted"}
			last := w.server.started[len(w.server.started)-1]
			if last.Ended != nil {
				last.Ended.DurationMs = 0
				started.Ended = &wire.AttemptEnd{Kind: test.failure, Retryable: true, Error: failed.Message(), Usage: test.usage}
			}
			require.Equal(t, started, last, "the workflow does not see the error of an attempt that is retried")
			require.Equal(t, test.nonRetryable, last.Ended == nil, "the end of the last attempt is the result")
		})
	}
}

func TestAnAnnouncedAttemptThatIsRetriedReportsItsEnd(t *testing.T) {
	gate := llmtest.NewGate()
	w := newWorld(t, newSession(), llmtest.Answer("One", " two").HoldAfter(1, gate).Finish(""))
	w.connect()
	w.server.onSignal = gate.Open
	_, err := w.generate()
	failure(t, err)
	require.Len(t, w.server.started, 2)
	require.Nil(t, w.server.started[0].Ended)
	require.Equal(t, event.FailureBadResponse, w.server.started[1].Ended.Kind)
	require.Equal(t, event.Usage{InputTokens: 7, OutputTokens: 2}, w.server.started[1].Ended.Usage)
}

func TestHeartbeatsReportTheUsageSoFar(t *testing.T) {
	gate := llmtest.NewGate()
	w := newWorld(t, newSession(), llmtest.Answer("One", " two").HoldAfter(1, gate))
	var reported activities.LostAttempt
	w.env.SetOnActivityHeartbeatListener(func(_ *activity.Info, details converter.EncodedValues) {
		if err := details.Get(&reported); err != nil {
			t.Error(err)
		}
		gate.Open()
	})
	_, err := w.generate()
	require.NoError(t, err)
	require.Equal(t, activities.LostAttempt{Attempted: sent, Usage: event.Usage{InputTokens: 8, OutputTokens: 1, Estimated: true}}, reported)
}

func TestAnAttemptReportsTheOneThatItsWorkerLost(t *testing.T) {
	lost := activities.LostAttempt{Attempted: sent, Usage: event.Usage{InputTokens: 8, OutputTokens: 1, Estimated: true}}
	unsent, same := lost, lost
	unsent.Sent = false
	same.Attempt = 2
	for name, test := range map[string]struct {
		heartbeat any
		want      *activities.LostAttempt
	}{
		"the attempt before":            {lost, &lost},
		"an attempt that was not sent":  {unsent, nil},
		"the same attempt":              {same, nil},
		"a heartbeat of another format": {"hello", nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newSession(), llmtest.Answer("One"), llmtest.Error(400, "invalid_request", "bad"))
			w.in.FirstAttempt = 2
			w.env.SetHeartbeatDetails(test.heartbeat)
			result, err := w.generate()
			require.NoError(t, err)
			require.Equal(t, test.want, result.Lost)

			_, err = w.generate()
			failed, _ := failure(t, err)
			var details activities.Failure
			require.NoError(t, failed.Details(&details))
			require.Equal(t, test.want, details.Lost)
			announced := w.server.started[len(w.server.started)-1].Lost
			require.Equal(t, test.want == nil, announced == nil)
			if announced != nil {
				require.Equal(t, wire.LostAttempt{Attempt: 1, Through: "demo:0002", ProviderID: "openai", Model: "scripted", Usage: lost.Usage}, *announced)
			}
		})
	}
}

func TestJitterIsUpToHalfTheDelay(t *testing.T) {
	w := newWorld(t, newSession(event.SetRetryConfig{MaxRetries: 3, InitialDelayMs: 1000, Jitter: true}), llmtest.Error(503, "overloaded", "busy"))
	_, err := w.generate()
	failed, _ := failure(t, err)
	require.GreaterOrEqual(t, failed.NextRetryDelay(), 500*time.Millisecond)
	require.LessOrEqual(t, failed.NextRetryDelay(), time.Second)
}

func TestConfigurationErrorIsNotRetried(t *testing.T) {
	w := newWorld(t, newSession(event.SetProviderConfig{ProviderID: "nowhere", Model: "m"}))
	_, err := w.generate()
	failed, attempt := failure(t, err)
	require.True(t, failed.NonRetryable())
	require.Equal(t, "configuration", failed.Type())
	require.Contains(t, failed.Message(), "--providers")
	require.False(t, attempt.Sent)
	require.Equal(t, "nowhere", attempt.ProviderID)
}

func TestFallbackReceivesTheRequest(t *testing.T) {
	s := newSession()
	w := newWorld(t, s, llmtest.Answer("Here."))
	s = newSession(event.SetProviderConfig{ProviderID: "spare", Model: "other", BaseURL: w.model.URL, AsFallback: true})
	w.server.session = func(int) (reducer.Session, error) { return s, nil }
	w.in.Fallback = true
	result, err := w.generate()
	require.NoError(t, err)
	require.Equal(t, "spare", result.ProviderID)
	require.Equal(t, "other", w.model.Requests()[0].Model)
}

func TestFailedSessionQueryIsRetried(t *testing.T) {
	w := newWorld(t, newSession())
	w.server.session = func(int) (reducer.Session, error) {
		return reducer.Session{}, serviceerror.NewUnavailable("away, with key sk-live-0123456789")
	}
	_, err := w.generate()
	failed, attempt := failure(t, err)
	require.False(t, failed.NonRetryable())
	require.Equal(t, "query the session of context demo: away, with key [removed]\nread the log of context demo, run default-test-run-id: no history", failed.Message())
	require.Equal(t, activities.Attempted{Attempt: 1}, attempt)
}

// The timeout begins after the quiet period and the query.
func TestAFailedSessionQueryIsNoTimeout(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newSession())
	w.in.TimeoutMs = 1000
	w.server.session = func(int) (reducer.Session, error) {
		<-time.After(time.Second + 10*time.Millisecond) // the query takes longer than the timeout
		return reducer.Session{}, serviceerror.NewUnavailable("away")
	}
	_, err := w.generate()
	failed, _ := failure(t, err)
	require.Contains(t, failed.Message(), "query the session of context demo: away")
}

func TestLongAnswerIsTruncated(t *testing.T) {
	half := strings.Repeat("ü", activities.MaxAnswerBytes/4)
	for name, step := range map[string]llmtest.Step{
		"in many pieces":    llmtest.Answer(half, half, half, "never read").HoldAfter(3, llmtest.NewGate()),
		"in one piece":      llmtest.Answer("x" + half + half + half),
		"by its last piece": llmtest.Answer("x"+half, half),
	} {
		t.Run(name, func(t *testing.T) {
			result, err := newWorld(t, newSession(), step).generate()
			require.NoError(t, err)
			require.Equal(t, reducer.Completed, result.Outcome)
			require.Equal(t, "length", result.FinishReason)
			require.LessOrEqual(t, len(result.Text), activities.MaxAnswerBytes)
			require.Greater(t, len(result.Text), activities.MaxAnswerBytes-4)
			require.NotContains(t, result.Text, "\uFFFD")
		})
	}
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
