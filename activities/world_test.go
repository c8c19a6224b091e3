package activities_test

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
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
	"github.com/seed-9ed7edd4/chronicle/stream/streamtest"
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
	started    []wire.RequestStarted
	signalErr  error
	onSignal   func()
	heartbeats *heartbeats // nil: none are expected
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
	window   int                  // of the model; 0: not configured
	meters   metric.MeterProvider // nil: none
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
		Temporal: w.server, Cache: cache, Meters: w.meters, Stream: backend.Stream(w.stream), HandBack: w.handBack, Hooks: w.hooks,
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
			if d, ok := streamtest.Delta(sub, m); ok {
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

// failure returns the error of an attempt, and the attempt in its details.
func failure(t *testing.T, err error) (*temporal.ApplicationError, activities.Attempted) {
	t.Helper()
	var application *temporal.ApplicationError
	require.ErrorAs(t, err, &application)
	var attempt activities.Attempted
	require.NoError(t, application.Details(&attempt))
	return application, attempt
}
