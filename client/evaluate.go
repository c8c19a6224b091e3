package client

import (
	"context"

	enumspb "go.temporal.io/api/enums/v1"
	sdkclient "go.temporal.io/sdk/client"

	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// Evaluation is a recorded question to send again, [Evaluated] the answer, with tool calls that nothing executed.
type (
	Evaluation    = wire.Evaluation
	Evaluated     = wire.Evaluated
	EvaluatedCall = wire.EvaluatedCall
)

// Evaluate sends the request of a recorded answer of the context again, by a worker, and records nothing in the context.
// It waits for a worker and for the answer. The id identifies the evaluation in the context: another call with it waits
// for the same answer, also after this process has ended, as long as Temporal retains the workflow. A failed one is
// repeated.
func (c *Context) Evaluate(ctx context.Context, id string, e Evaluation) (Evaluated, error) {
	const operation = "evaluate an answer of"
	e.ContextName = c.name
	run, err := c.client.options.Temporal.ExecuteWorkflow(ctx, sdkclient.StartWorkflowOptions{
		ID: wire.EvaluationID(c.name, id), TaskQueue: c.client.options.TaskQueue,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY,
	}, wire.WorkflowEvaluate, e)
	if err != nil {
		return Evaluated{}, c.explain(ctx, operation, err, ErrUnreachable)
	}
	var out Evaluated
	err = run.Get(ctx, &out)
	return out, c.explain(ctx, operation, err, ErrUnreachable)
}
