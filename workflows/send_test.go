package workflows_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/workflows"
)

// runSend runs the workflow Send of a schedule at 9:00 and returns its error and the inputs of its
// activity.
func runSend(t *testing.T, send func(attempt int) error) (inputs []activities.SendInput, err error) {
	t.Helper()
	env := newEnvironment("send:demo/daily-2026-01-02T09:00:00Z")
	env.RegisterWorkflowWithOptions(workflows.Send, workflow.RegisterOptions{Name: wire.WorkflowSend})
	env.OnActivity(acts.Send, mock.Anything, mock.Anything).Return(func(_ context.Context, in activities.SendInput) error {
		inputs = append(inputs, in)
		return send(len(inputs))
	})
	env.ExecuteWorkflow(wire.WorkflowSend, wire.Scheduled{ContextName: "demo", Event: []byte(`{"_tag":"UserMessageEvent","content":"Hi"}`)})
	require.True(t, env.IsWorkflowCompleted())
	return inputs, env.GetWorkflowError()
}

func TestSendRetriesWithTheIDOfTheScheduledTime(t *testing.T) {
	inputs, err := runSend(t, func(attempt int) error {
		if attempt < 6 {
			return errors.New("temporal is unreachable")
		}
		return nil
	})
	require.NoError(t, err)
	require.Len(t, inputs, 6)
	for _, in := range inputs {
		require.Equal(t, activities.SendInput{
			ContextName: "demo", ClientEventID: "schedule:daily-2026-01-02T09:00:00Z",
			Event: []byte(`{"_tag":"UserMessageEvent","content":"Hi"}`),
		}, in)
	}
}

func TestSendFailsIfTheMessageIsNotAccepted(t *testing.T) {
	inputs, err := runSend(t, func(int) error {
		return temporal.NewNonRetryableApplicationError("send to context demo: rejected: an answer is running", "NotAccepted", nil)
	})
	require.ErrorContains(t, err, "rejected: an answer is running")
	require.Len(t, inputs, 1)
}
