package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	sdkclient "go.temporal.io/sdk/client"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

// The server doubles the timeout of a workflow task with each failed attempt, by default up to ten
// minutes. After an outage of the blob store, a killed worker would hold its tasks that long.
func TestAnOutageAndAKilledWorkerDelayAContextBriefly_Long(t *testing.T) {
	long(t)
	t.Parallel()
	w := newWorld(t, llmtest.Func(echo))
	c := w.open("held-task")
	sent, err := c.Send(w.ctx, event.New(event.UserMessage{Content: "m0"}))
	require.NoError(t, err)
	require.Empty(t, sent.EventIDs)

	// The tenth attempt has a timeout of five minutes by default.
	const attempts = 10
	for attempt := int32(1); attempt < attempts; attempt++ {
		task := w.takeWorkflowTask()
		require.Equal(t, attempt, task.GetAttempt())
		_, err := w.temporal.WorkflowService().RespondWorkflowTaskFailed(w.ctx, &workflowservice.RespondWorkflowTaskFailedRequest{
			Namespace: sdkclient.DefaultNamespace, TaskToken: task.GetTaskToken(),
			Cause: enumspb.WORKFLOW_TASK_FAILED_CAUSE_WORKFLOW_WORKER_UNHANDLED_FAILURE,
		})
		require.NoError(t, err)
	}
	require.EqualValues(t, attempts, w.takeWorkflowTask().GetAttempt())

	w.worker()
	for e, err := range c.Follow(w.ctx, client.FollowOptions{}) {
		require.NoError(t, err)
		if e.Tag() == event.TagLLMRequestCompleted {
			return
		}
	}
	t.Fatal("the message was not answered")
}

// takeWorkflowTask takes a task of the queue, as a worker does.
func (w *world) takeWorkflowTask() *workflowservice.PollWorkflowTaskQueueResponse {
	w.t.Helper()
	for {
		task, err := w.temporal.WorkflowService().PollWorkflowTaskQueue(w.ctx, &workflowservice.PollWorkflowTaskQueueRequest{
			Namespace: sdkclient.DefaultNamespace, Identity: "killed",
			TaskQueue: &taskqueuepb.TaskQueue{Name: w.queue, Kind: enumspb.TASK_QUEUE_KIND_NORMAL},
		})
		require.NoError(w.t, err)
		if len(task.GetTaskToken()) > 0 {
			return task
		}
	}
}
