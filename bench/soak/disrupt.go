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

// reason is the reason of closes, resets and terminations. It distinguishes the runs that users ended
// from those that the server ended.
const reason = "soak"

// disruptShare is the average number of rounds between two closes, resets or terminations.
const disruptShare = 6

func (u *user) disrupt(ctx context.Context) error {
	if u.kind.budgets && u.rand.IntN(disruptShare) == 0 {
		if err := u.raiseBudget(ctx); err != nil {
			return err
		}
	}
	if u.kind.closes && u.rand.IntN(disruptShare) == 0 {
		if err := u.close(ctx); err != nil {
			return err
		}
	}
	if u.kind.resets && u.rand.IntN(disruptShare) == 0 {
		if err := u.reset(ctx); err != nil {
			return err
		}
	}
	if u.kind.terminates && u.rand.IntN(disruptShare) == 0 {
		return u.terminate(ctx)
	}
	return nil
}

func (u *user) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	u.journal.closed++ // even if the outcome is unknown
	if err := u.context.Close(ctx, reason); err == nil {
		u.soak.counts.closed.Add(1)
	}
	return nil
}

func (u *user) terminate(ctx context.Context) error {
	// A message sent from here on may be recorded by a new run.
	u.mu.Lock()
	n := len(u.journal.faults)
	u.journal.faults = append(u.journal.faults, fault{sent: len(u.journal.sent)})
	u.mu.Unlock()
	defer func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.journal.faults[n].sent = len(u.journal.sent) // the answerer sends concurrently
	}()
	return u.retry(ctx, "terminate", func(ctx context.Context) error {
		err := u.soak.rig.Temporal.TerminateWorkflow(ctx, wire.WorkflowID(u.context.Name()), "", reason)
		if errors.As(err, new(*serviceerror.NotFound)) {
			return nil // closed
		}
		if err == nil {
			u.soak.counts.terminated.Add(1)
		}
		return err
	})
}

func (u *user) reset(ctx context.Context) error {
	id, t := wire.WorkflowID(u.context.Name()), u.soak.rig.Temporal
	var runID string
	var tasks []int64
	err := u.retry(ctx, "find a workflow task to reset to", func(ctx context.Context) error {
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
	err = u.retry(ctx, fmt.Sprintf("reset run %s to %d", runID, task), func(ctx context.Context) error {
		_, err := t.ResetWorkflowExecution(ctx, request)
		return err
	})
	if err != nil {
		return err
	}
	u.mu.Lock()
	sent := len(u.journal.sent)
	u.mu.Unlock()
	u.soak.counts.reset.Add(1)
	var last int
	err = u.retry(ctx, "read the events after the reset point", func(ctx context.Context) (err error) {
		last, err = u.lastBefore(ctx, runID, task)
		return err
	})
	u.mu.Lock()
	u.journal.faults = append(u.journal.faults, fault{isReset: true, sent: sent, lastRemaining: last})
	u.mu.Unlock()
	return err
}

// lastBefore returns the counter of the last event before a workflow task; math.MaxInt if neither
// the run nor its continuations recorded events from that task on.
func (u *user) lastBefore(ctx context.Context, runID string, task int64) (int, error) {
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
			u.soak.counts.addRun(x.GetHistoryLength(), x.GetHistorySizeBytes())
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return errors.Join(problems...)
		}
	}
}

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
