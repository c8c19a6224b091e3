package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// open finds what earlier sessions left and begins this one.
func (r *run) open() error {
	if err := r.begin(activities.OpenInput{ContextName: r.session.ContextName}); err != nil {
		return err
	}
	r.noteTask()
	r.take(reducer.Opened{At: r.now(), PreviousRunID: r.previousRunID, ForkedFrom: r.forkedFrom})
	r.receive()
	return nil
}

// begin decides what is fixed for a run, and restores the session of earlier
// ones.
func (r *run) begin(in activities.OpenInput) error {
	info := workflow.GetInfo(r.ctx)
	in.Reset = info.OriginalRunID != info.WorkflowExecution.RunID
	if id, err := wire.StoreOf(info.Memo); err == nil {
		r.checkStore(id)
	}
	ctx := opening(r.ctx)
	var result activities.OpenResult
	if err := workflow.ExecuteLocalActivity(ctx, acts.Open, in).Get(ctx, &result); err != nil {
		return fmt.Errorf("open context %s: %w", in.ContextName, err)
	}
	if len(result.Session) > 0 {
		session, err := wire.Unpack(result.Session)
		if err != nil {
			panic(err.Error()) // fails the workflow task and so loses nothing
		}
		r.session = session
	}
	r.session.Rules, r.previousRunID, r.forkedFrom = result.Rules, result.PreviousRunID, result.ForkedFrom
	r.attributes, r.defaultModel = result.SearchAttributes, result.DefaultModel
	r.continueAfter = result.ContinueAfter
	r.isRegistered = result.RunID == info.WorkflowExecution.RunID
	r.checkStore(result.StoreID)
	if result.StoreID == "" {
		return nil // in tests
	}
	return workflow.UpsertMemo(r.ctx, map[string]any{wire.MemoStore: result.StoreID})
}

// opening are the options of Open. It retries for ever: input was accepted
// already, and a workflow that fails would lose it.
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
			r.session.ContextName, id, r.storeID))
	}
}

// isReset reports whether the run was made by a reset and has to register, since
// it goes on with the history of another run. The version is a fact of the
// workflow task in which the run is at work for the first time: positions before
// the reset have the default one, but for the one at which the base run registered
// if that was made by a reset, too.
func (r *run) isReset() bool {
	info := workflow.GetInfo(r.ctx)
	length := info.GetCurrentHistoryLength()
	if r.isRegistered || r.registeredAt == length || info.OriginalRunID == info.WorkflowExecution.RunID {
		return false
	}
	return workflow.GetVersion(r.ctx, fmt.Sprintf("reset-%d", length), workflow.DefaultVersion, 1) != workflow.DefaultVersion
}

// register registers a run that was made by a reset, before it records anything.
// After is the counter of the newest event that is recorded.
func (r *run) register(after int) {
	if !r.isReset() {
		return
	}
	info := workflow.GetInfo(r.ctx)
	r.registeredAt = info.GetCurrentHistoryLength()
	var result activities.OpenResult
	ctx := opening(r.ctx)
	in := activities.OpenInput{ContextName: r.session.ContextName, After: after, Reset: true, HasSession: true}
	if err := workflow.ExecuteLocalActivity(ctx, acts.Open, in).Get(ctx, &result); err != nil {
		panic(fmt.Sprintf("open context %s after a reset: %v", in.ContextName, err))
	}
	r.isRegistered = result.RunID == info.WorkflowExecution.RunID
	r.checkStore(result.StoreID)
}
