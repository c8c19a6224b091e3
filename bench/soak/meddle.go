package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/eventlog"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// reason is what the server is told when a run is reset or terminated, by which
// the check tells such a run from one that the server ended.
const reason = "soak"

// share of the rounds in which a context is closed, and reset, and terminated.
const meddleShare = 6

// meddle closes, resets or terminates the context, if its kind says so, in one of
// some rounds.
func (u *user) meddle(ctx context.Context) error {
	if u.kind.closes && u.rand.IntN(meddleShare) == 0 {
		if err := u.close(ctx); err != nil {
			return err
		}
	}
	if u.kind.resets && u.rand.IntN(meddleShare) == 0 {
		if err := u.reset(ctx); err != nil {
			return err
		}
	}
	if u.kind.terminates && u.rand.IntN(meddleShare) == 0 {
		return u.terminate(ctx)
	}
	return nil
}

func (u *user) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	u.story.closed++ // also when nobody knows whether it arrived
	if err := u.context.Close(ctx, reason); err == nil {
		u.soak.counts.closed.Add(1)
	}
	return nil
}

// terminate ends the newest run as a person would by hand.
func (u *user) terminate(ctx context.Context) error {
	// Before, so that it is not later than the termination.
	u.mu.Lock()
	u.story.faults = append(u.story.faults, fault{sent: len(u.story.sent)})
	u.mu.Unlock()
	return u.insist(ctx, "terminate", func(ctx context.Context) error {
		err := u.soak.rig.Temporal.TerminateWorkflow(ctx, wire.WorkflowID(u.context.Name()), "", reason)
		if errors.As(err, new(*serviceerror.NotFound)) {
			return nil // it is closed
		}
		if err == nil {
			u.soak.counts.terminated.Add(1)
		}
		return err
	})
}

// reset resets the newest run to a random workflow task, from the first one on.
func (u *user) reset(ctx context.Context) error {
	id, t := wire.WorkflowID(u.context.Name()), u.soak.rig.Temporal
	var runID string
	var tasks []int64
	err := u.insist(ctx, "look for a workflow task to reset to", func(ctx context.Context) error {
		d, err := t.DescribeWorkflowExecution(ctx, id, "")
		if err != nil {
			return err
		}
		runID, tasks = d.GetWorkflowExecutionInfo().GetExecution().GetRunId(), nil
		return u.history(ctx, runID, func(h *historypb.HistoryEvent) error {
			if h.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
				tasks = append(tasks, h.GetEventId())
			}
			return nil
		})
	})
	if err != nil || len(tasks) == 0 {
		return err
	}
	task := tasks[u.rand.IntN(len(tasks))]
	request := &workflowservice.ResetWorkflowExecutionRequest{
		Namespace:         "default",
		WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: runID},
		Reason:            reason, WorkflowTaskFinishEventId: task, RequestId: rand.Text(),
	}
	// With nothing kept while it is under way: what it takes back is seen later.
	u.mu.Lock()
	sent := len(u.story.sent)
	u.mu.Unlock()
	err = u.insist(ctx, fmt.Sprintf("reset run %s to %d", runID, task), func(ctx context.Context) error {
		_, err := t.ResetWorkflowExecution(ctx, request)
		return err
	})
	if err != nil {
		return err
	}
	u.soak.counts.reset.Add(1)
	var kept int
	err = u.insist(ctx, "read what a reset took back", func(ctx context.Context) (err error) {
		kept, err = u.kept(ctx, runID, task)
		return err
	})
	u.mu.Lock()
	u.story.faults = append(u.story.faults, fault{isReset: true, sent: sent, kept: kept})
	u.mu.Unlock()
	return err
}

// kept is the counter of the last event before those that a run recorded from a
// workflow task on, or the runs that continued it; math.MaxInt when there are none.
func (u *user) kept(ctx context.Context, runID string, task int64) (int, error) {
	first := 0
	for runID != "" && first == 0 {
		next := ""
		err := u.history(ctx, runID, func(h *historypb.HistoryEvent) error {
			if continued := h.GetWorkflowExecutionContinuedAsNewEventAttributes(); continued != nil {
				next = continued.GetNewExecutionRunId()
			}
			if first > 0 || h.GetEventId() < task {
				return nil
			}
			events, err := eventlog.Decode(h)
			if len(events) > 0 {
				first = event.Counter(events[0].ID)
			}
			return err
		})
		if err != nil {
			return 0, err
		}
		runID, task = next, 0
	}
	if first == 0 {
		return math.MaxInt, nil
	}
	return first - 1, nil
}

// history reads the history of a run.
func (u *user) history(ctx context.Context, runID string, each func(*historypb.HistoryEvent) error) error {
	history := u.soak.rig.Temporal.GetWorkflowHistory(ctx, wire.WorkflowID(u.context.Name()), runID, false,
		enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		h, err := history.Next()
		if err != nil {
			return err
		}
		if err := each(h); err != nil {
			return err
		}
	}
	return nil
}

// checkRuns makes sure that no run was ended by the server: every one is running,
// or was completed, continued as new, or terminated or reset by the user.
func (u *user) checkRuns(ctx context.Context) error {
	request := &workflowservice.ListWorkflowExecutionsRequest{Query: fmt.Sprintf("WorkflowId = '%s'", wire.WorkflowID(u.context.Name()))}
	var problems []error
	for {
		page, err := u.soak.rig.Temporal.ListWorkflow(ctx, request)
		if err != nil {
			return fmt.Errorf("list the runs: %w", err)
		}
		for _, x := range page.GetExecutions() {
			runID := x.GetExecution().GetRunId()
			why := ""
			if x.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED {
				err := u.history(ctx, runID, func(h *historypb.HistoryEvent) error {
					if ended := h.GetWorkflowExecutionTerminatedEventAttributes(); ended != nil {
						why = ended.GetReason()
					}
					return nil
				})
				if err != nil {
					return fmt.Errorf("read run %s: %w", runID, err)
				}
			}
			problems = append(problems, checkEnd(runID, x.GetStatus(), why))
			u.soak.counts.sawRun(x.GetHistoryLength(), x.GetHistorySizeBytes())
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return errors.Join(problems...)
		}
	}
}

// checkEnd says what is wrong with the status of a run, of which a terminated one
// was terminated for a reason.
func checkEnd(runID string, status enumspb.WorkflowExecutionStatus, why string) error {
	switch status {
	case enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED,
		enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW:
		return nil
	case enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED:
		if why == reason {
			return nil
		}
	}
	return fmt.Errorf("run %s was ended by the server: %s %s", runID, status, why)
}
