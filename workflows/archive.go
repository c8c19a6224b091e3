package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/activities"
)

const (
	// archiveWait bounds how long pending effects are delayed by the wait for the archive. If that
	// is too short, a later attempt to continue as new finds the archive complete.
	archiveWait   = 250 * time.Millisecond
	maxUnarchived = 200 // events that the archive may lag behind
)

type archived struct {
	through      int             // counter of the last event that this run archived
	running      workflow.Future // the Archive activity, up to next. Nil: none
	next         position
	complete     position // up to which the archive is known to be complete, for metrics; zero: unknown
	isIncomplete bool     // events of earlier runs may be missing
}

// position is the end of the log at some time.
type position struct {
	through int // counter of the newest event
	at      time.Time
}

func (r *run) position() position { return position{r.session.EventCount, r.now()} }

// isArchived reports whether the archive lags so little that the next run can complete it. If not,
// it archives in the background, and waits up to archiveWait. A run that has archived nothing continues
// as new only if it must: the store may be unavailable, and the next run could not open.
func (r *run) isArchived() bool {
	if r.archived.running == nil && !r.isArchivedEnough() {
		r.startArchiving()
		_, _ = workflow.AwaitWithTimeout(r.ctx, archiveWait, r.archived.running.IsReady)
	}
	if r.archived.running != nil && r.archived.running.IsReady() {
		if r.archived.running.Get(r.ctx, nil) == nil {
			r.archived.through, r.archived.isIncomplete = r.archived.next.through, false
			r.archived.complete = r.archived.next
		}
		r.archived.running = nil
	}
	return r.isArchivedEnough()
}

func (r *run) isArchivedEnough() bool {
	return r.archived.through > 0 && r.session.EventCount-r.archived.through <= maxUnarchived
}

func (r *run) startArchiving() {
	r.archived.running, r.archived.next = r.archive(r.ctx), r.position()
}

func (r *run) archive(ctx workflow.Context) workflow.Future {
	options := workflow.GetActivityOptions(ctx)
	options.StartToCloseTimeout, options.HeartbeatTimeout = activities.ArchiveTimeout, r.failover()
	options.RetryPolicy = &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, MaximumInterval: 5 * time.Second}
	options.Summary = "archive up to " + r.session.LastEventID()
	return workflow.ExecuteActivity(workflow.WithActivityOptions(r.traced(ctx), options), acts.Archive,
		activities.ArchiveInput{ContextName: r.name, Through: r.session.EventCount, Earlier: r.archived.isIncomplete})
}

// archiveEndedSession waits for the archive without a time limit, but returns when new input
// arrives.
func (r *run) archiveEndedSession() {
	ctx, cancel := workflow.WithCancel(r.ctx)
	defer cancel()
	done := r.archive(ctx)
	r.await(func() bool { return done.IsReady() || !r.inbox.empty() })
}
