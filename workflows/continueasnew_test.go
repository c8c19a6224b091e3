package workflows_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/workflows"
)

func TestAnIdleContextReportsDelivery(t *testing.T) {
	w := newRun(t)
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
func (w *testRun) registers() {
	w.OnActivity(acts.Open, mock.Anything, mock.Anything).Return(activities.OpenResult{RunID: "default-test-run-id"}, nil).Once()
}

// continues runs a context until it continues as new, and returns the input of the next run.
func (w *testRun) continues() (input map[string]any) {
	w.t.Helper()
	w.ExecuteWorkflow(wire.WorkflowType)
	var next *workflow.ContinueAsNewError
	require.ErrorAs(w.t, w.GetWorkflowError(), &next)
	require.NoError(w.t, converter.GetDefaultDataConverter().FromPayloads(next.Input, &input))
	return input
}

// resumes runs the next run of a context to completion.
func (w *testRun) resumes(input map[string]any, want ...string) {
	w.t.Helper()
	w.SetContinuedExecutionRunID("previous")
	w.ExecuteWorkflow(wire.WorkflowType, input)
	require.NoError(w.t, w.GetWorkflowError())
	w.AssertExpectations(w.t)
	require.Equal(w.t, want, w.log)
}

func (w *testRun) grows(bytes int) {
	w.SetCurrentHistoryLength(100)
	w.SetCurrentHistorySize(bytes)
}

// note adds a note to the inbox. The newest one starts a workflow task.
func (w *testRun) note(text string, isNewest bool) {
	send := w.SignalWorkflowSkippingWorkflowTask
	if isNewest {
		send = w.SignalWorkflow
	}
	send(wire.SignalEvent, map[string]any{"_tag": "UserMessage", "content": text, "triggersTurn": false})
}

func TestAnIdleRunContinuesAsNewAtASoftLimit(t *testing.T) {
	w := newRun(t)
	w.registers()
	w.generates(func(ctx context.Context, in activities.AttemptInput) (reducer.AttemptEnded, error) {
		w.grows(5 << 20)
		return answers("Hello")(ctx, in)
	})
	w.at(time.Minute, func() { w.says("Hi") })
	input := w.continues()
	require.Equal(t, []string{"SessionStarted", "UserMessage Hi", "LLMRequestStarted attempt 1", "AssistantMessage Hello", "LLMRequestCompleted"}, w.log)
	require.NotContains(t, input, "scheduled")
	require.NotContains(t, input, "unarchived")

	w = newRun(t)
	w.opens()
	w.at(time.Minute, w.close)
	w.resumes(input, "SessionEnded done")
}

// A run over a hard limit leaves its inbox to the next run, which must then archive the log.
func TestAFloodedRunContinuesAsNewWithItsInbox(t *testing.T) {
	const signals = 5
	first := newRun(t)
	first.registers()
	first.at(time.Minute, func() {
		first.grows(17 << 20)
		for i := range signals {
			first.note("text", i == signals-1)
		}
	})
	input := first.continues()
	require.Equal(t, []string{"SessionStarted"}, first.log)
	require.Len(t, input["inbox"], signals)
	require.Equal(t, true, input["unarchived"])

	second := bareRun(t, "context:demo", workflows.Interceptor())
	second.OnActivity(acts.Open, mock.Anything, mock.Anything).Return(func(_ context.Context, in activities.OpenInput) (activities.OpenResult, error) {
		require.True(t, in.Unarchived)
		return activities.OpenResult{}, nil
	}).Once()
	second.OnActivity(acts.Archive, mock.Anything, activities.ArchiveInput{ContextName: "demo", Through: 1, Earlier: true}).Return(nil).Once()
	second.OnActivity(acts.Archive, mock.Anything, mock.Anything).Return(nil) // at the end
	second.at(time.Minute, second.close)
	second.resumes(input, append(slices.Repeat([]string{"UserMessage text"}, signals), "SessionEnded done")...)
}

func TestAFloodDuringAnAnswerHandsItBack(t *testing.T) {
	w := newRun(t)
	w.registers()
	w.generates(func(context.Context, activities.AttemptInput) (reducer.AttemptEnded, error) {
		w.at(0, func() {
			w.grows(17 << 20)
			w.note("flood", true)
		})
		<-t.Context().Done()
		return reducer.AttemptEnded{}, nil
	})
	w.at(time.Minute, func() { w.says("Hi") })
	input := w.continues()
	require.Equal(t, true, input["scheduled"])

	w = newRun(t)
	w.opens()
	w.generates(func(ctx context.Context, in activities.AttemptInput) (reducer.AttemptEnded, error) {
		assert.Equal(t, 2, in.Attempt)
		return answers("Hello")(ctx, in)
	})
	w.at(time.Minute, w.close)
	w.resumes(input, "LLMAttemptEnded 1 handed_back 0/0", "LLMRequestStarted attempt 2", "UserMessage flood", "AssistantMessage Hello",
		"LLMRequestCompleted", "SessionEnded done")
}

// TestAFloodedRunRecordsTheAnswer completes the answer in the workflow task in
// which the run continues as new, before it has processed all signals.
func TestAFloodedRunRecordsTheAnswer(t *testing.T) {
	w := newRun(t)
	w.registers()
	w.generates(func(ctx context.Context, in activities.AttemptInput) (reducer.AttemptEnded, error) {
		w.at(0, func() { w.grows(17 << 20) })
		w.note("flood", false)
		return answers("Hello")(ctx, in)
	})
	w.at(time.Minute, func() { w.says("Hi") })
	w.continues()
	require.Contains(t, w.log, "AssistantMessage Hello")
	require.Contains(t, w.log, "LLMRequestCompleted")
}

// The next attempt settles the reservations of the lost one.
func TestARunThatContinuesAsNewKeepsTheLostAttempt(t *testing.T) {
	heartbeat := activities.Heartbeat{Sent: true, ProviderID: "openai", Model: "scripted", Reservation: "key"}
	w := newRun(t)
	w.registers()
	w.generates(func(context.Context, activities.AttemptInput) (reducer.AttemptEnded, error) {
		w.grows(17 << 20)
		return reducer.AttemptEnded{}, temporal.NewHeartbeatTimeoutError(heartbeat)
	})
	w.at(time.Minute, func() {
		w.withoutRetries()
		w.says("Hi")
	})
	input := w.continues()
	require.NotContains(t, input, "scheduled")

	w = newRun(t)
	w.opens()
	w.generates(func(ctx context.Context, in activities.AttemptInput) (reducer.AttemptEnded, error) {
		assert.Equal(t, &activities.PreviousAttempt{Outcome: reducer.Lost, Heartbeat: &heartbeat}, in.Previous)
		return answers("Hello")(ctx, in)
	})
	w.at(time.Minute, w.close)
	w.resumes(input, "LLMRequestStarted attempt 3", "AssistantMessage Hello", "LLMRequestCompleted", "SessionEnded done")
}

// A run with more signals than the next run should start with records the oldest ones first.
func TestARunWithAnInboxThatIsTooLargeRecordsTheBeginning(t *testing.T) {
	const signals, size = 14, 3_500_000
	w := newRun(t)
	w.registers()
	w.at(time.Minute, func() {
		w.grows(17 << 20)
		for i := range signals {
			w.note(strings.Repeat("x", size), i == signals-1)
		}
	})
	input := w.continues()
	const recorded = signals - (24<<20)/size
	require.Len(t, w.log, 1+recorded)
	require.Len(t, input["inbox"], signals-recorded)
}

// A run over a hard limit, with too many messages to fold all signals in one task, folds signals until the rest fits into the input of
// the next run.
func TestARunOverItsLimitsFoldsSignalsInSeveralTasks(t *testing.T) {
	const folded, left = 293, 8 // before the next task; with 64 Ki messages, an input is 1,025 of the 300,000 units of a task
	session := reducer.NewSession("demo")
	session.EventCount = 2
	session.Reduced.Messages = slices.Repeat([]reducer.Message{{Role: reducer.RoleUser, Content: "x"}}, 64<<10)
	packed, err := wire.Pack(session)
	require.NoError(t, err)
	w := newRun(t)
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
	w.at(time.Minute+time.Microsecond, func() { w.SetCurrentHistoryLength(50_001) }) // the next task
	w.SetContinuedExecutionRunID("previous")
	w.ExecuteWorkflow(wire.WorkflowType, map[string]any{"session": packed})
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, w.GetWorkflowError(), &next)
	var input map[string]any
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(next.Input, &input))
	require.Len(t, w.log, folded+1)
	require.Len(t, input["inbox"], left-1)
}
