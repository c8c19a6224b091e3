package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	sdkclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

func TestTheServerMatchesTheComposeFile(t *testing.T) {
	topologyOnly(t)
	w := newWorld(t)
	info, err := w.temporal.WorkflowService().GetClusterInfo(w.ctx, &workflowservice.GetClusterInfoRequest{})
	require.NoError(t, err)
	require.EqualValues(t, 4, info.GetHistoryShardCount())
	require.Equal(t, "postgres12", info.GetPersistenceStore())
	require.Equal(t, "postgres12", info.GetVisibilityStore())
}

func TestTwoWorkerProcessesShareContexts(t *testing.T) {
	topologyOnly(t)
	w := newWorld(t, llmtest.Func(func(llmtest.Request) llmtest.Step { return llmtest.Answer("Here", " I am") }))
	w.client = client.New(client.Options{Temporal: w.temporal, Stream: w.stream, TaskQueue: wire.TaskQueue})
	var mu sync.Mutex
	answeredBy := map[string]int{}
	// The server chooses the worker. Repeat rounds until each worker has answered.
	for round := 0; len(answeredBy) < 2; round++ {
		require.NoError(t, w.ctx.Err(), "only some workers answered: %v", answeredBy)
		var all sync.WaitGroup
		for i := range 20 {
			c := w.open(fmt.Sprintf("shared-%d-%d", round, i))
			all.Go(func() {
				ask := c.Ask(w.ctx,
					event.New(event.SetProviderConfig{ProviderID: "scripted", Model: "scripted", BaseURL: w.model.URL}),
					event.New(event.UserMessage{Content: "Who is there?"}))
				for e, err := range ask {
					if err != nil {
						t.Errorf("%s: %v", c.Name(), err)
						return
					}
					if m, ok := e.Body.(event.AssistantMessage); ok && m.Content != "Here I am" {
						t.Errorf("%s: %q", c.Name(), m.Content)
					}
				}
				who, err := startedActivity(w.ctx, w.temporal, wire.WorkflowID(c.Name()))
				if err != nil {
					t.Errorf("%s: %v", c.Name(), err)
				}
				mu.Lock()
				defer mu.Unlock()
				answeredBy[who]++
			})
		}
		all.Wait()
		require.False(t, t.Failed())
	}
}

func startedActivity(ctx context.Context, temporal sdkclient.Client, workflowID string) (string, error) {
	events := temporal.GetWorkflowHistory(ctx, workflowID, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			return "", err
		}
		if started := e.GetActivityTaskStartedEventAttributes(); started != nil {
			return started.GetIdentity(), nil
		}
	}
	return "", fmt.Errorf("no activity of %s was started", workflowID)
}

func TestAContextIsFoundByItsSearchAttributes(t *testing.T) {
	w := newWorld(t, llmtest.Answer("Yes."))
	w.worker()
	c := w.open("found")
	w.say(c, "Anyone?")
	query := fmt.Sprintf("WorkflowId = '%s' AND ContextStatus = 'idle' AND ContextTurns = 1 AND ContextModel = 'scripted'", wire.WorkflowID(c.Name()))
	require.Eventually(t, func() bool {
		for found, err := range w.client.List(w.ctx, query) {
			return err == nil && found.ContextName == c.Name() && found.Turns == 1
		}
		return false
	}, testTimeout, 20*time.Millisecond)
}

func TestActivityCancellationIsPushedToTheWorker(t *testing.T) {
	topologyOnly(t)
	w := newWorld(t)
	// Without heartbeats, their responses cannot deliver the cancellation.
	started := make(chan struct{})
	listen := func(ctx context.Context) error {
		close(started)
		<-ctx.Done()
		return ctx.Err()
	}
	cancelIt := func(ctx workflow.Context) error {
		ctx, cancel := workflow.WithCancel(workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			StartToCloseTimeout: time.Hour, WaitForCancellation: true, DisableEagerExecution: true,
		}))
		running := workflow.ExecuteActivity(ctx, "Listen")
		workflow.GetSignalChannel(ctx, "cancel").Receive(ctx, nil)
		cancel()
		return running.Get(ctx, nil)
	}
	running, err := w.connection().NewWorker(w.workerOptions())
	require.NoError(t, err)
	running.RegisterActivityWithOptions(listen, activity.RegisterOptions{Name: "Listen"})
	running.RegisterWorkflowWithOptions(cancelIt, workflow.RegisterOptions{Name: "CancelIt"})
	require.NoError(t, running.Start())
	t.Cleanup(running.Stop)
	execution, err := w.temporal.ExecuteWorkflow(w.ctx, sdkclient.StartWorkflowOptions{TaskQueue: w.queue}, "CancelIt")
	require.NoError(t, err)
	select {
	case <-started:
	case <-w.ctx.Done():
		require.NoError(t, w.ctx.Err())
	}
	require.NoError(t, w.temporal.SignalWorkflow(w.ctx, execution.GetID(), execution.GetRunID(), "cancel", nil))
	asked := time.Now()
	require.ErrorContains(t, execution.Get(w.ctx, nil), "canceled")
	t.Logf("cancelled after %v", time.Since(asked).Round(time.Millisecond))
}
