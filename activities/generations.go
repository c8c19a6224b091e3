package activities

import (
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

// A generation runs in a goroutine of its own, and activities join it: the one
// that started it, and, when the run continues as new during the answer, one of
// the next run. That one is scheduled on the task queue of this process, finds
// the generation by its key and returns its result. The model, the broadcast and
// the number of the attempt stay the same, so viewers notice nothing.

// adoptWithin is how long a generation goes on, and its result is kept, while no
// activity waits for it. A flood of signals delays the next run by more than 10 s. The
// results that are kept are at most the text that the process streamed in this time.
const adoptWithin = time.Minute

// AdoptTimeout is how long the process of a generation has to start the activity that
// adopts it. After a flood of signals, a busy process takes more than 2 s.
const AdoptTimeout = 10 * time.Second

// describeTimeout bounds the question whether a run has continued as new.
const describeTimeout = 2 * time.Second

// generationKey identifies an attempt.
type generationKey struct {
	contextName, requestID string
	attempt                int
}

// generations are those of a process.
type generations struct {
	mu    sync.Mutex
	byKey map[generationKey]*generation
}

func newGenerations() *generations { return &generations{byKey: map[generationKey]*generation{}} }

func (r *generations) add(g *generation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byKey[g.key] = g
}

// find returns a generation, or nil.
func (r *generations) find(key generationKey) *generation {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byKey[key]
}

// removeLater keeps the result of a generation for an activity that adopts it:
// the run may have closed just before the result reached it.
func (r *generations) removeLater(g *generation) {
	time.AfterFunc(adoptWithin, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.byKey[g.key] == g {
			delete(r.byKey, g.key)
		}
	})
}

// joined is an activity that waits for the result of a generation. There may be
// several for a moment: one of a run that has closed, and one of the next.
type joined struct{ execution workflow.Execution }

// execution is the run that wants the answer: that of the newest activity that
// joined. changed is closed when another one joins.
func (g *generation) execution() (_ workflow.Execution, changed <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.run, g.changed
}

// attach adds an activity.
func (g *generation) attach(execution workflow.Execution) *joined {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.orphaned != nil {
		g.orphaned.Stop()
		g.orphaned = nil
	}
	j := &joined{execution}
	g.joined = append(g.joined, j)
	g.follow(execution)
	return j
}

// detach removes an activity. Without any, the generation ends soon.
func (g *generation) detach(j *joined) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.joined = slices.DeleteFunc(g.joined, func(other *joined) bool { return other == j })
	if n := len(g.joined); n > 0 {
		g.follow(g.joined[n-1].execution)
		return
	}
	g.orphaned = time.AfterFunc(adoptWithin, func() { g.end(errOrphaned) })
}

// follow makes a run the one that wants the answer.
func (g *generation) follow(execution workflow.Execution) {
	if g.changed != nil {
		close(g.changed)
	}
	g.run, g.changed = execution, make(chan struct{})
}

// join waits for the result on behalf of an activity, and sends its heartbeats.
func (g *generation) join(ctx context.Context, j *joined) (GenerateResult, error) {
	var watching sync.WaitGroup
	defer watching.Wait()
	// A failed heartbeat cancels ctx, and says nothing about the request.
	watch, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	watching.Go(func() { g.watch(watch, j.execution) })
	cancelled := ctx.Done()
	for {
		select {
		case <-g.ended:
			return g.result, g.err
		case <-cancelled:
			cancelled = nil
		}
		cause := context.Cause(ctx)
		switch {
		case !isFinal(cause):
		case g.isContinued(ctx, j.execution):
			g.detach(j)
			return GenerateResult{}, activity.ErrResultPending // the run is closed
		default:
			g.end(cause)
		}
	}
}

// isFinal reports whether the server does not want an activity any more: the
// workflow cancelled it, it took too long, or its run has closed.
func isFinal(cause error) bool {
	return temporal.IsCanceledError(cause) || errors.Is(cause, context.Canceled) || errors.Is(cause, context.DeadlineExceeded) ||
		errors.As(cause, new(*serviceerror.NotFound))
}

// isContinued reports whether a run has continued as new. The cancellation of an
// activity does not say whether the workflow asked for it or has closed.
func (g *generation) isContinued(ctx context.Context, w workflow.Execution) bool {
	if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), describeTimeout)
	defer cancel()
	d, err := g.options.Temporal.DescribeWorkflowExecution(ctx, w.ID, w.RunID)
	return err == nil && d.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW
}

// watch tells Temporal that the attempt is alive, and ends it when the worker
// hands it back or when the session turns out to want it no more.
func (g *generation) watch(ctx context.Context, w workflow.Execution) {
	ticker := time.NewTicker(heartbeatEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.ended:
			return
		case <-g.options.HandBack:
			g.end(errShutdown)
			return
		case <-ticker.C:
			activity.RecordHeartbeat(ctx)
			// An error says nothing about the request; the next look may. A
			// query that waits for a worker must not keep the heartbeat waiting.
			look, cancel := context.WithTimeout(ctx, heartbeatEvery)
			if wish, err := g.wish(look, w); err == nil {
				g.look(wish)
			}
			cancel()
		}
	}
}
