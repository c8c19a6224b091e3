package activities_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/testsuite"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs/blobstest"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

func TestSessionsAreHandedOverByAttempt(t *testing.T) {
	session := newSession()
	id, at := session.LastEventID(), session.LastEventAt
	sessions := activities.NewSessions()
	drop := sessions.Put("run", "demo:r0001", 1, session)
	got, ok := sessions.Get("run", "demo:r0001", 1, id, at)
	require.True(t, ok)
	require.Equal(t, session, got)
	for name, get := range map[string]func() (reducer.Session, bool){
		"another run":     func() (reducer.Session, bool) { return sessions.Get("other", "demo:r0001", 1, id, at) },
		"another request": func() (reducer.Session, bool) { return sessions.Get("run", "demo:r0002", 1, id, at) },
		"another attempt": func() (reducer.Session, bool) { return sessions.Get("run", "demo:r0001", 2, id, at) },
		"another event":   func() (reducer.Session, bool) { return sessions.Get("run", "demo:r0001", 1, "demo:0009", at) },
		"another time":    func() (reducer.Session, bool) { return sessions.Get("run", "demo:r0001", 1, id, at.Add(1)) },
		"no sessions":     func() (reducer.Session, bool) { return (*activities.Sessions)(nil).Get("run", "demo:r0001", 1, id, at) },
	} {
		_, ok = get()
		require.False(t, ok, name)
	}
	drop()
	drop()
	_, ok = sessions.Get("run", "demo:r0001", 1, id, at)
	require.False(t, ok)
	(*activities.Sessions)(nil).Put("run", "demo:r0001", 1, session)()
}

// The instance of a workflow that the SDK evicts may be dropped after another one has replaced it.
func TestADropKeepsTheSessionOfANewerInstance(t *testing.T) {
	sessions, session := activities.NewSessions(), newSession()
	drop := sessions.Put("run", "demo:r0001", 1, reducer.NewSession("demo"))
	sessions.Put("run", "demo:r0001", 1, session)
	drop()
	_, ok := sessions.Get("run", "demo:r0001", 1, session.LastEventID(), session.LastEventAt)
	require.True(t, ok)
}

func TestAnAttemptTakesItsSessionWhereItIs(t *testing.T) {
	session := newSession()
	lost := session // the session of a workflow task that the server lost
	lost.LastEventAt = lost.LastEventAt.Add(time.Millisecond)
	for name, test := range map[string]struct {
		here    *reducer.Session
		queries int
	}{
		"in this process":              {&session, 0},
		"elsewhere":                    {nil, 1},
		"of a task that was lost here": {&lost, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnvironment(t, session, llmtest.Answer("Hi"))
			sessions := activities.NewSessions()
			if test.here != nil {
				sessions.Put(runID, "demo:r0001", 1, *test.here)
			}
			w.reset(sessions)
			w.generated()
			require.Equal(t, test.queries, w.server.queries)
			if test.queries > 0 {
				require.Equal(t, []any{"demo:r0001", 1}, w.server.asked)
			}
			require.Equal(t, "Hello", w.model.Requests()[0].LastUser())
		})
	}
}

// archivedServer is a server whose worker of the workflow is away, and whose history is in the archive.
type archivedServer struct{ *server }

func (archivedServer) WorkflowService() workflowservice.WorkflowServiceClient { return forgotten{} }

func TestAnAttemptFoldsTheLogUpToItsSession(t *testing.T) {
	session, events := reducer.NewSession("demo"), []event.Event(nil)
	apply := func(in reducer.Input) {
		var effects []reducer.Effect
		session, effects = reducer.Step(session, in)
		for _, effect := range effects {
			if record, ok := effect.(reducer.Record); ok {
				events = append(events, record.Events...)
			}
		}
	}
	said := func(text string) reducer.Received {
		return reducer.Received{At: time.Now(), Events: []event.Event{event.New(event.UserMessage{Content: text})}}
	}
	apply(reducer.Opened{At: time.Now()})
	apply(reducer.Received{At: time.Now(), Events: []event.Event{
		event.New(event.SetDeliveryPolicy{Policy: event.PolicyQueue, QuietPeriodMs: new(int64(0))}), event.New(event.UserMessage{Content: "Hello"}),
	}})
	apply(reducer.AttemptEnded{
		At: time.Now(), RequestID: session.Request.ID, Attempt: 1, Outcome: reducer.Called, Text: "Let me see.",
		Calls: []reducer.CalledTool{{ID: "call_1", Name: "weather"}},
	})
	apply(said("And then?"))
	apply(reducer.ToolEnded{At: time.Now(), RequestID: session.Request.ID, CallID: "call_1", Outcome: reducer.CallReturned})
	in := inputOf(session)
	require.NotEmpty(t, in.Limit)
	apply(said("Still there?"))

	logs := archive.New(blobstest.New(t).Store)
	folder, err := logs.Folder(t.Context(), "demo")
	require.NoError(t, err)
	require.NoError(t, folder.Register(t.Context(), archive.Run{ID: runID}))
	_, err = logs.Write(t.Context(), "demo", runID, events)
	require.NoError(t, err)
	model := &caller{answer: activities.Answer{Text: "Hi", FinishReason: "stop"}}
	away := &server{session: func(int) (reducer.Session, error) { return reducer.Session{}, serviceerror.NewUnavailable("away") }}
	env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	env.RegisterActivity(activities.New(activities.Options{Temporal: archivedServer{away}, Archive: logs, Models: model}))
	_, err = env.ExecuteActivity(acts.Generate, in)
	require.NoError(t, err)
	var contents []string
	for _, m := range model.request.Messages {
		contents = append(contents, m.Content)
	}
	require.Equal(t, []string{"Hello", "Let me see.", "(no output)"}, contents, "queued messages are not part of the step")

	in.Through = "demo:0099"
	_, err = env.ExecuteActivity(acts.Generate, in)
	require.Contains(t, unsent(t, err).Message(), `read the session of context demo: the log ends with event "`+session.LastEventID()+`" (want demo:0099)`)
}

func TestASessionThatCannotBeReadIsRetried(t *testing.T) {
	w := newEnvironment(t, newSession())
	w.server.session = func(int) (reducer.Session, error) {
		return reducer.Session{}, serviceerror.NewUnavailable("away, with key sk-live-0123456789")
	}
	_, err := w.generate()
	require.Equal(t, "query the session of context demo: away, with key [removed]\nread the log of context demo, run default-test-run-id: no history", unsent(t, err).Message())

	w.in.MaxAttempts = 1
	failed := w.failure()
	require.True(t, failed.Retryable)
	require.True(t, failed.Final)
}

func TestAnotherSessionIsNotSent(t *testing.T) {
	session := newSession()
	w := newEnvironment(t, session)
	w.in.ThroughAt = w.in.ThroughAt.Add(time.Second)
	_, err := w.generate()
	require.Contains(t, unsent(t, err).Message(), `query the session of context demo: it ends with event "demo:0003" of `)
}
