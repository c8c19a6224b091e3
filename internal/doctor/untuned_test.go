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

// A busy machine only makes hops longer and timers later.
func TestDoctorFindsAServerWithDefaultSettings(t *testing.T) {
	t.Parallel()
	command, err := devserver.Find(t.Context(), nil)
	require.NoError(t, err)
	server, err := devserver.Start(t.Context(), devserver.Options{Command: command, DataDir: t.TempDir(), Untuned: true, Unsynced: true})
	require.NoError(t, err)
	defer server.Stop()
	dial := func(ctx context.Context) (sdkclient.Client, error) {
		return sdkclient.DialContext(ctx, sdkclient.Options{
			HostPort: server.Address(), Logger: sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)),
		})
	}
	deployment := func(t *testing.T) *Deployment {
		d := &Deployment{Address: server.Address(), Namespace: server.Namespace(), TaskQueue: "contexts", Dial: dial}
		t.Cleanup(d.Close)
		return d
	}

	t.Run("slow tasks and late timers", func(t *testing.T) {
		// How late a timer is depends on when it starts: up to a second.
		seen := map[string]Finding{}
		for range 10 {
			d := deployment(t)
			for name, f := range examine(t, d.connection(), d.namespace(), d.hop(), d.timer()) {
				if f.Severity == Warning {
					seen[name] = f
				}
			}
			if len(seen) == 2 {
				break
			}
		}
		requireFinding(t, seen["temporal.hop"], Warning, "more than 25ms")
		require.Contains(t, seen["temporal.hop"].Fix, "history.transferProcessorMaxPollRPS: 200")
		requireFinding(t, seen["temporal.timer"], Warning, "late, more than 250ms")
		require.Contains(t, seen["temporal.timer"].Fix, "history.timerProcessorMaxTimeShift: 1ms")
	})

	t.Run("a worker that hangs", func(t *testing.T) {
		temporal, err := dial(t.Context())
		require.NoError(t, err)
		defer temporal.Close()
		pollOnce(t, temporal, server.Namespace())
		d := deployment(t)
		found := examine(t, d.connection(), d.namespace(), d.polling(), d.report())
		requireFinding(t, found["workers.polling"], OK, "hanging")
		requireFinding(t, found["workers.report"], Error, "no worker reports")
	})
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
