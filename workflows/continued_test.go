package workflows_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

func TestARunAdoptsTheRunningRequestOfThePreviousRun(t *testing.T) {
	w := newWorld(t)
	w.opens()
	session := reducer.NewSession("demo")
	session.EventCount = 2
	session.Request = &reducer.Request{
		ID: event.FormatRequestID("demo", 1), Asked: "demo:0002", Through: "demo:0002",
		Attempt: 1, FirstAttempt: 1, Worker: "contexts/process",
	}
	packed, err := activities.Pack(session)
	require.NoError(t, err)
	w.generates(func(_ context.Context, in activities.GenerateInput) (activities.GenerateResult, error) {
		require.Equal(t, "demo", in.ContextName)
		require.Equal(t, session.Request.ID, in.RequestID)
		require.True(t, in.Adopt)
		return activities.GenerateResult{Attempted: attempted(in), Outcome: reducer.Completed, Text: "Hello"}, nil
	})
	w.at(time.Minute, w.close)
	w.SetContinuedExecutionRunID("previous")
	w.ExecuteWorkflow(wire.WorkflowType, map[string]any{
		"session": packed,
		"running": reducer.StartRequest{RequestID: session.Request.ID, FirstAttempt: 1, Through: "demo:0002", TimeoutMs: 1000},
	})
	require.NoError(t, w.GetWorkflowError())
	w.AssertExpectations(t)
	require.Equal(t, []string{"AssistantMessage Hello", "LLMRequestCompleted", "SessionEnded done"}, w.log)
}

func TestAWaitingContextAnswersWhichEventsWereDelivered(t *testing.T) {
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
