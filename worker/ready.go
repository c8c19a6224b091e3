package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/stream"
	"github.com/seed-9ed7edd4/chronicle/wire"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

// readyWithin is how long the way through Temporal may take to open. A server
// may take a minute to notice a new search attribute.
const readyWithin = 90 * time.Second

// readyRetry is the least time between two attempts.
const readyRetry = 250 * time.Millisecond

// readyName is the type of the workflow, of its activity and of its update.
const readyName = "Ready"

// readyLingers is how long the workflow stays open for whoever started it to
// delete it: the server deletes an open one at once, and one that was closed
// only after it wrote down, every half a minute, how far it has got.
const readyLingers = 10 * time.Second

// readyInput says what to try.
type readyInput struct {
	SearchAttributes bool `json:"searchAttributes"`
	Activities       bool `json:"activities"`
}

// probe goes the way of a turn, from a workflow to an activity to NATS and the
// model, in a workflow of its own.
type probe struct {
	// stream is flushed, unless it is nil.
	stream *stream.Conn
	// modelURL has to answer, unless it is empty.
	modelURL string
}

func (p *probe) register(w worker.Registry, part contexts.Part) {
	if part != contexts.OnlyActivities {
		w.RegisterWorkflowWithOptions(readyWorkflow, workflow.RegisterOptions{Name: readyName})
	}
	w.RegisterActivityWithOptions(p.reach, activity.RegisterOptions{Name: readyName})
}

// readyWorkflow tries, and tells by update how that ended.
func readyWorkflow(ctx workflow.Context, in readyInput) error {
	tried, ended := workflow.NewFuture(ctx)
	err := workflow.SetUpdateHandler(ctx, readyName, func(ctx workflow.Context) error { return tried.Get(ctx, nil) })
	if err != nil {
		return err
	}
	ended.SetError(try(ctx, in))
	return workflow.Sleep(ctx, readyLingers)
}

func try(ctx workflow.Context, in readyInput) error {
	if in.SearchAttributes {
		// On a server that does not know them this blocks the workflow, as it
		// would block a context.
		err := workflow.UpsertTypedSearchAttributes(ctx,
			temporal.NewSearchAttributeKeyKeyword(wire.AttributeStatus).ValueSet(string(wire.StatusIdle)),
			temporal.NewSearchAttributeKeyInt64(wire.AttributeTurns).ValueSet(0),
			temporal.NewSearchAttributeKeyKeyword(wire.AttributeModel).ValueSet(""),
		)
		if err != nil {
			return err
		}
	}
	if !in.Activities {
		return nil
	}
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: 5 * time.Second,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, MaximumInterval: time.Second},
	})
	return workflow.ExecuteActivity(ctx, readyName).Get(ctx, nil)
}

// reach is the activity.
func (p *probe) reach(ctx context.Context) error {
	if p.stream != nil {
		if err := p.stream.Flush(ctx); err != nil {
			return fmt.Errorf("nats: %w", err)
		}
	}
	if p.modelURL == "" {
		return nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.modelURL+"/models", nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("offline model: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("offline model: GET %s: %s", request.URL, response.Status)
	}
	return nil
}

// await returns when the way is open. A server that has not noticed the search
// attributes fails the task that carries the answer; a new workflow finds out
// sooner than that one, whose task has to time out first.
func await(ctx context.Context, c client.Client, namespace, taskQueue string, in readyInput) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyWithin, fmt.Errorf("no answer within %v", readyWithin))
	defer cancel()
	ticker := time.NewTicker(readyRetry)
	defer ticker.Stop()
	for {
		err := attempt(ctx, c, namespace, taskQueue, in)
		if err == nil {
			return nil
		}
		if errors.As(err, new(*serviceerror.WorkflowNotReady)) {
			select {
			case <-ctx.Done():
			case <-ticker.C:
				continue
			}
		}
		if ctx.Err() != nil {
			err = errors.Join(context.Cause(ctx), err)
		}
		return fmt.Errorf("contexts on task queue %q cannot answer: %w", taskQueue, err)
	}
}

// attempt goes the way once.
func attempt(ctx context.Context, c client.Client, namespace, taskQueue string, in readyInput) error {
	run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID:                       "ready:" + uuid.NewString(),
		TaskQueue:                taskQueue,
		WorkflowExecutionTimeout: readyWithin,
		StaticSummary:            "a worker looks whether contexts can answer",
	}, readyName, in)
	if err != nil {
		return err
	}
	defer forget(ctx, c, namespace, run)
	return outcome(ctx, c, run)
}

// outcome waits for what the workflow tells.
func outcome(ctx context.Context, c client.Client, run client.WorkflowRun) error {
	update, err := c.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID:   run.GetID(),
		RunID:        run.GetRunID(),
		UpdateName:   readyName,
		WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err != nil {
		return err
	}
	return update.Get(ctx, nil)
}

// forget deletes the workflow so that lists stay clean. Where that is not
// allowed, it ends by itself and stays for as long as the namespace keeps
// workflows.
func forget(ctx context.Context, c client.Client, namespace string, run client.WorkflowRun) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_, _ = c.WorkflowService().DeleteWorkflowExecution(ctx, &workflowservice.DeleteWorkflowExecutionRequest{
		Namespace:         namespace,
		WorkflowExecution: &common.WorkflowExecution{WorkflowId: run.GetID(), RunId: run.GetRunID()},
	})
}
