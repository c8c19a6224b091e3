package workflows_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/workflows"
)

// acts is the typed nil receiver for activity mocks.
var acts *activities.Activities

// testRun is a run of the workflow of context demo in Temporal's test environment. Unexpected
// activity calls fail the test.
type testRun struct {
	*testsuite.TestWorkflowEnvironment
	t testing.TB

	mu  sync.Mutex
	log []string
}

func newRun(t testing.TB) *testRun { return newRunWith(t, nil) }

func newRunWith(t testing.TB, sessions *activities.Sessions) *testRun {
	w := runOf(t, "context:demo", sessions, workflows.Interceptor())
	w.OnActivity(acts.Archive, mock.Anything, mock.Anything).Return(nil).Maybe()
	return w
}

func bareRun(t testing.TB, workflowID string, interceptors ...interceptor.WorkerInterceptor) *testRun {
	return runOf(t, workflowID, nil, interceptors...)
}

func runOf(t testing.TB, workflowID string, sessions *activities.Sessions, interceptors ...interceptor.WorkerInterceptor) *testRun {
	w := &testRun{t: t, TestWorkflowEnvironment: newEnvironment(workflowID)}
	w.SetWorkerOptions(worker.Options{Interceptors: interceptors, DeadlockDetectionTimeout: 30 * time.Second})
	w.RegisterWorkflowWithOptions(workflows.New(workflows.Options{Reduce: w.reduce, Sessions: sessions}), workflow.RegisterOptions{Name: wire.WorkflowType})
	return w
}

// newEnvironment returns an environment for a workflow, with the activities.
func newEnvironment(workflowID string) *testsuite.TestWorkflowEnvironment {
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(time.Minute)
	env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: workflowID})
	env.RegisterActivity(activities.New(activities.Options{}))
	return env
}

// reduce adds each recorded event to the log.
func (w *testRun) reduce(current reducer.ReducedContext, events ...event.Event) reducer.ReducedContext {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range events {
		line := strings.TrimSuffix(string(e.Tag()), "Event")
		switch body := e.Body.(type) {
		case event.UserMessage:
			line += " " + body.Content
		case event.AssistantMessage:
			line += " " + body.Content
		case event.SessionEnded:
			line += " " + body.Reason
		case event.LLMRequestStarted:
			line += fmt.Sprintf(" attempt %d", body.Attempt)
		case event.LLMAttemptEnded:
			line += fmt.Sprintf(" %d %s %d/%d", body.Attempt, body.Outcome, body.InputTokens, body.OutputTokens)
		case event.LLMRequestInterrupted:
			line += " " + string(body.Reason)
		case event.LLMRequestFailed:
			line += " " + body.Error
			if body.InputTokens > 0 {
				line += fmt.Sprintf(" %d/%d", body.InputTokens, body.OutputTokens)
			}
		}
		w.log = append(w.log, line)
	}
	return reducer.Reduce(current, events...)
}

func (w *testRun) opens() {
	w.OnActivity(acts.Open, mock.Anything, mock.Anything).Return(opened, nil).Once()
}

var opened = activities.OpenResult{Rules: reducer.CurrentRules, DefaultProviderID: "openai", DefaultModel: "scripted"}

// run runs the workflow to completion and compares the log.
func (w *testRun) run(want ...string) {
	w.t.Helper()
	w.ExecuteWorkflow(wire.WorkflowType)
	require.True(w.t, w.IsWorkflowCompleted())
	require.NoError(w.t, w.GetWorkflowError())
	w.AssertExpectations(w.t)
	require.Equal(w.t, want, w.log)
}

// at calls do at a simulated time.
func (w *testRun) at(when time.Duration, do func()) { w.RegisterDelayedCallback(do, when) }

func (w *testRun) says(text string) {
	w.SignalWorkflow(wire.SignalEvent, map[string]any{"_tag": "UserMessage", "content": text})
}

func (w *testRun) close() { w.SignalWorkflow(wire.SignalClose, wire.Close{Reason: "done"}) }

// generates expects one request.
func (w *testRun) generates(do func(context.Context, activities.AttemptInput) (reducer.AttemptEnded, error)) {
	w.OnActivity(acts.Generate, mock.Anything, mock.Anything).Return(do).Once()
}

// answers returns a request that completes with text.
func answers(text string) func(context.Context, activities.AttemptInput) (reducer.AttemptEnded, error) {
	return func(_ context.Context, in activities.AttemptInput) (reducer.AttemptEnded, error) {
		return reducer.AttemptEnded{Outcome: reducer.Completed, Text: text}, nil
	}
}

// isCancelled cancels the workflow during an attempt, which has a partial answer when it is stopped.
func (w *testRun) isCancelled(text string, whenStopped func()) {
	stopped := make(chan struct{})
	w.generates(func(context.Context, activities.AttemptInput) (reducer.AttemptEnded, error) {
		w.CancelWorkflow()
		select {
		case <-stopped:
		case <-w.t.Context().Done():
		}
		return reducer.AttemptEnded{Outcome: reducer.Interrupted, Reason: event.ReasonCancelled, Text: text}, nil
	})
	w.OnActivity(acts.Stop, mock.Anything, mock.Anything).Return(func(context.Context, activities.StopInput) (bool, error) {
		whenStopped()
		close(stopped)
		return true, nil
	}).Once()
}

func TestAMissingInterceptorFailsTheWorkflowTask(t *testing.T) {
	w := bareRun(t, "context:demo")
	w.ExecuteWorkflow(wire.WorkflowType)
	var panicked *temporal.PanicError
	require.ErrorAs(t, w.GetWorkflowError(), &panicked, "a panic fails the task, which Temporal retries")
	require.ErrorContains(t, panicked, "workflows.Interceptor() is missing")
}

func TestAnInvalidWorkflowIDFailsTheWorkflow(t *testing.T) {
	for _, id := range []string{"demo", "context:", "context:de mo", "order:demo"} {
		t.Run(id, func(t *testing.T) {
			w := bareRun(t, id, workflows.Interceptor())
			w.ExecuteWorkflow(wire.WorkflowType)
			var refused *temporal.ApplicationError
			require.ErrorAs(t, w.GetWorkflowError(), &refused)
			require.True(t, refused.NonRetryable())
			require.Equal(t, "InvalidContextName", refused.Type())
			require.Contains(t, refused.Message(), fmt.Sprintf("workflow id %q: a context has the id", id))
			require.Contains(t, refused.Message(), `"context:NAME"`)
		})
	}
}

func TestAnInterruptBeforeAMessageHasNoEffect(t *testing.T) {
	w := newRun(t)
	w.opens()
	w.generates(answers("Hi"))
	w.at(time.Minute, func() {
		w.SignalWorkflowSkippingWorkflowTask(wire.SignalInterrupt, nil)
		w.says("Hello")
	})
	w.at(time.Hour, w.close)
	w.run("SessionStarted", "UserMessage Hello", "LLMRequestStarted attempt 1", "AssistantMessage Hi",
		"LLMRequestCompleted", "SessionEnded done")
}

func TestCancellingTheWorkflowClosesTheSession(t *testing.T) {
	w := newRun(t)
	w.opens()
	w.at(time.Minute, w.CancelWorkflow)
	w.run("SessionStarted", "SessionEnded the workflow was cancelled")
}

func TestCancellingTheWorkflowKeepsThePartialAnswer(t *testing.T) {
	w := newRun(t)
	w.opens()
	w.isCancelled("Hel", func() {})
	w.at(time.Minute, func() { w.says("Hello") })
	w.run("SessionStarted", "UserMessage Hello", "LLMRequestStarted attempt 1", "AssistantMessage Hel",
		"LLMRequestInterrupted cancelled", "SessionEnded the workflow was cancelled")
}

func TestAnAppendDuringACancellationReturnsItsIDs(t *testing.T) {
	w := newRun(t)
	w.OnActivity(acts.Open, mock.Anything, mock.Anything).Return(activities.OpenResult{Rules: reducer.CurrentRules}, nil).Once()
	note := event.New(event.UserMessage{Content: "Bye", TriggersTurn: new(false)})
	note.ClientEventID = "bye"
	var appended *update
	w.isCancelled("", func() { appended = w.appends(note) })
	w.at(time.Minute, func() { w.says("Hello") })
	w.ExecuteWorkflow(wire.WorkflowType)
	require.NoError(t, w.GetWorkflowError())
	require.Contains(t, w.log, "UserMessage Bye")
	require.Len(t, appended.result.EventIDs, 1)
}

func TestAnAppendAfterACancellationReturnsItsIDsDuringALoad(t *testing.T) {
	w := newRun(t)
	w.OnActivity(acts.Open, mock.Anything, mock.Anything).Return(activities.OpenResult{Rules: reducer.CurrentRules}, nil).Once()
	note := event.New(event.UserMessage{Content: "Bye", TriggersTurn: new(false)})
	note.ClientEventID = "bye"
	var appended *update
	w.OnActivity(acts.Load, mock.Anything, mock.Anything).Return(func(context.Context, activities.LoadInput) (converter.RawValue, error) {
		w.CancelWorkflow()
		appended = w.appends(note)
		return wire.JSON(event.New(event.Note{Kind: event.NoteSystem, Content: "large"}))
	}).Once()
	reference := &commonpb.Payload{Metadata: map[string][]byte{converter.MetadataEncoding: []byte("chronicle/reference")}, Data: []byte("{}")}
	w.at(time.Minute, func() { w.SignalWorkflow(wire.SignalEvent, converter.NewRawValue(reference)) })
	w.at(time.Hour, w.close)
	w.ExecuteWorkflow(wire.WorkflowType)
	require.NoError(t, w.GetWorkflowError())
	require.Contains(t, w.log, "UserMessage Bye")
	require.Len(t, appended.result.EventIDs, 1)
}

func TestOpeningIsRetriedUntilItSucceeds(t *testing.T) {
	w := newRun(t)
	w.OnActivity(acts.Open, mock.Anything, mock.Anything).Return(activities.OpenResult{}, errors.New("the store is unavailable")).Times(20)
	w.opens()
	w.at(0, func() {
		w.SignalWorkflow(wire.SignalEvent, map[string]any{"_tag": "SystemPrompt", "content": "Be brief."})
	})
	w.at(time.Hour, w.close)
	w.run("SessionStarted", "SystemPrompt", "SessionEnded done")
}

func TestASessionContinuesTheRestoredLog(t *testing.T) {
	w := newRun(t)
	earlier := reducer.Load("demo", reducer.Reduce, loaded(1, event.SessionStarted{}), loaded(2, event.UserMessage{Content: "Hello"}),
		loaded(3, event.LLMRequestStarted{RequestID: "demo:r0001", Attempt: 1, ThroughEventID: "demo:0002"}))
	packed, err := wire.Pack(earlier)
	require.NoError(t, err)
	w.OnActivity(acts.Open, mock.Anything, mock.Anything).Return(activities.OpenResult{PreviousRunID: "A", Session: packed}, nil).Once()
	w.at(time.Hour, w.close)
	w.run("SessionStarted", "LLMRequestInterrupted cancelled", "SessionEnded done")
}

func loaded(n int, body event.Body) event.Event {
	e := event.New(body)
	e.ID = event.FormatID("demo", n)
	return e
}

func TestInputDuringTheEndOfASessionStartsTheNext(t *testing.T) {
	w := bareRun(t, "context:demo", workflows.Interceptor())
	w.opens()
	w.generates(answers("Hi"))
	archived := 0
	w.OnActivity(acts.Archive, mock.Anything, mock.Anything).Return(func(context.Context, activities.ArchiveInput) error {
		if archived++; archived == 1 {
			w.says("Wait")
		}
		return nil
	}).Twice()
	w.at(time.Minute, w.close)
	w.at(time.Hour, w.close)
	w.run("SessionStarted", "SessionEnded done", "SessionStarted", "UserMessage Wait", "LLMRequestStarted attempt 1",
		"AssistantMessage Hi", "LLMRequestCompleted", "SessionEnded done")
}

func TestInputForAClosedContextDoesNotWaitForTheArchive(t *testing.T) {
	w := bareRun(t, "context:demo", workflows.Interceptor())
	w.OnActivity(acts.Open, mock.Anything, mock.Anything).Return(activities.OpenResult{Rules: reducer.CurrentRules}, nil).Once()
	w.OnActivity(acts.Archive, mock.Anything, activities.ArchiveInput{ContextName: "demo", Through: 2}).
		After(time.Hour).Return(nil).Once()
	w.OnActivity(acts.Archive, mock.Anything, activities.ArchiveInput{ContextName: "demo", Through: 5}).Return(nil).Once()
	w.at(time.Minute, w.close)
	w.at(2*time.Minute, func() {
		w.SignalWorkflow(wire.SignalEvent, map[string]any{"_tag": "SystemPrompt", "content": "Be brief."})
	})
	w.at(3*time.Minute, func() {
		require.Equal(t, "SystemPrompt", w.log[len(w.log)-1])
		w.close()
	})
	w.run("SessionStarted", "SessionEnded done", "SessionStarted", "SystemPrompt", "SessionEnded done")
}

func TestQueriesReturnTheState(t *testing.T) {
	w := newRun(t)
	w.opens()
	w.at(time.Minute, func() {
		w.SignalWorkflow(wire.SignalEvent, map[string]any{"_tag": "SystemPrompt", "content": "Be brief."})
	})
	w.at(2*time.Minute, func() {
		value, err := w.QueryWorkflow(wire.QueryState)
		require.NoError(t, err)
		var state wire.State
		require.NoError(t, value.Get(&state))
		require.Equal(t, 2, state.EventCount)
		require.Equal(t, wire.StatusIdle, state.Status)
		require.False(t, state.UpdatedAt.IsZero())
		w.close()
	})
	w.run("SessionStarted", "SystemPrompt", "SessionEnded done")
}
