package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/internal/tracing"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

func (r *run) open() error {
	if err := r.begin(activities.OpenInput{ContextName: r.name}); err != nil {
		return err
	}
	r.archived.complete = r.position()
	r.takeUnrecorded()
	r.observeTask()
	r.apply(reducer.Opened{
		At: r.now(), PreviousRunID: r.opened.PreviousRunID, ForkedFrom: r.opened.ForkedFrom,
		Options: r.options(),
	})
	r.receive()
	return nil
}

func (r *run) options() reducer.Options {
	return reducer.Options{
		DefaultProviderID: r.opened.DefaultProviderID, DefaultModel: r.opened.DefaultModel, IdleCloseMs: r.opened.IdleCloseMs,
	}
}

// begin calls Open, which restores the session and determines the settings of the run.
func (r *run) begin(in activities.OpenInput) error {
	info := workflow.GetInfo(r.ctx)
	in.Reset = info.OriginalRunID != info.WorkflowExecution.RunID
	switch id := wire.StoreOf(info.Memo); {
	case info.ContinuedExecutionRunID != "":
		r.checkStore(id)
	case r.storeID != "" && id != r.storeID:
		in.ClaimedStore = id // anyone can start a context with any memo
	}
	if info.ContinuedExecutionRunID == "" {
		in.PreviousRunID = wire.PreviousRunOf(info.Memo)
	}
	ctx := opening(r.traced(r.ctx))
	var result activities.OpenResult
	if err := workflow.ExecuteLocalActivity(ctx, acts.Open, in).Get(ctx, &result); err != nil {
		return fmt.Errorf("open context %s: %w", in.ContextName, err)
	}
	if len(result.Session) > 0 {
		session, err := wire.Unpack(result.Session)
		if err != nil {
			panic(err.Error()) // fails the workflow task, so no input is lost
		}
		r.session = session
	}
	r.session.Rules = result.Rules
	r.opened, r.opened.Session = result, nil
	if result.ForkedFrom != "" {
		r.trace.Ended = activities.TraceLink{Trace: r.trace.Parent, Reason: tracing.LinkForks}
	}
	for _, d := range result.Deliveries {
		r.deliveries = append(r.deliveries, &delivery{hook: d.Hook, through: d.Through})
	}
	r.registration.isDone = result.RunID == info.WorkflowExecution.RunID
	r.checkStore(result.StoreID)
	if result.StoreID == "" {
		return nil // in tests
	}
	memo := map[string]any{wire.MemoStore: result.StoreID}
	if result.Root != "" {
		memo[wire.MemoRoot] = result.Root
	}
	return workflow.UpsertMemo(r.ctx, memo)
}

// opening sets the options of Open. Its retries never end: a failed workflow would lose accepted
// input.
func opening(ctx workflow.Context) workflow.Context {
	return workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout:    10 * time.Minute,
		ScheduleToCloseTimeout: 10 * 365 * 24 * time.Hour,
		RetryPolicy:            &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, MaximumInterval: 10 * time.Second},
	})
}

// checkStore fails the workflow task of a worker with another blob store.
func (r *run) checkStore(id string) {
	if r.storeID != "" && id != "" && r.storeID != id {
		panic(fmt.Sprintf("context %s belongs to blob store %s, and this worker has blob store %s (set --blob-url or BLOB_URL)",
			r.name, id, r.storeID))
	}
}

// isReset reports whether a reset created the run and it has not registered. The history before the
// reset point is that of the base run. There, GetVersion returns the default version, except where
// the base run registered after a reset of its own.
func (r *run) isReset() bool {
	info := workflow.GetInfo(r.ctx)
	length := info.GetCurrentHistoryLength()
	if r.registration.isDone || r.registration.historyLength == length || info.OriginalRunID == info.WorkflowExecution.RunID {
		return false
	}
	return workflow.GetVersion(r.ctx, fmt.Sprintf("reset-%d", length), workflow.DefaultVersion, 1) != workflow.DefaultVersion
}

// register registers a reset run before it records events. After is the counter of the newest
// recorded event.
func (r *run) register(after int) {
	if !r.isReset() {
		return
	}
	info := workflow.GetInfo(r.ctx)
	r.registration.historyLength = info.GetCurrentHistoryLength()
	var result activities.OpenResult
	ctx := opening(r.traced(r.ctx))
	in := activities.OpenInput{ContextName: r.name, After: after, Reset: true, HasSession: true}
	if err := workflow.ExecuteLocalActivity(ctx, acts.Open, in).Get(ctx, &result); err != nil {
		panic(fmt.Sprintf("open context %s after a reset: %v", in.ContextName, err))
	}
	r.registration.isDone = result.RunID == info.WorkflowExecution.RunID
	r.checkStore(result.StoreID)
}
