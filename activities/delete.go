package activities

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	sdkclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/seed-9ed7edd4/chronicle/internal/eventlog"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/pause"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// DeleteTimeout bounds one attempt of the activities of a deletion. They send heartbeats.
const DeleteTimeout = time.Hour

// StrayWrites is how long activities of a terminated run may still write to the blob store: at most the timeouts of
// archiving, of storing a result and of storing a payload, and that of [Activities.Send] to a context.
const StrayWrites = time.Minute

// DeleteInput is the input of the activities of a deletion.
type DeleteInput struct {
	ContextName string `json:"contextName"`
}

// MaxListedForks is the maximum number of names that [Activities.ListForks] returns.
const MaxListedForks = 100

// ListForks returns the names of the first forks of a context that are neither detached nor deleted.
func (a *Activities) ListForks(ctx context.Context, in DeleteInput) (names []string, err error) {
	forks, err := a.options.Archive.Forks(ctx, in.ContextName)
	for _, f := range forks[:min(len(forks), MaxListedForks)] {
		names = append(names, f.ContextName)
	}
	return names, err
}

// DetachFork gives a fork a copy of what it shares with its origin. It is not retried if a part of that is lost.
func (a *Activities) DetachFork(ctx context.Context, in DeleteInput) error {
	ctx, stop := withHeartbeats(ctx)
	defer stop()
	err := a.checkIsNotDeleting(ctx, in.ContextName)
	if err == nil {
		err = a.options.Archive.Detach(ctx, in.ContextName)
	}
	if errors.Is(err, archive.ErrLost) {
		return temporal.NewNonRetryableApplicationError(err.Error()+" (delete the forks, too)", "Lost", nil)
	}
	if err == nil {
		err = a.checkIsNotDeleting(ctx, in.ContextName)
	}
	if err != nil {
		return err
	}
	if _, err = a.options.Archive.Origin(ctx, in.ContextName); errors.Is(err, archive.ErrNoRun) {
		_, err = a.options.Archive.Delete(ctx, in.ContextName) // what an earlier attempt copied while the fork was deleted
	}
	return err
}

// checkIsNotDeleting makes a deletion wait for that of a fork.
func (a *Activities) checkIsNotDeleting(ctx context.Context, fork string) error {
	isDeleting, err := a.log.IsDeleting(ctx, fork)
	if err == nil && isDeleting {
		err = fmt.Errorf("detach context %s: it is being deleted", fork)
	}
	return err
}

// DeleteStored deletes what the blob store has of a context.
func (a *Activities) DeleteStored(ctx context.Context, in DeleteInput) ([]wire.Removed, error) {
	ctx, stop := withHeartbeats(ctx)
	defer stop()
	deleted, err := a.options.Archive.Delete(ctx, in.ContextName)
	a.options.Stream.Notice(in.ContextName) // indexes delete what they have
	return []wire.Removed{
		{Place: wire.PlaceLog, Count: deleted.Log}, {Place: wire.PlaceBlobs, Count: deleted.Blobs},
		{Place: wire.PlaceCursors, Count: deleted.Cursors}, {Place: wire.PlaceForks, Count: deleted.Forks},
	}, err
}

// DeletedRuns is the result of [Activities.DeleteRuns].
type DeletedRuns struct {
	Removed []wire.Removed `json:"removed"`
	// WasBusy means that a worker worked for one of the runs, and may still write to the blob store for [StrayWrites].
	WasBusy bool `json:"wasBusy,omitempty"`
}

// Count returns the number of removed runs and schedules.
func (d DeletedRuns) Count() (n int) {
	for _, r := range d.Removed {
		n += r.Count
	}
	return n
}

// DeleteRuns deletes the schedules of a context, and terminates and deletes its runs and those of scheduled messages and
// evaluations. It returns when the server has deleted their histories. Temporal lists new runs and schedules after about a second.
//
// A run that input has started since [Activities.EndSession] is kept: it waits for the end of the deletion.
func (a *Activities) DeleteRuns(ctx context.Context, in DeleteInput) (DeletedRuns, error) {
	ctx, stop := withHeartbeats(ctx)
	defer stop()
	info := activity.GetInfo(ctx)
	d := runDeletion{Activities: a, namespace: info.Namespace, contextName: in.ContextName, counts: map[wire.Place]int{}, seen: map[execution]bool{}}
	d.wasBusy = info.Attempt > 1 // an earlier attempt may have deleted a run that was
	if err := d.run(ctx); err != nil {
		return DeletedRuns{}, fmt.Errorf("delete the runs of context %s: %w", in.ContextName, err)
	}
	result := DeletedRuns{WasBusy: d.wasBusy}
	for _, place := range []wire.Place{wire.PlaceRuns, wire.PlaceSchedules, wire.PlaceSends, wire.PlaceEvaluations} {
		result.Removed = append(result.Removed, wire.Removed{Place: place, Count: d.counts[place]})
	}
	return result, nil
}

// execution is a run of a workflow.
type execution struct{ workflowID, runID string }

type runDeletion struct {
	*Activities
	namespace   string
	contextName string
	counts      map[wire.Place]int
	wasBusy     bool
	seen        map[execution]bool
	deleted     []execution
}

// schedulerPrefix begins the ids of the workflows that run schedules in the server.
const schedulerPrefix = "temporal-sys-scheduler:"

func (d *runDeletion) run(ctx context.Context) error {
	if err := d.deleteSchedules(ctx); err != nil {
		return err
	}
	runs, err := d.registered(ctx)
	if err != nil {
		return err
	}
	current, err := d.options.Temporal.DescribeWorkflowExecution(ctx, wire.WorkflowID(d.contextName), "")
	switch {
	case err == nil:
		runs = append(runs, current.GetWorkflowExecutionInfo().GetExecution().GetRunId())
	case !errors.As(err, new(*serviceerror.NotFound)):
		return err
	}
	for _, runID := range runs {
		if err := d.deleteContext(ctx, runID); err != nil {
			return err
		}
	}
	listed, err := d.list(ctx)
	if err != nil {
		return err
	}
	for _, x := range listed {
		if x.workflowID == wire.WorkflowID(d.contextName) {
			err = d.deleteContext(ctx, x.runID)
		} else {
			_, err = d.delete(ctx, x)
		}
		if err != nil {
			return err
		}
	}
	return d.await(ctx)
}

// registered returns the runs that the archive knows.
func (d *runDeletion) registered(ctx context.Context) (ids []string, err error) {
	folder, err := d.options.Archive.Folder(ctx, d.contextName)
	if err != nil {
		return nil, err
	}
	runs, err := folder.Runs(ctx)
	if errors.Is(err, blobs.ErrCorrupt) || errors.Is(err, blobs.ErrNotFound) {
		return nil, nil // the lists of Temporal remain
	}
	for _, run := range runs {
		if eventlog.IsRun(run.ID) {
			ids = append(ids, run.ID)
		}
	}
	return ids, err
}

// deleteContext deletes a run of the context, and the runs before it that memos name.
func (d *runDeletion) deleteContext(ctx context.Context, runID string) (err error) {
	for runID != "" && err == nil {
		runID, err = d.delete(ctx, execution{wire.WorkflowID(d.contextName), runID})
	}
	return err
}

// delete terminates and deletes a run. It returns the run that its memo names; "" for none.
func (d *runDeletion) delete(ctx context.Context, x execution) (previous string, err error) {
	if d.seen[x] {
		return "", nil
	}
	d.seen[x] = true
	run, err := d.options.Temporal.DescribeWorkflowExecution(ctx, x.workflowID, x.runID)
	switch {
	case isGone(err):
		return "", nil
	case isBeingDeleted(err):
		if uuid.Validate(x.runID) == nil { // a memo may name anything
			d.deleted = append(d.deleted, x) // by an earlier attempt
		}
		return "", nil
	case err != nil:
		return "", err
	}
	info := run.GetWorkflowExecutionInfo()
	if isRunning(info) && isFresh(info) && d.placeOf(x) == wire.PlaceRuns {
		return wire.PreviousRunOf(info.GetMemo()), nil
	}
	d.wasBusy = d.wasBusy || isBusy(run)
	if isRunning(info) {
		if err := d.terminate(ctx, x); err != nil {
			return "", err
		}
	}
	_, err = d.options.Temporal.WorkflowService().DeleteWorkflowExecution(ctx, &workflowservice.DeleteWorkflowExecutionRequest{
		Namespace: d.namespace, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: x.workflowID, RunId: x.runID},
	})
	if err != nil && !isGone(err) {
		return "", err
	}
	if err == nil {
		d.deleted = append(d.deleted, x)
		if place := d.placeOf(x); place != "" {
			d.counts[place]++
		}
	}
	return wire.PreviousRunOf(info.GetMemo()), nil
}

// placeOf returns "" for runs of the server that belong to a schedule, which is counted itself.
func (d *runDeletion) placeOf(x execution) wire.Place {
	switch {
	case x.workflowID == wire.WorkflowID(d.contextName):
		return wire.PlaceRuns
	case strings.HasPrefix(x.workflowID, schedulerPrefix):
		return ""
	case strings.HasPrefix(x.workflowID, wire.ScheduleID(d.contextName, "")):
		return wire.PlaceSends
	}
	return wire.PlaceEvaluations
}

func isGone(err error) bool { return errors.As(err, new(*serviceerror.NotFound)) }

// isBeingDeleted recognizes the answer of a server that has deleted the history of a run, and not yet the run.
func isBeingDeleted(err error) bool { return errors.As(err, new(*serviceerror.InvalidArgument)) }

// isBusy reports whether a worker works for a run.
func isBusy(run *workflowservice.DescribeWorkflowExecutionResponse) bool {
	for _, a := range run.GetPendingActivities() {
		if a.GetState() != enumspb.PENDING_ACTIVITY_STATE_SCHEDULED {
			return true
		}
	}
	return run.GetPendingWorkflowTask().GetState() == enumspb.PENDING_WORKFLOW_TASK_STATE_STARTED
}

func (d *runDeletion) deleteSchedules(ctx context.Context) error {
	schedules := d.options.Temporal.ScheduleClient()
	entries, err := schedules.List(ctx, sdkclient.ScheduleListOptions{})
	if err != nil {
		return err
	}
	for entries.HasNext() {
		entry, err := entries.Next()
		if err != nil {
			return err
		}
		if name, _, ok := wire.ParseScheduleID(entry.ID); !ok || name != d.contextName {
			continue
		}
		err = schedules.GetHandle(ctx, entry.ID).Delete(ctx)
		if err != nil && !errors.As(err, new(*serviceerror.NotFound)) {
			return err
		}
		if err == nil {
			d.counts[wire.PlaceSchedules]++
		}
	}
	return nil
}

// list returns the runs that Temporal lists: those of the context, of scheduled messages, of deleted schedules, of evaluations
// and of offers.
func (d *runDeletion) list(ctx context.Context) (all []execution, err error) {
	startsWith := func(kind, prefix string) string {
		return fmt.Sprintf("WorkflowType = '%s' AND WorkflowId STARTS_WITH '%s'", kind, prefix)
	}
	sends := wire.ScheduleID(d.contextName, "")
	for _, query := range []string{
		fmt.Sprintf("WorkflowId = '%s'", wire.WorkflowID(d.contextName)),
		startsWith(wire.WorkflowSend, sends),
		fmt.Sprintf("TemporalNamespaceDivision = 'TemporalScheduler' AND WorkflowId STARTS_WITH '%s%s'", schedulerPrefix, sends),
		startsWith(wire.WorkflowEvaluate, wire.EvaluationID(d.contextName, "")),
		startsWith(wire.WorkflowOffer, wire.OfferID(d.contextName, "")),
	} {
		request := &workflowservice.ListWorkflowExecutionsRequest{Namespace: d.namespace, Query: query}
		for {
			page, err := d.options.Temporal.ListWorkflow(ctx, request)
			if err != nil {
				return nil, err
			}
			for _, x := range page.GetExecutions() {
				id := x.GetExecution().GetWorkflowId()
				// SQLite and MySQL ignore case, and the prefix of messages may be that of a tenant with the name of the context.
				if owner, ok := wire.OwnerOf(strings.TrimPrefix(id, schedulerPrefix)); !ok || owner != d.contextName {
					continue
				}
				all = append(all, execution{id, x.GetExecution().GetRunId()})
			}
			if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
				break
			}
		}
	}
	return all, nil
}

const goneInterval = 100 * time.Millisecond

// await waits until the server has deleted the histories. It may list the runs for half a minute longer.
func (d *runDeletion) await(ctx context.Context) error {
	for _, x := range d.deleted {
		for {
			_, err := d.options.Temporal.DescribeWorkflowExecution(ctx, x.workflowID, x.runID)
			if isGone(err) {
				break
			}
			if err != nil && !isBeingDeleted(err) {
				return err
			}
			if !pause.For(ctx, goneInterval) {
				return ctx.Err()
			}
		}
	}
	return nil
}
