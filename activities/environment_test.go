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
	"github.com/seed-9ed7edd4/chronicle/internal/stream"
	"github.com/seed-9ed7edd4/chronicle/internal/stream/streamtest"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/baseurl"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// runID is the run in which Temporal's test environment runs activities.
const runID = "default-test-run-id"

// server fakes a Temporal server with one workflow, whose session is returned by session. It panics on other
// requests.
type server struct {
	client.Client
	mu      sync.Mutex
	session func(query int) (reducer.Session, error)
	queries int
	asked   []any // arguments of the newest query
	// beats are the heartbeats, beat is called for each of them, and beatErr is their result.
	beats   []activities.Heartbeat
	beat    func(activities.Heartbeat)
	beatErr error
}

func (s *server) QueryWorkflow(_ context.Context, _, run, query string, args ...any) (converter.EncodedValue, error) {
	if query != wire.QuerySnapshot || run != runID {
		panic(query + " " + run)
	}
	s.mu.Lock()
	s.queries++
	n := s.queries
	s.asked = args
	s.mu.Unlock()
	session, err := s.session(n)
	if err != nil {
		return nil, err
	}
	payloads, err := converter.GetDefaultDataConverter().ToPayloads(session)
	return client.NewValue(payloads), err
}

// RecordActivityHeartbeat runs on the goroutine of the heartbeats.
func (s *server) RecordActivityHeartbeat(_ context.Context, _ []byte, details ...any) error {
	beat := details[0].(activities.Heartbeat)
	s.mu.Lock()
	s.beats = append(s.beats, beat)
	err := s.beatErr
	s.mu.Unlock()
	if s.beat != nil {
		s.beat(beat)
	}
	return err
}

func (s *server) WorkflowService() workflowservice.WorkflowServiceClient { return noHistory{} }

// noHistory fails, so that the log is not an alternative to the query.
type noHistory struct {
	workflowservice.WorkflowServiceClient
}

func (noHistory) GetWorkflowExecutionHistory(context.Context, *workflowservice.GetWorkflowExecutionHistoryRequest, ...grpc.CallOption) (*workflowservice.GetWorkflowExecutionHistoryResponse, error) {
	return nil, serviceerror.NewPermissionDenied("no history", "")
}

// newSession returns a session of context demo with an attempt to answer "Hello", its second event. The quiet period
// has passed.
func newSession(settings ...event.Body) reducer.Session {
	at := time.Now().Add(-time.Minute)
	s, _ := reducer.Step(reducer.NewSession("demo"), reducer.Opened{At: at})
	var events []event.Event
	for _, body := range append([]event.Body{event.UserMessage{Content: "Hello"}}, settings...) {
		events = append(events, event.New(body))
	}
	s, _ = reducer.Step(s, reducer.Received{At: at, Events: events})
	return s
}

// environment is what an attempt meets: a Temporal server, a model server and NATS.
type environment struct {
	t      *testing.T
	env    *testsuite.TestActivityEnvironment
	server *server
	model  *llmtest.Server
	stream *stream.Conn
	in     activities.AttemptInput
	// providerID is that of the model server; "" for openai.
	providerID string
	// handBack is Options.HandBack.
	handBack chan struct{}
	hooks    []hook.Hook
	window   int                  // of the model; 0: not configured
	meters   metric.MeterProvider // nil: none
}

func newEnvironment(t *testing.T, session reducer.Session, steps ...llmtest.Step) *environment {
	t.Helper()
	w := &environment{t: t, model: llmtest.Start(t, steps...)}
	w.server = &server{session: func(int) (reducer.Session, error) { return session, nil }}
	w.in = inputOf(session)
	w.reset(nil)
	return w
}

// inputOf returns the input of the attempt of a session.
func inputOf(s reducer.Session) activities.AttemptInput {
	return activities.AttemptInput{
		ContextName: s.ContextName, MaxAttempts: 4, StartAttempt: reducer.StartAttempt{
			RequestID: s.Request.ID, Attempt: s.Request.Attempt,
			Through: s.LastEventID(), ThroughAt: s.LastEventAt, TimeoutMs: s.Reduced.Config.TimeoutMs,
			Steps: s.Request.Steps, Limit: s.Request.Limit, Compaction: s.Request.Compaction,
		},
	}
}

// useSession replaces the session and its attempt.
func (w *environment) useSession(s reducer.Session) {
	w.server.session = func(int) (reducer.Session, error) { return s, nil }
	w.in = inputOf(s)
}

// useProvider gives the model server the id of a preset.
func (w *environment) useProvider(id string) {
	w.providerID = id
	w.reset(nil)
}

// reset creates a new environment.
func (w *environment) reset(sessions *activities.Sessions) {
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	w.env = suite.NewTestActivityEnvironment()
	w.env.RegisterActivity(activities.New(activities.Options{
		Temporal: w.server, Sessions: sessions, Meters: w.meters, Stream: w.stream, HandBack: w.handBack, Hooks: w.hooks,
		Models: backend.Models(llm.New(llm.Options{
			Getenv:        func(string) string { return "" },
			AllowLoopback: true,
			Defaults:      llm.Defaults{ProviderID: cmp.Or(w.providerID, "openai"), BaseURL: w.model.URL, Model: "scripted"},
			Providers:     w.providers(),
		}), nil),
	}))
}

func (w *environment) providers() []llm.Provider {
	if w.window == 0 {
		return nil
	}
	return []llm.Provider{{ID: cmp.Or(w.providerID, "openai"), BaseURL: baseurl.MustParse(w.model.URL), ContextWindow: w.window}}
}

// connectNATS starts NATS.
func connectNATS(t *testing.T) *stream.Conn {
	t.Helper()
	nats, err := natsserver.Start(natsserver.Options{})
	require.NoError(t, err)
	t.Cleanup(nats.Shutdown)
	conn, err := stream.Connect(nats.URL(), stream.Options{})
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	return conn
}

func subscribe(t *testing.T, conn *stream.Conn) *stream.Subscription {
	t.Helper()
	sub, err := conn.Subscribe("demo")
	require.NoError(t, err)
	t.Cleanup(sub.Close)
	return sub
}

// connect starts NATS and returns a subscription to the deltas.
func (w *environment) connect() *stream.Subscription {
	w.t.Helper()
	w.stream = connectNATS(w.t)
	w.reset(nil)
	return subscribe(w.t, w.stream)
}

var acts *activities.Activities

func (w *environment) generate() (reducer.AttemptEnded, error) {
	var result reducer.AttemptEnded
	value, err := w.env.ExecuteActivity(acts.Generate, w.in)
	if err == nil {
		err = value.Get(&result)
	}
	result.DurationMs = 0
	return result, err
}

// awaitDelta waits for a delta with a text.
func awaitDelta(t *testing.T, sub *stream.Subscription, text string) {
	waited := time.After(time.Minute)
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

// generated requires a result.
func (w *environment) generated() reducer.AttemptEnded {
	w.t.Helper()
	result, err := w.generate()
	require.NoError(w.t, err)
	return result
}

// failure requires a failed attempt.
func (w *environment) failure() reducer.AttemptEnded {
	w.t.Helper()
	result := w.generated()
	require.Equal(w.t, reducer.Failed, result.Outcome)
	return result
}

// unsent requires the error of an attempt that Temporal repeats.
func unsent(t *testing.T, err error) *temporal.ApplicationError {
	t.Helper()
	var failed *temporal.ApplicationError
	require.ErrorAs(t, err, &failed)
	require.False(t, failed.NonRetryable())
	return failed
}

// stopFor returns a stop message to the first attempt.
func stopFor(reason event.Reason) stream.Stop {
	return stream.Stop{RequestID: "demo:r0001", Attempt: 1, Reason: reason}
}
