package rig

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

const (
	bareName   = "Bare"
	bareSignal = "message"
	bareCall   = "Call"
)

// bareLoop is the minimal workflow that answers messages, without state.
func bareLoop(ctx workflow.Context) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	messages := workflow.GetSignalChannel(ctx, bareSignal)
	for {
		var message string
		messages.Receive(ctx, &message)
		if err := workflow.ExecuteActivity(ctx, bareCall, message).Get(ctx, nil); err != nil {
			return err
		}
	}
}

// workBare runs a worker for bare workflows until its input is closed. It has the same pollers
// as a worker for contexts, so that pollers do not affect the comparison.
func workBare(s *self) error {
	ctx := context.Background()
	temporal, err := dial(ctx, s.Temporal)
	if err != nil {
		return err
	}
	defer temporal.Close()
	pollers := worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{
		InitialNumberOfPollers: 32, MinimumNumberOfPollers: 32, MaximumNumberOfPollers: 64,
	})
	w := worker.New(temporal, bareName, worker.Options{
		WorkflowTaskPollerBehavior: pollers, ActivityTaskPollerBehavior: pollers,
	})
	w.RegisterWorkflowWithOptions(bareLoop, workflow.RegisterOptions{Name: bareName})
	model := modelClient(s.Model)
	w.RegisterActivityWithOptions(func(ctx context.Context, message string) (string, error) {
		answer, err := ask(ctx, model, requestOf(message), nil)
		return answer.Content, err
	}, activity.RegisterOptions{Name: bareCall})
	registerNaive(w, model)
	if err := w.Start(); err != nil {
		return err
	}
	defer w.Stop()
	s.report(Observation{Kind: Ready, At: time.Now()})
	s.next()
	return nil
}

type Bare struct {
	temporal client.Client
	watcher  *subprocess
}

func (b *Bare) Begin(ctx context.Context, name string) error {
	_, err := b.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: name, TaskQueue: bareName}, bareName)
	return err
}

func (b *Bare) Send(ctx context.Context, name string, m Message) error {
	return b.temporal.SignalWorkflow(ctx, name, "", bareSignal, m.String())
}

func (b *Bare) Watch(name string) error { return b.watcher.order(order{Follow: name, Bare: true}) }
