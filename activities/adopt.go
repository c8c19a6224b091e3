package activities

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// An attempt runs in its own goroutine, and activities wait for its result: the one that started
// it, and, if the run continues as new, one of the next run. Temporal schedules the latter on the
// task queue of this process, where it finds the attempt by its key. The attempt publishes its deltas
// all the time, so clients do not notice the change of runs.

// adoptWithin is how long an attempt runs without a waiting activity, and how long its result is
// kept. On a busy machine, a flood of signals can delay the next run by more than a minute.
const adoptWithin = 2 * time.Minute

// AdoptTimeout is the ScheduleToStartTimeout of an activity that adopts an attempt. After a flood
// of signals, a busy process can take more than 2 s to start it.
const AdoptTimeout = 10 * time.Second

const describeTimeout = 2 * time.Second

type attemptKey struct {
	contextName, requestID string
	number                 int
}

// attempts holds the attempts of this process, running or finished less than adoptWithin ago.
type attempts struct {
	mu    sync.Mutex
	byKey map[attemptKey]*attempt
}

func newAttempts() *attempts { return &attempts{byKey: map[attemptKey]*attempt{}} }

func (r *attempts) add(a *attempt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byKey[a.key] = a
}

func (r *attempts) find(key attemptKey) *attempt {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byKey[key]
}

// traceOf returns the traceparent of an attempt; empty: unknown.
func (r *attempts) traceOf(key attemptKey) string {
	if a := r.find(key); a != nil {
		return a.trace
	}
	return ""
}

func (a *attempt) hasEnded() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

// removeLater keeps a finished attempt for adoption: the run may have closed just before it
// received the result.
func (r *attempts) removeLater(a *attempt) {
	time.AfterFunc(adoptWithin, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.byKey[a.key] == a {
			delete(r.byKey, a.key)
		}
	})
}

// currentRun returns the run of the newest waiter. Changed is closed when that run changes.
func (a *attempt) currentRun() (_ workflow.Execution, changed <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.current, a.changed
}

func (a *attempt) addWaiter(run workflow.Execution) *workflow.Execution {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.orphaned != nil {
		a.orphaned.Stop()
		a.orphaned = nil
	}
	a.waiters = append(a.waiters, &run)
	a.setCurrentRun(run)
	return &run
}

func (a *attempt) removeWaiter(w *workflow.Execution) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiters = slices.DeleteFunc(a.waiters, func(other *workflow.Execution) bool { return other == w })
	if n := len(a.waiters); n > 0 {
		a.setCurrentRun(*a.waiters[n-1])
		return
	}
	a.orphaned = time.AfterFunc(adoptWithin, func() { a.cancel(errOrphaned) })
}

func (a *attempt) setCurrentRun(run workflow.Execution) {
	if a.changed != nil {
		close(a.changed)
	}
	a.current, a.changed = run, make(chan struct{})
}

func (a *attempt) wait(ctx context.Context, w *workflow.Execution) (GenerateResult, error) {
	var heartbeats sync.WaitGroup
	defer heartbeats.Wait()
	// A failed heartbeat cancels ctx, which is no reason to stop the request.
	beating, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	hasReported := false // guarded by heartbeats
	givenUp := make(chan error, 1)
	heartbeats.Go(func() { hasReported = a.heartbeat(beating, ctx, *w, givenUp) })
	cancelled := ctx.Done()
	for {
		var cause error
		select {
		case <-a.done:
			stop()
			heartbeats.Wait()
			if a.err != nil && (hasReported || a.lost != nil || a.isBudgeted || a.nextRepair != nil) {
				a.recordHeartbeat(ctx, cmp.Or(a.nextRepair, a.repair)) // for the worker of the next attempt
			}
			a.traceOutcome(ctx)
			return a.result, a.err
		case <-cancelled:
			cancelled, cause = nil, context.Cause(ctx)
		case cause = <-givenUp:
		}
		switch {
		case !isFinal(cause):
		case a.isContinued(ctx, cause, *w):
			a.removeWaiter(w)
			return GenerateResult{}, activity.ErrResultPending // the run is closed
		default:
			a.cancel(cause)
		}
	}
}

// isFinal reports whether the server has given up on the activity: the workflow cancelled it, it
// timed out, or its run has closed.
func isFinal(cause error) bool {
	return temporal.IsCanceledError(cause) || errors.Is(cause, context.Canceled) || errors.Is(cause, context.DeadlineExceeded) ||
		errors.As(cause, new(*serviceerror.NotFound))
}

// isContinued reports whether the run has continued as new, instead of cancelling the activity.
func (a *attempt) isContinued(ctx context.Context, cause error, run workflow.Execution) bool {
	if errors.Is(cause, context.DeadlineExceeded) {
		return false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), describeTimeout)
	defer cancel()
	d, err := a.options.Temporal.DescribeWorkflowExecution(ctx, run.ID, run.RunID)
	return err == nil && d.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW
}

// progress returns heartbeat details, which the next attempt or the workflow reports if this worker
// dies.
func (a *attempt) progress() LostAttempt {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.lost != nil && !a.attempted.Sent {
		lost := *a.lost
		lost.Unsent = a.attempted.Attempt
		return lost
	}
	lost := LostAttempt{Attempted: a.attempted, Trace: a.trace, Ended: a.hasEnded()}
	if a.model != nil {
		lost.Usage = a.model.Usage()
	}
	if len(a.options.Budgets) > 0 {
		lost.RunID, lost.Deadline = a.info.WorkflowExecution.RunID, a.deadline
	}
	return lost
}

// heartbeat sends heartbeats, and cancels the attempt on hand-back or if a stop check says so. It
// reports whether it sent any.
//
// The SDK cancels ofActivity when a heartbeat fails, even if Temporal is only unreachable for some seconds. A
// context is cancelled only once, so its cause cannot report that the server gives up on the activity later.
// Therefore, once ofActivity is cancelled, this function sends heartbeats with the client's
// RecordActivityHeartbeat, which, unlike activity.RecordHeartbeat, returns the server's answer. If an answer says
// that the server has given up, and the cause does not, the error is sent to givenUp, once. The heartbeats of a
// cancelled activity continue, because it may still have to report its text.
func (a *attempt) heartbeat(ctx, ofActivity context.Context, run workflow.Execution, givenUp chan<- error) (hasReported bool) {
	ctx, stop := context.WithCancel(ctx)
	var checks sync.WaitGroup
	defer checks.Wait()
	defer stop()
	isChecking := make(chan struct{}, 1)
	ticker := time.NewTicker(heartbeatInterval)
	defer ticker.Stop()
	isGivenUp := false
	for {
		select {
		case <-ctx.Done():
			return hasReported
		case <-a.done:
			return hasReported
		case <-a.options.HandBack:
			a.cancel(errShutdown)
			return hasReported
		case <-ticker.C:
			if ofActivity.Err() == nil {
				a.recordHeartbeat(ctx, a.repair)
			} else {
				err := a.sendHeartbeat(ctx)
				if isFinal(err) && !isGivenUp && !isFinal(context.Cause(ofActivity)) {
					givenUp <- err
				}
				isGivenUp = isGivenUp || isFinal(err)
				if errors.As(err, new(*serviceerror.NotFound)) {
					return hasReported
				}
			}
			hasReported = true
			// A query that waits for a worker must not delay the next heartbeat.
			select {
			case isChecking <- struct{}{}:
				checks.Go(func() {
					a.checkStop(ctx, run)
					<-isChecking
				})
			default:
			}
		}
	}
}

func (a *attempt) sendHeartbeat(ctx context.Context) error {
	sending, cancel := context.WithTimeout(ctx, HeartbeatTimeout)
	defer cancel()
	err := a.options.Temporal.RecordActivityHeartbeat(sending, activity.GetInfo(ctx).TaskToken, a.heartbeatDetails(a.repair))
	if sending.Err() != nil {
		return nil // the server did not answer
	}
	return err
}

// checkStop ignores the error of a stop check: another check follows.
func (a *attempt) checkStop(ctx context.Context, run workflow.Execution) {
	ctx, cancel := context.WithTimeout(ctx, heartbeatInterval)
	defer cancel()
	if check, err := a.stopCheck(ctx, run); err == nil {
		a.apply(check)
	}
}
