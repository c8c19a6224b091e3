package doctor

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	sdkclient "go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"

	"github.com/seed-9ed7edd4/chronicle/internal/devserver"
)

func TestDoctorNamesAWorkerThatHangs(t *testing.T) {
	t.Parallel()
	command, err := devserver.Find(t.Context(), nil)
	require.NoError(t, err)
	server, err := devserver.Start(t.Context(), devserver.Options{Command: command, DataDir: t.TempDir(), Unsynced: true})
	require.NoError(t, err)
	defer server.Stop()
	d := &Deployment{
		Address: server.Address(), Namespace: server.Namespace(), TaskQueue: "contexts", IsClient: true,
		Dial: func(ctx context.Context) (sdkclient.Client, error) {
			return sdkclient.DialContext(ctx, sdkclient.Options{
				HostPort: server.Address(), Logger: sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)),
			})
		},
	}
	defer d.Close()
	temporal, err := d.Dial(t.Context())
	require.NoError(t, err)
	defer temporal.Close()
	pollOnce(t, temporal, server.Namespace())
	found := examine(t, d.Checks()...)
	requireFinding(t, found["workers.polling"], OK, "hanging")
	requireFinding(t, found["workers.report"], Error, "no worker reports")
}

// pollOnce polls the task queue for both kinds of tasks once, as a worker that hangs afterwards.
func pollOnce(t *testing.T, temporal sdkclient.Client, namespace string) {
	t.Helper()
	const identity = "hanging"
	queue := &taskqueuepb.TaskQueue{Name: "contexts", Kind: enums.TASK_QUEUE_KIND_NORMAL}
	// The server ends a poll without a task shortly before the deadline.
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	polled := make(chan struct{})
	go func() {
		defer close(polled)
		_, _ = temporal.WorkflowService().PollWorkflowTaskQueue(ctx, &workflowservice.PollWorkflowTaskQueueRequest{
			Namespace: namespace, TaskQueue: queue, Identity: identity,
		})
	}()
	_, _ = temporal.WorkflowService().PollActivityTaskQueue(ctx, &workflowservice.PollActivityTaskQueueRequest{
		Namespace: namespace, TaskQueue: queue, Identity: identity,
	})
	<-polled
}
