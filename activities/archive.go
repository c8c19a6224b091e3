package activities

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
)

// ArchiveTimeout bounds one attempt of [Activities.Archive].
const ArchiveTimeout = time.Minute

// ArchiveInput is the input of [Activities.Archive].
type ArchiveInput struct {
	ContextName string `json:"contextName"`
	// Through is the counter of the newest recorded event to archive.
	Through int `json:"through"`
	// Earlier means that the archive may lack events of earlier runs, too.
	Earlier bool `json:"earlier,omitempty"`
}

// Archive writes the events that the archive lacks as one segment, so that the server may delete
// the history. It is idempotent. It sends heartbeats, so that another worker takes over soon
// after a worker is killed. It completes even if its run closes in the meantime.
func (a *Activities) Archive(ctx context.Context, in ArchiveInput) error {
	ctx, stop := withHeartbeats(ctx)
	defer stop()
	if in.Earlier {
		_, err := a.log.Archive(ctx, in.ContextName, in.Through)
		return err
	}
	return a.log.ArchiveRun(ctx, in.ContextName, activity.GetInfo(ctx).WorkflowExecution.RunID, in.Through)
}

// withHeartbeats sends heartbeats for an activity until stop is called. The returned context
// ends with the attempt or the worker. It ignores heartbeat responses that the activity was
// cancelled or its run has closed.
func withHeartbeats(ctx context.Context) (work context.Context, stop func()) {
	work, cancel := context.WithDeadline(context.WithoutCancel(ctx), activity.GetInfo(ctx).Deadline)
	var beats sync.WaitGroup
	beats.Go(func() {
		ticker := time.NewTicker(heartbeatInterval)
		defer ticker.Stop()
		cancelled := ctx.Done()
		for {
			select {
			case <-work.Done():
				return
			case <-cancelled:
				if errors.Is(context.Cause(ctx), worker.ErrWorkerShutdown) {
					cancel()
				}
				cancelled = nil
			case <-ticker.C:
				activity.RecordHeartbeat(ctx)
			}
		}
	})
	return work, func() {
		cancel()
		beats.Wait()
	}
}
