package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/pause"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// stickyQueryTimeout is how long a query waits for the worker that cached the workflow.
const stickyQueryTimeout = 300 * time.Millisecond

// debounce waits for a quiet period without input, or for the maximum wait, and returns the session.
func (a *attempt) debounce(ctx context.Context) (reducer.Session, error) {
	session, err := a.sessionOrLog(ctx)
	for err == nil {
		a.apply(wire.StopCheckOf(session))
		delivery := session.Reduced.Config.Delivery
		quiet := milliseconds(delivery.QuietPeriodMs) - a.serverNow().Sub(session.TriggerAt)
		if a.in.Compaction != nil {
			quiet = 0
		}
		left := milliseconds(delivery.MaxWaitMs) - time.Since(a.startedAt)
		if err = context.Cause(ctx); err != nil || min(quiet, left) <= 0 {
			break
		}
		pause.For(ctx, min(quiet, left))
		if err = context.Cause(ctx); err == nil {
			session, err = a.sessionOrLog(ctx)
		}
	}
	if err == nil && a.in.Steps == 0 && !session.TriggerAt.IsZero() {
		waited := max(0, a.serverNow().Sub(session.TriggerAt))
		a.metrics.Debounce.Observe(waited.Seconds())
		activity.GetLogger(ctx).Debug("request debounced", "request", a.in.RequestID, "attempt", a.attempted.Attempt,
			"through", reducer.ThroughOf(session), "waited_ms", waited.Milliseconds())
	}
	if err == nil && session.Reduced.Config.Budget != nil && !session.HasEnd(a.attempted.Attempt-1) {
		session, err = a.sessionAfterSignals(ctx)
	}
	if err == nil {
		a.retry = session.Reduced.Config.Retry
		a.hasFallback = session.Reduced.Config.Fallback != nil && !a.in.Fallback
		a.mu.Lock()
		a.attempted.Through = reducer.ThroughOf(session)
		a.mu.Unlock()
	}
	return session, err
}

// sessionAfterSignals returns a session that includes the signals that the server has accepted, such as the
// end of the previous attempt: the server delivers them to the workflow before it answers a query.
func (a *attempt) sessionAfterSignals(ctx context.Context) (reducer.Session, error) {
	run, _ := a.currentRun()
	check, err := a.queryStopCheck(ctx, run)
	if err != nil {
		return reducer.Session{}, fmt.Errorf("query the usage of context %s: %w", a.in.ContextName, err)
	}
	a.committed = logEnd{event.Counter(check.LastEventID), check.LastEventAt}
	return a.sessionOrLog(ctx)
}

// serverNow is the time of the server, whose clock dates events.
func (a *attempt) serverNow() time.Time { return a.info.StartedTime.Add(time.Since(a.startedAt)) }

// sessionOrLog returns the session of the workflow, or else folds the log: the workflow's worker
// may be unavailable, or the session too large for a query. A log does not show that a
// request must stop.
func (a *attempt) sessionOrLog(ctx context.Context) (reducer.Session, error) {
	session, err := a.session(ctx)
	if err == nil || ctx.Err() != nil {
		return session, err
	}
	var events []event.Event
	run, _ := a.currentRun()
	for e, logErr := range a.log.Run(ctx, a.in.ContextName, run.RunID, "") {
		if logErr != nil {
			return session, errors.Join(err, logErr)
		}
		events = append(events, e)
	}
	session = reducer.Load(a.in.ContextName, a.options.Reduce, events...)
	if session.Request == nil {
		session.Request = &reducer.Request{ID: a.in.RequestID} // a request is recorded when it is first sent
	}
	session.Request.Steps, session.Request.Limit, session.Request.Compaction = a.in.Steps, a.in.Limit, a.in.Compaction
	return session, nil
}

func (a *attempt) session(ctx context.Context) (reducer.Session, error) {
	run, _ := a.currentRun()
	if session, ok := a.cachedSession(ctx, run); ok {
		return session, nil
	}
	a.metrics.SnapshotMisses.Add(1)
	var session reducer.Session
	value, err := a.querySnapshot(ctx, run)
	if err == nil {
		err = value.Get(&session)
	}
	if err != nil {
		return reducer.Session{}, fmt.Errorf("query the session of context %s: %w", a.in.ContextName, err)
	}
	return session, nil
}

// logEnd identifies a log by its newest event. If at is zero, it is unknown, and no log matches.
type logEnd struct {
	counter int
	at      time.Time
}

func (e logEnd) isThatOf(s reducer.Session) bool {
	return e.counter == s.EventCount && !e.at.IsZero() && e.at.Equal(s.LastEventAt)
}

// cachedSession returns a session whose workflow task is committed. The cache is ahead of the
// server during a task. If the server loses the task, the log continues with other events.
func (a *attempt) cachedSession(ctx context.Context, run workflow.Execution) (session reducer.Session, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, stickyQueryTimeout)
	defer cancel()
	for isQueried := false; ; isQueried = true {
		session, ok = a.options.Cache.get(run.RunID)
		switch {
		case !ok || a.isStale(session.EventCount):
			return session, false
		case a.committed.isThatOf(session):
			return session, true
		case isQueried:
			return session, false
		}
		// The server answers queries after the task.
		check, err := a.queryStopCheck(ctx, run)
		if err != nil {
			return session, false
		}
		a.committed = logEnd{event.Counter(check.LastEventID), check.LastEventAt}
	}
}

// querySnapshot queries the workflow. From the second attempt on, the worker that has cached the workflow may be
// dead, so querySnapshot waits for it only for stickyQueryTimeout. The server itself waits for several seconds.
func (a *attempt) querySnapshot(ctx context.Context, run workflow.Execution) (converter.EncodedValue, error) {
	if a.info.Attempt > 1 {
		soon, cancel := context.WithTimeout(ctx, stickyQueryTimeout)
		value, err := a.options.Temporal.QueryWorkflow(soon, run.ID, run.RunID, wire.QuerySnapshot)
		cancel()
		if err == nil || ctx.Err() != nil || soon.Err() == nil {
			return value, err
		}
		// If this fails, the query below takes longer.
		_, _ = a.options.Temporal.WorkflowService().ResetStickyTaskQueue(ctx, &workflowservice.ResetStickyTaskQueueRequest{
			Namespace: a.info.Namespace, Execution: &commonpb.WorkflowExecution{WorkflowId: run.ID, RunId: run.RunID},
		})
	}
	return a.options.Temporal.QueryWorkflow(ctx, run.ID, run.RunID, wire.QuerySnapshot)
}

func (a *attempt) stopCheck(ctx context.Context, run workflow.Execution) (check wire.StopCheck, err error) {
	if check, ok := a.options.Cache.stopCheck(run.RunID); ok && !a.isStale(event.Counter(check.LastEventID)) {
		return check, nil
	}
	return a.queryStopCheck(ctx, run)
}

func (a *attempt) queryStopCheck(ctx context.Context, run workflow.Execution) (check wire.StopCheck, err error) {
	value, err := a.options.Temporal.QueryWorkflow(ctx, run.ID, run.RunID, wire.QueryStopCheck)
	if err != nil {
		return check, err
	}
	return check, value.Get(&check)
}
