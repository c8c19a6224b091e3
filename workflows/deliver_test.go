package workflows_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
)

// opensWith lets the run open with hooks that receive its events.
func (w *testRun) opensWith(deliveries ...activities.Delivery) {
	w.OnActivity(acts.Open, mock.Anything, mock.Anything).Return(activities.OpenResult{Rules: reducer.CurrentRules, Deliveries: deliveries}, nil).Once()
}

// delivers expects one activity Deliver with the input through. Its result, delivered, can be higher or
// lower.
func (w *testRun) delivers(hook string, through, delivered int) {
	w.OnActivity(acts.Deliver, mock.Anything, activities.DeliverInput{ContextName: "demo", Hook: hook, Through: through}).
		Return(activities.DeliverResult{Through: delivered}, nil).Once()
}

func (w *testRun) prompts() {
	w.SignalWorkflow(wire.SignalEvent, map[string]any{"_tag": "SystemPrompt", "content": "Be brief."})
}

func TestEachHookReceivesWhatItLacks(t *testing.T) {
	w := newRun(t)
	w.opensWith(activities.Delivery{Hook: "crm"}, activities.Delivery{Hook: "audit"})
	for _, hook := range []string{"crm", "audit"} {
		w.delivers(hook, 1, 1)
	}
	w.delivers("crm", 2, 2)
	w.delivers("audit", 2, 3) // it has delivered the end of the session, too
	w.delivers("crm", 3, 3)
	w.at(time.Minute, func() {
		w.prompts()
		w.close()
	})
	w.run("SessionStarted", "SystemPrompt", "SessionEnded done")
}

func TestADeliveryThatLagsIsRepeated(t *testing.T) {
	w := newRun(t)
	w.opensWith(activities.Delivery{Hook: "crm"})
	w.delivers("crm", 1, 0)
	w.delivers("crm", 1, 1)
	w.delivers("crm", 2, 2)
	w.at(time.Minute, w.close)
	w.run("SessionStarted", "SessionEnded done")
}

func TestADeadHookDelaysNothing(t *testing.T) {
	w := newRun(t)
	w.opensWith(activities.Delivery{Hook: "dead"}, activities.Delivery{Hook: "crm"})
	// Its activity stays pending.
	w.OnActivity(acts.Deliver, mock.Anything, activities.DeliverInput{ContextName: "demo", Hook: "dead", Through: 1}).
		After(24*time.Hour).Return(activities.DeliverResult{Through: 12}, nil).Once()
	w.OnActivity(acts.Deliver, mock.Anything, mock.MatchedBy(func(in activities.DeliverInput) bool { return in.Hook == "crm" })).
		Return(func(_ context.Context, in activities.DeliverInput) (activities.DeliverResult, error) {
			return activities.DeliverResult{Through: in.Through}, nil
		})
	w.generates(answers("Hi"))
	w.generates(answers("Still here"))
	w.at(time.Minute, func() { w.says("Hello") })
	w.at(time.Hour, w.close)
	w.at(2*time.Hour, func() {
		require.False(t, w.IsWorkflowCompleted())
		w.says("Anyone?") // begins a session
	})
	w.at(3*time.Hour, w.close)
	w.at(23*time.Hour, func() { require.False(t, w.IsWorkflowCompleted(), "the run waits for the hook") })
	w.run("SessionStarted", "UserMessage Hello", "LLMRequestStarted attempt 1", "AssistantMessage Hi", "LLMRequestCompleted", "SessionEnded done",
		"SessionStarted", "UserMessage Anyone?", "LLMRequestStarted attempt 1", "AssistantMessage Still here", "LLMRequestCompleted", "SessionEnded done")
}

func TestAContinuedRunDeliversWhatThePreviousOneDidNot(t *testing.T) {
	session := reducer.NewSession("demo")
	session.EventCount, session.Started = 7, true
	packed, err := wire.Pack(session)
	require.NoError(t, err)
	w := newRun(t)
	w.opensWith(activities.Delivery{Hook: "crm"}, activities.Delivery{Hook: "complete", Through: 7})
	w.delivers("crm", 7, 8)
	w.delivers("complete", 8, 8)
	w.at(time.Minute, w.close)
	w.SetContinuedExecutionRunID("previous")
	w.ExecuteWorkflow(wire.WorkflowType, map[string]any{"session": packed})
	require.NoError(t, w.GetWorkflowError())
	w.AssertExpectations(t)
}
