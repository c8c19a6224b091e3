package client

import (
	"context"
	"encoding/json"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	sdkclient "go.temporal.io/sdk/client"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// Evaluation is a recorded question to send again, [Evaluated] the answer, with tool calls that nothing executed.
type (
	Evaluation    = wire.Evaluation
	Evaluated     = wire.Evaluated
	EvaluatedCall = wire.EvaluatedCall
)

// maxEvaluationBytes keeps an evaluation below [blobs.PayloadThreshold]: workers do not resolve references in the inputs of
// workflows.
const maxEvaluationBytes = 48 << 10

// Evaluate sends the request of a recorded answer of the context again, by a worker, and records nothing in the context.
// It waits for a worker and for the answer. The id identifies the evaluation in the context: another call with it waits
// for the same answer, also after this process has ended, as long as Temporal retains the workflow. A failed one is
// repeated. The error is a *event.FieldError for an evaluation, such as a system prompt, of more than 48 KiB.
func (c *Context) Evaluate(ctx context.Context, id string, e Evaluation) (Evaluated, error) {
	const operation = "evaluate an answer of"
	e.ContextName = c.name
	data, err := json.Marshal(e)
	if err != nil {
		return Evaluated{}, err
	}
	if len(data) > maxEvaluationBytes {
		return Evaluated{}, &event.FieldError{Field: "system", Problem: fmt.Sprintf(
			"the evaluation has %d bytes of JSON (at most %d)", len(data), maxEvaluationBytes)}
	}
	run, err := c.client.options.Temporal.ExecuteWorkflow(ctx, sdkclient.StartWorkflowOptions{
		ID: wire.EvaluationID(c.name, id), TaskQueue: c.client.options.TaskQueue,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY,
	}, wire.WorkflowEvaluate, e)
	if err != nil {
		return Evaluated{}, c.explain(ctx, operation, err, ErrBusy)
	}
	var out Evaluated
	err = run.Get(ctx, &out)
	return out, c.explain(ctx, operation, err, ErrBusy)
}
