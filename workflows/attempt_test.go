package workflows_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/workflows"
)

func (w *testRun) withoutRetries() {
	w.SignalWorkflowSkippingWorkflowTask(wire.SignalEvent, map[string]any{"_tag": "SetRetryConfig", "maxRetries": 0, "initialDelayMs": 1})
}

func TestAnAttemptIsOneActivityWithTheSettingsOfTheContext(t *testing.T) {
	w := newRun(t)
	w.OnActivity(acts.Open, mock.Anything, mock.Anything).Return(activities.OpenResult{FailoverMs: 30_000}, nil).Once()
	w.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, _ converter.EncodedValues) {
		if info.ActivityType.Name != "Generate" {
			return
		}
		assert.Equal(t, 30*time.Second, info.HeartbeatTimeout)
	})
	w.generates(func(_ context.Context, in activities.AttemptInput) (reducer.AttemptEnded, error) {
		in.ThroughAt, in.SendAt = time.Time{}, time.Time{}
		assert.Equal(t, activities.AttemptInput{
			ContextName: "demo", MaxAttempts: 3, StartAttempt: reducer.StartAttempt{
				RequestID: "demo:r0001", Attempt: 1, Through: "demo:0005", TimeoutMs: 5000, MayCompact: in.MayCompact,
			},
		}, in)
		return reducer.AttemptEnded{Outcome: reducer.Completed, Text: "Hi"}, nil
	})
	w.at(time.Minute, func() {
		w.SignalWorkflowSkippingWorkflowTask(wire.SignalEvent, map[string]any{"_tag": "SetTimeout", "timeoutMs": 5000})
		w.SignalWorkflowSkippingWorkflowTask(wire.SignalEvent, map[string]any{"_tag": "SetRetryConfig", "maxRetries": 2, "initialDelayMs": 1})
		w.says("Hello")
	})
	w.at(time.Hour, w.close)
	w.ExecuteWorkflow(wire.WorkflowType)
	require.NoError(t, w.GetWorkflowError())
	require.Contains(t, w.log, "AssistantMessage Hi")
}

func TestAnAttemptThatItsWorkerDidNotEndIsRecorded(t *testing.T) {
	heartbeat := activities.Heartbeat{
		Sent: true, ProviderID: "openai", Model: "scripted", Usage: event.Usage{InputTokens: 8, OutputTokens: 2, Estimated: true},
		Reservation: "key",
	}
	const completed = "AssistantMessage Hi"
	for name, test := range map[string]struct {
		err      error
		previous *activities.PreviousAttempt // that the next attempt receives
		want     []string
	}{
		"its worker died": {
			temporal.NewHeartbeatTimeoutError(heartbeat), &activities.PreviousAttempt{Outcome: reducer.Lost, Heartbeat: &heartbeat},
			[]string{"LLMAttemptEnded 1 lost 8/2", "LLMRequestStarted attempt 2", completed, "LLMRequestCompleted"},
		},
		"its worker died before the first heartbeat": {
			temporal.NewHeartbeatTimeoutError(), &activities.PreviousAttempt{Outcome: reducer.Lost},
			[]string{"LLMAttemptEnded 1 lost 0/0", "LLMRequestStarted attempt 2", completed, "LLMRequestCompleted"},
		},
		"its worker is stuck": {
			temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_START_TO_CLOSE, nil, heartbeat), nil,
			[]string{"LLMRequestFailed the worker did not end the attempt (StartToClose) 8/2"},
		},
		"an error of the activity": {
			temporal.NewNonRetryableApplicationError("odd, with key sk-live-0123456789", "odd", nil, "details"), nil,
			[]string{"LLMRequestFailed odd, with key [removed]"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newRun(t)
			w.opens()
			w.generates(func(context.Context, activities.AttemptInput) (reducer.AttemptEnded, error) {
				return reducer.AttemptEnded{}, test.err
			})
			if test.previous != nil {
				w.generates(func(ctx context.Context, in activities.AttemptInput) (reducer.AttemptEnded, error) {
					assert.Equal(t, 2, in.Attempt)
					assert.Equal(t, test.previous, in.Previous)
					return answers("Hi")(ctx, in)
				})
			}
			w.at(time.Minute, func() {
				w.withoutRetries()
				w.says("Hello")
			})
			w.at(time.Hour, w.close)
			want := append([]string{"SessionStarted", "SetRetryConfig", "UserMessage Hello", "LLMRequestStarted attempt 1"}, test.want...)
			w.run(append(want, "SessionEnded done")...)
		})
	}
}

func TestTheNextRequestDoesNotReceiveTheFailedAttemptOfThePreviousOne(t *testing.T) {
	w := newRun(t)
	w.opens()
	w.generates(func(context.Context, activities.AttemptInput) (reducer.AttemptEnded, error) {
		return reducer.AttemptEnded{Outcome: reducer.Failed, Kind: event.FailureUnauthorized, Error: "openai: unauthorized (401)"}, nil
	})
	w.generates(func(ctx context.Context, in activities.AttemptInput) (reducer.AttemptEnded, error) {
		assert.Nil(t, in.Previous)
		return answers("Hi")(ctx, in)
	})
	w.at(time.Minute, func() { w.says("Hello") })
	w.at(time.Hour/2, func() { w.says("Again") })
	w.at(time.Hour, w.close)
	w.run("SessionStarted", "UserMessage Hello", "LLMRequestStarted attempt 1", "LLMRequestFailed openai: unauthorized (401)",
		"UserMessage Again", "LLMRequestStarted attempt 1", "AssistantMessage Hi", "LLMRequestCompleted", "SessionEnded done")
}

// The worker that handed it back completes this workflow task.
func TestTheAttemptAfterAHandBackIsNotEager(t *testing.T) {
	kept := &keeper{contexts: map[string][]workflow.Context{}}
	w := bareRun(t, "context:demo", kept, workflows.Interceptor())
	w.OnActivity(acts.Archive, mock.Anything, mock.Anything).Return(nil).Maybe()
	w.opens()
	w.generates(func(context.Context, activities.AttemptInput) (reducer.AttemptEnded, error) {
		return reducer.AttemptEnded{Outcome: reducer.HandedBack}, nil
	})
	w.generates(answers("Hi"))
	w.generates(answers("Hello"))
	w.at(time.Minute, func() { w.says("Hello") })
	w.at(time.Hour/2, func() { w.says("Again") })
	w.at(time.Hour, w.close)
	w.ExecuteWorkflow(wire.WorkflowType)
	require.NoError(t, w.GetWorkflowError())
	w.AssertExpectations(t)
	var isEager []bool
	for _, ctx := range kept.contexts["Generate"] {
		isEager = append(isEager, !workflow.GetActivityOptions(ctx).DisableEagerExecution)
	}
	require.Equal(t, []bool{true, false, true}, isEager)
}

// Later input of the same workflow task does not change the input of an attempt.
func TestTheSessionOfAnAttemptIsFixed(t *testing.T) {
	sessions := activities.NewSessions()
	w := newRunWith(t, sessions)
	w.opens()
	var once sync.Once
	w.generates(func(ctx context.Context, in activities.AttemptInput) (reducer.AttemptEnded, error) {
		session, ok := sessions.Get("default-test-run-id", in.RequestID, in.Attempt, in.Through, in.ThroughAt)
		assert.True(t, ok)
		assert.Len(t, session.Reduced.Messages, 1)
		once.Do(func() {
			value, err := w.QueryWorkflow(wire.QuerySnapshot, in.RequestID, in.Attempt)
			if assert.NoError(t, err) {
				var queried reducer.Session
				assert.NoError(t, value.Get(&queried))
				assert.Equal(t, in.Through, queried.LastEventID())
				assert.Len(t, queried.Reduced.Messages, 1)
			}
			_, err = w.QueryWorkflow(wire.QuerySnapshot, in.RequestID, in.Attempt+1)
			assert.ErrorContains(t, err, "attempt 2 of request demo:r0001 is not running")
		})
		return answers("Hi")(ctx, in)
	})
	var through string
	w.at(time.Minute, func() {
		w.SignalWorkflowSkippingWorkflowTask(wire.SignalEvent, map[string]any{"_tag": "UserMessage", "content": "Hello"})
		w.SignalWorkflow(wire.SignalEvent, map[string]any{"_tag": "UserMessage", "content": "a note", "triggersTurn": false})
	})
	w.at(time.Hour, w.close)
	w.run("SessionStarted", "UserMessage Hello", "LLMRequestStarted attempt 1", "UserMessage a note", "AssistantMessage Hi",
		"LLMRequestCompleted", "SessionEnded done")
	_, ok := sessions.Get("default-test-run-id", "demo:r0001", 1, through, time.Time{})
	require.False(t, ok)
}

func TestAnAttemptStoppedInItsOwnTaskIsNotScheduled(t *testing.T) {
	w := newRun(t)
	w.opens()
	w.at(time.Minute, func() {
		w.SignalWorkflowSkippingWorkflowTask(wire.SignalEvent, map[string]any{"_tag": "UserMessage", "content": "Hello"})
		w.SignalWorkflow(wire.SignalInterrupt, nil)
	})
	w.at(time.Hour, w.close)
	w.run("SessionStarted", "UserMessage Hello", "LLMRequestStarted attempt 1", "LLMRequestInterrupted cancelled", "SessionEnded done")
}

func TestAnInterruptStopsTheAttempt(t *testing.T) {
	w := newRun(t)
	w.opens()
	stopped := make(chan struct{})
	w.generates(func(context.Context, activities.AttemptInput) (reducer.AttemptEnded, error) {
		w.SignalWorkflow(wire.SignalInterrupt, nil)
		select {
		case <-stopped:
		case <-t.Context().Done():
		}
		return reducer.AttemptEnded{Outcome: reducer.Interrupted, Reason: event.ReasonCancelled, Text: "Hel"}, nil
	})
	w.OnActivity(acts.Stop, mock.Anything, activities.StopInput{
		ContextName: "demo", Stop: reducer.StopAttempt{RequestID: "demo:r0001", Attempt: 1, Reason: event.ReasonCancelled},
	}).Return(func(context.Context, activities.StopInput) (bool, error) {
		close(stopped)
		return true, nil
	}).Once()
	w.at(time.Minute, func() { w.says("Hello") })
	w.at(time.Hour, w.close)
	w.run("SessionStarted", "UserMessage Hello", "LLMRequestStarted attempt 1", "AssistantMessage Hel",
		"LLMRequestInterrupted cancelled", "SessionEnded done")
}

func TestAnUnacknowledgedStopCancelsTheActivity(t *testing.T) {
	for name, stop := range map[string]error{"no acknowledgement": nil, "an error": temporal.NewNonRetryableApplicationError("NATS", "internal", nil)} {
		t.Run(name, func(t *testing.T) {
			w := newRun(t)
			w.opens()
			// The test environment notifies its listener instead of the activity.
			cancelled := make(chan struct{})
			w.SetOnActivityCanceledListener(func(*activity.Info) { close(cancelled) })
			w.generates(func(context.Context, activities.AttemptInput) (reducer.AttemptEnded, error) {
				w.SignalWorkflow(wire.SignalInterrupt, nil)
				select {
				case <-cancelled:
				case <-t.Context().Done():
				}
				return reducer.AttemptEnded{}, context.Canceled
			})
			w.OnActivity(acts.Stop, mock.Anything, mock.Anything).Return(false, stop).Once()
			w.at(time.Minute, func() { w.says("Hello") })
			w.at(time.Hour, w.close)
			w.run("SessionStarted", "UserMessage Hello", "LLMRequestStarted attempt 1", "LLMRequestInterrupted cancelled", "SessionEnded done")
		})
	}
}

// Under the policy queue, input of the quiet period stops only an attempt that was not sent.
func TestAnUnacknowledgedConditionalStopDoesNotCancelTheActivity(t *testing.T) {
	w := newRun(t)
	w.opens()
	asked := make(chan struct{})
	w.SetOnActivityCanceledListener(func(*activity.Info) { assert.Fail(t, "cancelled") })
	w.generates(func(ctx context.Context, in activities.AttemptInput) (reducer.AttemptEnded, error) {
		w.says("Two")
		select {
		case <-asked:
		case <-t.Context().Done():
		}
		return answers("One")(ctx, in)
	})
	w.OnActivity(acts.Stop, mock.Anything, activities.StopInput{ContextName: "demo", Stop: reducer.StopAttempt{
		RequestID: "demo:r0001", Attempt: 1, Reason: event.ReasonNewUserInput, Unsent: true,
	}}).Return(func(context.Context, activities.StopInput) (bool, error) {
		close(asked)
		return false, nil
	}).Once()
	w.generates(answers("Two"))
	w.at(time.Minute, func() {
		w.SignalWorkflowSkippingWorkflowTask(wire.SignalEvent, map[string]any{"_tag": "SetDeliveryPolicy", "policy": "queue", "quietPeriodMs": 1000})
		w.says("One")
	})
	w.at(time.Hour, w.close)
	w.run("SessionStarted", "SetDeliveryPolicy", "UserMessage One", "LLMRequestStarted attempt 1", "UserMessage Two", "AssistantMessage One",
		"LLMRequestCompleted", "LLMRequestStarted attempt 1", "AssistantMessage Two", "LLMRequestCompleted", "SessionEnded done")
}

func TestAContextWithoutInputCloses(t *testing.T) {
	w := newRun(t)
	w.OnActivity(acts.Open, mock.Anything, mock.Anything).Return(activities.OpenResult{IdleCloseMs: time.Hour.Milliseconds()}, nil).Once()
	started := w.Now()
	w.generates(answers("Hi"))
	w.at(30*time.Minute, func() { w.says("Hello") })
	w.run("SessionStarted", "UserMessage Hello", "LLMRequestStarted attempt 1", "AssistantMessage Hi", "LLMRequestCompleted", "SessionEnded idle")
	require.WithinDuration(t, started.Add(90*time.Minute), w.Now(), time.Minute)
}
