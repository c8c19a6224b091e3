package rig

import (
	"context"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	sdkclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
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

// workBare runs a worker for bare workflows. It has the same pollers as a worker for contexts, so that they do
// not affect the comparison.
func workBare(r *role) error {
	temporal, err := dial(context.Background(), r.Temporal)
	if err != nil {
		return err
	}
	w := worker.New(temporal, bareName, worker.Options{MaxConcurrentWorkflowTaskPollers: 64, MaxConcurrentActivityTaskPollers: 32})
	w.RegisterWorkflowWithOptions(bareLoop, workflow.RegisterOptions{Name: bareName})
	w.RegisterActivityWithOptions(func(ctx context.Context, message string) (string, error) {
		var answer string
		err := ask(ctx, r.Model, message, func(token string) { answer += token })
		return answer, err
	}, activity.RegisterOptions{Name: bareCall})
	if err := w.Start(); err != nil {
		return err
	}
	r.ready("")
	select {}
}

// Bare has bare workflows instead of contexts.
type Bare struct {
	rig    *Rig
	worker *Process
}

// PID is that of the worker.
func (b *Bare) PID() int { return b.worker.PID() }

func (b *Bare) Begin(ctx context.Context, name string) error {
	_, err := b.rig.Temporal.ExecuteWorkflow(ctx, sdkclient.StartWorkflowOptions{ID: name, TaskQueue: bareName}, bareName)
	if err != nil {
		return err
	}
	go b.watch(name)
	_, err = b.rig.Observations.Await(ctx, Watching, name)
	return err
}

func (b *Bare) Send(ctx context.Context, name string, m Message) error {
	return b.rig.Temporal.SignalWorkflow(ctx, name, "", bareSignal, m.String())
}

// watch reports the turns that the history shows.
func (b *Bare) watch(workflowID string) {
	keys := map[int64]string{} // message keys by the id of the scheduling history event
	history := b.rig.observing.GetWorkflowHistory(b.rig.ctx, workflowID, "", true, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		h, err := history.Next()
		if err != nil {
			b.rig.failed(workflowID, err)
			return
		}
		if h.GetWorkflowExecutionStartedEventAttributes() != nil {
			b.rig.Observations.add(Observation{Kind: Watching, Key: workflowID, At: time.Now()})
		}
		if call := h.GetActivityTaskScheduledEventAttributes(); call != nil {
			var message string
			_ = converter.GetDefaultDataConverter().FromPayloads(call.GetInput(), &message)
			keys[h.GetEventId()] = KeyOf(message)
		}
		if done := h.GetActivityTaskCompletedEventAttributes(); done != nil {
			id := done.GetScheduledEventId()
			b.rig.Observations.add(Observation{Kind: Ended, Key: keys[id], At: time.Now(), Value: Completed})
			delete(keys, id)
		}
	}
}
