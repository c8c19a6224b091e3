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

const (
	workflowName = "Doctor"
	// updateName is the name of the update that returns the result of a workflow that [Linger] runs.
	updateName = "result"
	// maxLife bounds a workflow whose doctor was killed before it deleted the workflow.
	maxLife = time.Minute
	// deletionTimeout is the part of a check's timeout that remains for the deletion.
	deletionTimeout = 3 * time.Second
)

// execute runs a workflow with a worker of its own in this process, and returns its result.
func (d *Deployment) execute(ctx context.Context, run func(workflow.Context) ([]Finding, error)) (found []Finding, err error) {
	ctx, cancel := shortened(ctx)
	defer cancel()
	queue := "doctor/" + rand.Text()
	w := worker.New(d.temporal, queue, worker.Options{})
	w.RegisterWorkflowWithOptions(func(ctx workflow.Context) error { return Linger(ctx, run) }, workflow.RegisterOptions{Name: workflowName})
	if err := w.Start(); err != nil {
		return nil, err
	}
	defer w.Stop()
	err = ResultOf(ctx, d.temporal, d.Namespace, startOptions(queue), workflowName, &found)
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

// Linger is the body of a workflow for [ResultOf]: it ends when it is deleted. The server deletes an open workflow at
// once, but a closed one only after a while.
func Linger[T any](ctx workflow.Context, run func(workflow.Context) (T, error)) error {
	result, settable := workflow.NewFuture(ctx)
	err := workflow.SetUpdateHandler(ctx, updateName, func(ctx workflow.Context) (value T, err error) {
		err = result.Get(ctx, &value)
		return value, err
	})
	if err != nil {
		return err
	}
	settable.Set(run(ctx))
	return workflow.Await(ctx, func() bool { return false })
}

// ResultOf starts a workflow that lingers, decodes its result, and deletes it.
func ResultOf(ctx context.Context, c sdkclient.Client, namespace string, options sdkclient.StartWorkflowOptions, name string, result any, input ...any) error {
	started, err := c.ExecuteWorkflow(ctx, options, name, input...)
	if err != nil {
		return err
	}
	defer discard(ctx, c, namespace, started)
	update, err := c.UpdateWorkflow(ctx, sdkclient.UpdateWorkflowOptions{
		WorkflowID: started.GetID(), RunID: started.GetRunID(), UpdateName: updateName, WaitForStage: sdkclient.WorkflowUpdateStageCompleted,
	})
	if err != nil {
		return err
	}
	return update.Get(ctx, result)
}

// discard deletes a workflow, even after ctx is done, so that lists do not show it. Without the permission, the
// workflow times out and stays until the retention ends.
func discard(ctx context.Context, c sdkclient.Client, namespace string, run sdkclient.WorkflowRun) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deletionTimeout)
	defer cancel()
	_, _ = c.WorkflowService().DeleteWorkflowExecution(ctx, &workflowservice.DeleteWorkflowExecutionRequest{
		Namespace:         namespace,
		WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: run.GetID(), RunId: run.GetRunID()},
	})
}
