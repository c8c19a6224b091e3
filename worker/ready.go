package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/internal/doctor"
	"github.com/seed-9ed7edd4/chronicle/internal/stream"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

// A server may take a minute to notice new search attributes.
const readyTimeout = 90 * time.Second

const readyRetryInterval = 250 * time.Millisecond

// readyName is the type of the workflow and its activity.
const readyName = "Ready"

type readyInput struct {
	SearchAttributes bool `json:"searchAttributes"`
	DetailAttributes bool `json:"detailAttributes"`
	Activities       bool `json:"activities"`
}

// probe takes the path of a turn, from a workflow to an activity to NATS and the model, in a
// workflow of its own.
type probe struct {
	// stream is flushed unless nil.
	stream *stream.Conn
	// modelURL must respond unless empty.
	modelURL string
}

func (p *probe) register(w worker.Registry, part contexts.Part) {
	if part != contexts.OnlyActivities {
		w.RegisterWorkflowWithOptions(readyWorkflow, workflow.RegisterOptions{Name: readyName})
	}
	w.RegisterActivityWithOptions(p.reach, activity.RegisterOptions{Name: readyName})
}

func readyWorkflow(ctx workflow.Context, in readyInput) error {
	return doctor.Linger(ctx, func(ctx workflow.Context) (any, error) { return nil, try(ctx, in) })
}

func try(ctx workflow.Context, in readyInput) error {
	// On a server without these attributes this blocks the workflow, as it would block a context.
	var updates []temporal.SearchAttributeUpdate
	if in.SearchAttributes {
		updates = append(updates,
			temporal.NewSearchAttributeKeyKeyword(wire.AttributeStatus).ValueSet(string(wire.StatusIdle)),
			temporal.NewSearchAttributeKeyInt64(wire.AttributeTurns).ValueSet(0),
			temporal.NewSearchAttributeKeyKeyword(wire.AttributeModel).ValueSet(""),
		)
	}
	if in.DetailAttributes {
		updates = append(updates,
			temporal.NewSearchAttributeKeyKeyword(wire.AttributeTitle).ValueSet(""),
			temporal.NewSearchAttributeKeyKeywordList(wire.AttributeLabels).ValueSet([]string{"ready"}),
		)
	}
	if len(updates) > 0 {
		if err := workflow.UpsertTypedSearchAttributes(ctx, updates...); err != nil {
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

// await returns when the check succeeds. A server that has not noticed the search attributes fails
// the task that carries the result. await then starts a new workflow, which succeeds sooner than
// the old one, whose task has to time out first.
func await(ctx context.Context, c client.Client, namespace, taskQueue string, in readyInput) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("no answer within %v", readyTimeout))
	defer cancel()
	ticker := time.NewTicker(readyRetryInterval)
	defer ticker.Stop()
	for {
		options := client.StartWorkflowOptions{
			ID: "ready:" + rand.Text(), TaskQueue: taskQueue, WorkflowExecutionTimeout: readyTimeout, StaticSummary: "readiness check of a worker",
		}
		err := doctor.ResultOf(ctx, c, namespace, options, readyName, nil, in)
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
