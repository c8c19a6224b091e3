package workflows_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/workflows"
)

func TestAnEvaluationIsRepeatedAfterARateLimit(t *testing.T) {
	env := newEnvironment("evaluate:demo:1")
	env.RegisterWorkflowWithOptions(workflows.Evaluate, workflow.RegisterOptions{Name: wire.WorkflowEvaluate})
	in := wire.Evaluation{ContextName: "demo", Through: "demo:0002", Answer: "demo:0003"}
	asked := 0
	env.OnActivity(acts.Evaluate, mock.Anything, in).Return(func(context.Context, wire.Evaluation) (wire.Evaluated, error) {
		if asked++; asked < activities.MaxEvaluations {
			return wire.Evaluated{}, temporal.NewApplicationErrorWithOptions("slow down", "rate_limited", temporal.ApplicationErrorOptions{NextRetryDelay: time.Minute})
		}
		return wire.Evaluated{Text: "Hi"}, nil
	})
	env.ExecuteWorkflow(wire.WorkflowEvaluate, in)
	var out wire.Evaluated
	require.NoError(t, env.GetWorkflowResult(&out))
	require.Equal(t, "Hi", out.Text)
	require.Equal(t, activities.MaxEvaluations, asked)
}
