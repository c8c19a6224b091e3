package activities

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// ArchiveTimeout bounds one attempt of [Activities.Archive].
const ArchiveTimeout = time.Minute

// ArchiveInput is the input of [Activities.Archive].
type ArchiveInput struct {
	ContextName string `json:"contextName"`
	Through     int    `json:"through"`           // counter of the newest event to archive
	Earlier     bool   `json:"earlier,omitempty"` // the archive may also lack events of earlier runs
}

// Archive writes the events that the archive lacks, as one segment per run, so that the server may
// delete the history. It is idempotent. Its heartbeats let another worker replace a killed one. It
// completes even if its run closes in the meantime.
func (a *Activities) Archive(ctx context.Context, in ArchiveInput) error {
	ctx, stop := withHeartbeats(ctx)
	defer stop()
	var err error
	if in.Earlier {
		_, err = a.log.Archive(ctx, in.ContextName, in.Through)
	} else {
		err = a.log.ArchiveRun(ctx, in.ContextName, activity.GetInfo(ctx).WorkflowExecution.RunID, in.Through)
	}
	if err == nil {
		activity.GetLogger(ctx).Info("events archived", "through", event.FormatID(in.ContextName, in.Through))
	}
	return err
}

// withHeartbeats sends heartbeats until stop is called. Work ends with the attempt or the worker,
// but not when a heartbeat reports that the activity was cancelled or its run has closed.
func withHeartbeats(ctx context.Context) (work context.Context, stop func()) {
	work, cancel := context.WithDeadline(context.WithoutCancel(ctx), activity.GetInfo(ctx).Deadline)
	end := beat(ctx, ctx.Done(), func() {
		if errors.Is(context.Cause(ctx), worker.ErrWorkerShutdown) {
			cancel()
		}
	})
	return work, func() {
		cancel()
		end()
	}
}

// beat sends heartbeats until end is called, and calls do once when a channel is closed.
func beat(ctx context.Context, closed <-chan struct{}, do func()) (end func()) {
	ended := make(chan struct{})
	var beats sync.WaitGroup
	beats.Go(func() {
		ticker := time.NewTicker(heartbeatInterval(activity.GetInfo(ctx)))
		defer ticker.Stop()
		for {
			select {
			case <-ended:
				return
			case <-closed:
				do()
				closed = nil
			case <-ticker.C:
				activity.RecordHeartbeat(ctx)
			}
		}
	})
	return func() {
		close(ended)
		beats.Wait()
	}
}
