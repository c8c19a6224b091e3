package doctor

import (
	"context"
	"crypto/rand"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	sdkclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// workflowName is the type of the doctor's workflows, and the name of their update.
const workflowName = "Doctor"

const (
	// maxLife bounds a workflow whose doctor was killed before it deleted the workflow.
	maxLife = time.Minute
	// deletionTimeout is the part of a check's timeout that remains for the deletion.
	deletionTimeout = 3 * time.Second
)

// body is a workflow function.
type body func(workflow.Context) ([]Finding, error)

// execute runs a workflow with a worker of its own in this process, and returns its result.
// The workflow stays open until it is deleted, because the server deletes an open one at once, but a
// closed one only after a while.
func (d *Deployment) execute(ctx context.Context, run body) (found []Finding, err error) {
	ctx, cancel := shortened(ctx)
	defer cancel()
	queue := "doctor/" + rand.Text()
	w := worker.New(d.temporal, queue, worker.Options{})
	w.RegisterWorkflowWithOptions(lingering(run), workflow.RegisterOptions{Name: workflowName})
	if err := w.Start(); err != nil {
		return nil, err
	}
	defer w.Stop()
	started, err := d.temporal.ExecuteWorkflow(ctx, startOptions(queue), workflowName)
	if err != nil {
		return nil, err
	}
	defer Delete(ctx, d.temporal, d.Namespace, started)
	update, err := d.temporal.UpdateWorkflow(ctx, sdkclient.UpdateWorkflowOptions{
		WorkflowID: started.GetID(), RunID: started.GetRunID(), UpdateName: workflowName, WaitForStage: sdkclient.WorkflowUpdateStageCompleted,
	})
	if err != nil {
		return nil, err
	}
	err = update.Get(ctx, &found)
	return found, err
}

// shortened leaves time for the deletion of a workflow.
func shortened(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, deadline.Add(-deletionTimeout))
}

func startOptions(queue string) sdkclient.StartWorkflowOptions {
	return sdkclient.StartWorkflowOptions{
		ID: "doctor:" + rand.Text(), TaskQueue: queue, WorkflowExecutionTimeout: maxLife, StaticSummary: "check of a deployment",
	}
}

// lingering returns a workflow that ends when it is deleted.
func lingering(run body) func(workflow.Context) error {
	return func(ctx workflow.Context) error {
		result, settable := workflow.NewFuture(ctx)
		err := workflow.SetUpdateHandler(ctx, workflowName, func(ctx workflow.Context) (found []Finding, err error) {
			err = result.Get(ctx, &found)
			return found, err
		})
		if err != nil {
			return err
		}
		settable.Set(run(ctx))
		return workflow.Await(ctx, func() bool { return false })
	}
}

// Delete deletes a workflow, even after ctx is done, so that lists do not show it. Without the
// permission, the workflow times out and stays until the retention ends.
func Delete(ctx context.Context, c sdkclient.Client, namespace string, run sdkclient.WorkflowRun) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deletionTimeout)
	defer cancel()
	_, _ = c.WorkflowService().DeleteWorkflowExecution(ctx, &workflowservice.DeleteWorkflowExecutionRequest{
		Namespace:         namespace,
		WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: run.GetID(), RunId: run.GetRunID()},
	})
}
