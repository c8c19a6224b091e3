package workflows_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/wire"
	"github.com/seed-9ed7edd4/chronicle/workflows"
)

// runningInput is the input of a run that continues another one during an answer.
func runningInput(t *testing.T) map[string]any {
	session := reducer.NewSession("demo")
	session.EventCount = 2
	session.Request = &reducer.Request{
		ID: event.FormatRequestID("demo", 1), Asked: "demo:0002", Through: "demo:0002",
		Attempt: 1, FirstAttempt: 1, Worker: "contexts/process",
	}
	packed, err := wire.Pack(session)
	require.NoError(t, err)
	return map[string]any{
		"session": packed,
		"running": reducer.StartRequest{RequestID: session.Request.ID, FirstAttempt: 1, Through: "demo:0002", TimeoutMs: 1000},
	}
}

func TestARunAdoptsTheRunningRequestOfThePreviousRun(t *testing.T) {
	w := newWorld(t)
	w.opens()
	w.generates(func(_ context.Context, in activities.GenerateInput) (activities.GenerateResult, error) {
		require.Equal(t, "demo", in.ContextName)
		require.Equal(t, "demo:r0001", in.RequestID)
		require.True(t, in.Adopt)
		return activities.GenerateResult{Attempted: attempted(in), Outcome: reducer.Completed, Text: "Hello"}, nil
	})
	w.at(time.Minute, w.close)
	w.SetContinuedExecutionRunID("previous")
	w.ExecuteWorkflow(wire.WorkflowType, runningInput(t))
	require.NoError(t, w.GetWorkflowError())
	w.AssertExpectations(t)
	require.Equal(t, []string{"AssistantMessage Hello", "LLMRequestCompleted", "SessionEnded done"}, w.log)
}

func TestAnAdoptedAttemptWithAnInvalidAnswerIsRepaired(t *testing.T) {
	for name, test := range map[string]struct {
		repairs bool
		want    []string
	}{
		"without a retry left": {true, []string{"LLMRequestStarted attempt 2", "AssistantMessage {}", "LLMRequestCompleted"}},
		"unless it fails":      {false, []string{"LLMRequestFailed invalid"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.opens()
			w.generates(func(_ context.Context, in activities.GenerateInput) (activities.GenerateResult, error) {
				return activities.GenerateResult{}, temporal.NewApplicationErrorWithOptions("invalid", "invalid answer", temporal.ApplicationErrorOptions{
					Details: []any{activities.Failure{Attempted: attempted(in), Repairs: test.repairs}},
				})
			})
			if test.repairs {
				w.generates(func(_ context.Context, in activities.GenerateInput) (activities.GenerateResult, error) {
					require.False(t, in.Adopt)
					require.Equal(t, 2, in.FirstAttempt)
					return activities.GenerateResult{Attempted: attempted(in), Outcome: reducer.Completed, Text: "{}"}, nil
				})
			}
			w.at(time.Minute, w.close)
			w.SetContinuedExecutionRunID("previous")
			w.ExecuteWorkflow(wire.WorkflowType, runningInput(t))
			require.NoError(t, w.GetWorkflowError())
			w.AssertExpectations(t)
			require.Equal(t, append(test.want, "SessionEnded done"), w.log)
		})
	}
}

func TestAnIdleContextReportsDelivery(t *testing.T) {
	w := newWorld(t)
	w.opens()
	w.at(time.Second, func() {
		w.SignalWorkflow(wire.SignalEvent, map[string]any{
			"_tag": "UserMessage", "content": "Hello", "clientEventId": "mine", "triggersTurn": false,
		})
	})
	w.at(time.Minute, func() {
		value, err := w.QueryWorkflow(wire.QueryDelivery, []string{"mine", "other"})
		require.NoError(t, err)
		var delivery wire.Delivery
		require.NoError(t, value.Get(&delivery))
		require.Equal(t, map[string]string{"mine": "demo:0002"}, delivery.EventIDs)
		require.False(t, delivery.Pending)
	})
	w.at(2*time.Minute, w.close)
	w.run("SessionStarted", "UserMessage Hello", "SessionEnded done")
}

// registers lets the run register, as on a server.
func (w *world) registers() {
	w.OnActivity(acts.Open, mock.Anything, mock.Anything).Return(activities.OpenResult{RunID: "default-test-run-id"}, nil).Once()
}

// TestAFloodedRunContinuesAsNewWithItsInbox receives 1.5 MB of signals in a run whose
// history grows fast. The next run records them.
func TestAFloodedRunContinuesAsNewWithItsInbox(t *testing.T) {
	const signals = 5
	text := strings.Repeat("x", 300_000)
	first := newWorld(t)
	first.registers()
	first.at(time.Minute, func() {
		first.SetCurrentHistoryLength(100)
		first.SetCurrentHistorySize(2 << 20)
		for i := range signals {
			send := first.SignalWorkflowSkippingWorkflowTask
			if i == signals-1 {
				send = first.SignalWorkflow
			}
			send(wire.SignalEvent, map[string]any{
				"_tag": "UserMessage", "content": text, "clientEventId": fmt.Sprint(i), "triggersTurn": false,
			})
		}
	})
	first.ExecuteWorkflow(wire.WorkflowType)
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, first.GetWorkflowError(), &next)
	require.Equal(t, []string{"SessionStarted"}, first.log)
	require.Equal(t, 30*time.Second, next.WorkflowTaskTimeout)
	var input map[string]any
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(next.Input, &input))
	require.Len(t, input["inbox"], signals)
	require.Equal(t, true, input["unarchived"])

	second := bareWorld(t, "context:demo", workflows.Interceptor())
	second.OnActivity(acts.Open, mock.Anything, mock.Anything).Return(func(_ context.Context, in activities.OpenInput) (activities.OpenResult, error) {
		require.True(t, in.Unarchived)
		return activities.OpenResult{}, nil
	}).Once()
	second.OnActivity(acts.Archive, mock.Anything, activities.ArchiveInput{ContextName: "demo", Through: 1, Earlier: true}).Return(nil).Once()
	second.OnActivity(acts.Archive, mock.Anything, mock.Anything).Return(nil) // at the end
	second.at(time.Minute, second.close)
	second.SetContinuedExecutionRunID("previous")
	second.ExecuteWorkflow(wire.WorkflowType, input)
	require.NoError(t, second.GetWorkflowError())
	second.AssertExpectations(t)
	want := slices.Repeat([]string{"UserMessage " + text}, signals)
	require.Equal(t, append(want, "SessionEnded done"), second.log)
}

// TestAFloodedRunRecordsTheAnswer completes the answer in the workflow task in
// which the run continues as new, before it has processed all signals.
func TestAFloodedRunRecordsTheAnswer(t *testing.T) {
	w := newWorld(t)
	w.registers()
	w.generates(func(_ context.Context, in activities.GenerateInput) (activities.GenerateResult, error) {
		w.at(0, func() {
			w.SetCurrentHistoryLength(100)
			w.SetCurrentHistorySize(17 << 20)
		})
		for range 3 {
			w.SignalWorkflowSkippingWorkflowTask(wire.SignalEvent, map[string]any{
				"_tag": "UserMessage", "content": strings.Repeat("x", 3_500_000), "triggersTurn": false,
			})
		}
		return activities.GenerateResult{Attempted: attempted(in), Outcome: reducer.Completed, Text: "Hello"}, nil
	})
	w.at(time.Minute, func() { w.says("Hi") })
	w.ExecuteWorkflow(wire.WorkflowType)
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, w.GetWorkflowError(), &next)
	require.Contains(t, w.log, "AssistantMessage Hello")
	require.Contains(t, w.log, "LLMRequestCompleted")
}

// The next run schedules the request, which settles the reservations of the lost attempt.
func TestARunThatContinuesAsNewKeepsTheLostAttempt(t *testing.T) {
	lost := activities.LostAttempt{
		Attempted: activities.Attempted{Attempt: 1, Sent: true, Through: "demo:0002", ProviderID: "openai", Model: "scripted"},
		RunID:     "run", Deadline: time.Unix(1, 0).UTC(),
	}
	w := newWorld(t)
	w.registers()
	attempts := 1 + reducer.Initial().Config.Retry.MaxRetries + reducer.SpareAttempts
	for n := range attempts {
		w.generates(func(context.Context, activities.GenerateInput) (activities.GenerateResult, error) {
			if n == attempts-1 {
				w.SetCurrentHistoryLength(100)
				w.SetCurrentHistorySize(17 << 20)
			}
			return activities.GenerateResult{}, temporal.NewHeartbeatTimeoutError(lost)
		})
	}
	w.at(time.Minute, func() { w.says("Hi") })
	w.ExecuteWorkflow(wire.WorkflowType)
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, w.GetWorkflowError(), &next)
	input := next.Input

	w = newWorld(t)
	w.opens()
	w.generates(func(_ context.Context, in activities.GenerateInput) (activities.GenerateResult, error) {
		require.Equal(t, 2, in.FirstAttempt)
		require.Equal(t, &lost, in.Lost)
		return activities.GenerateResult{Attempted: attempted(in), Outcome: reducer.Completed, Text: "Hello"}, nil
	})
	w.at(time.Minute, w.close)
	w.SetContinuedExecutionRunID("previous")
	var continued map[string]any
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(input, &continued))
	w.ExecuteWorkflow(wire.WorkflowType, continued)
	require.NoError(t, w.GetWorkflowError())
	w.AssertExpectations(t)
}

// TestARunOverItsSizeLimitRecordsInOneTaskOnly_Alone receives more signals than the next run
// should start with. The run records 16 MiB of them and continues as new with the others.
func TestARunOverItsSizeLimitRecordsInOneTaskOnly_Alone(t *testing.T) {
	const signals = 14
	text := strings.Repeat("x", 3_500_000)
	w := newWorld(t)
	w.registers()
	w.at(time.Minute, func() {
		w.SetCurrentHistoryLength(100)
		w.SetCurrentHistorySize(17 << 20)
		for i := range signals {
			send := w.SignalWorkflowSkippingWorkflowTask
			if i == signals-1 {
				send = w.SignalWorkflow
			}
			send(wire.SignalEvent, map[string]any{"_tag": "UserMessage", "content": text, "triggersTurn": false})
		}
	})
	w.ExecuteWorkflow(wire.WorkflowType)
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, w.GetWorkflowError(), &next)
	var input map[string]any
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(next.Input, &input))
	const recorded = 6 // two signals of 3.5 MB in each iteration of the loop, until 16 MiB are recorded
	require.Len(t, w.log, 1+recorded)
	require.Len(t, input["inbox"], signals-recorded)
}

// TestAnUrgentRunDoesTheWorkOfOneTask has too many messages to fold all signals in one task, and more signals left than
// the next run should start with.
func TestAnUrgentRunDoesTheWorkOfOneTask_Alone(t *testing.T) {
	const folded, left = 293, 8 // with 64 Ki messages, an input is 1,025 of the 300,000 units of a task
	session := reducer.NewSession("demo")
	session.EventCount = 2
	session.Reduced.Messages = slices.Repeat([]reducer.Message{{Role: reducer.RoleUser, Content: "x"}}, 64<<10)
	packed, err := wire.Pack(session)
	require.NoError(t, err)
	w := newWorld(t)
	w.registers()
	w.at(time.Minute, func() {
		w.SetCurrentHistoryLength(50_000)
		note := func(size int) map[string]any {
			return map[string]any{"_tag": "Note", "kind": "thinking", "content": strings.Repeat("x", size)}
		}
		for range folded {
			w.SignalWorkflowSkippingWorkflowTask(wire.SignalEvent, note(1))
		}
		for range left - 1 {
			w.SignalWorkflowSkippingWorkflowTask(wire.SignalEvent, note(3_500_000))
		}
		w.SignalWorkflow(wire.SignalEvent, note(3_500_000))
	})
	w.SetContinuedExecutionRunID("previous")
	w.ExecuteWorkflow(wire.WorkflowType, map[string]any{"session": packed})
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, w.GetWorkflowError(), &next)
	var input map[string]any
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(next.Input, &input))
	require.Len(t, w.log, folded)
	require.Len(t, input["inbox"], left)
}

// TestAShortBacklogEndsTheLongTaskTimeout continues a run that started with a backlog.
func TestAShortBacklogEndsTheLongTaskTimeout(t *testing.T) {
	w := newWorld(t)
	w.registers()
	w.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: "context:demo", WorkflowTaskTimeout: 30 * time.Second})
	w.at(time.Minute, func() {
		w.SetCurrentHistoryLength(5_000)
		w.says("Hi")
	})
	w.generates(answers("Hello"))
	w.ExecuteWorkflow(wire.WorkflowType)
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, w.GetWorkflowError(), &next)
	require.Equal(t, 10*time.Second, next.WorkflowTaskTimeout)
}

// TestAFloodIsDetectedBeforeTheServerCountsIt receives 4.5 MB of signals in one workflow
// task, while the size that the server reports is still small. Larger signals are
// references in the history, and no flood.
func TestAFloodIsDetectedBeforeTheServerCountsIt(t *testing.T) {
	for size, isFlood := range map[int]bool{450_000: true, 1_500_000: false} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			w := newWorld(t)
			w.registers()
			w.at(time.Minute, func() {
				w.SetCurrentHistoryLength(100)
				for range 4_500_000/size - 1 {
					w.SignalWorkflowSkippingWorkflowTask(wire.SignalEvent, map[string]any{"_tag": "UserMessage", "content": strings.Repeat("x", size), "triggersTurn": false})
				}
				w.SignalWorkflow(wire.SignalEvent, map[string]any{"_tag": "UserMessage", "content": strings.Repeat("x", size), "triggersTurn": false})
			})
			w.at(time.Hour, w.close)
			w.ExecuteWorkflow(wire.WorkflowType)
			if isFlood {
				require.ErrorAs(t, w.GetWorkflowError(), new(*workflow.ContinueAsNewError))
				require.Len(t, w.log, 1, "the next run records the signals")
			} else {
				require.NoError(t, w.GetWorkflowError())
			}
		})
	}
}
