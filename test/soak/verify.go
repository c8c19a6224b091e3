package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/pause"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

const checkTimeout = 2 * time.Minute

// check checks the laws. What happens in the background must have happened before checkTimeout.
func (u *user) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	for {
		log, err := u.checkOnce(ctx)
		if err == nil {
			u.countLog(log)
			return nil
		}
		if !pause.For(ctx, 2*time.Second) {
			u.dump()
			return fmt.Errorf("%s: %w\n%s", u.context.Name(), err, tail(log))
		}
	}
}

func (u *user) checkOnce(ctx context.Context) (log []event.Event, err error) {
	state, err := u.context.State(ctx)
	if err != nil {
		return nil, err
	}
	for e, err := range u.context.Events(ctx, "") {
		if err != nil {
			return log, fmt.Errorf("read the log: %w", err)
		}
		log = append(log, e)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	var p problems
	if err := u.journal.check(log, u.followed, u.recorder.executionsOf(u.context.Name())); err != nil {
		p = append(p, err)
	} else {
		checkState(&p, u.context.Name(), log, state, len(log)/2)
		checkTranscript(&p, u.transcript.Document(), log[:len(u.followed)])
	}
	if u.kind.isAgent() {
		_, _, problems := u.recorder.check(u.context.Name(), log)
		p = append(p, problems...)
	}
	verified, err := u.context.Verify(ctx)
	if err != nil {
		p.add("verify: %w", err)
	}
	for _, found := range verified.Problems {
		p.add("verify: %s %s", found.Place, found.Text)
	}
	p = append(p, u.eachRun(ctx, func(run *workflowpb.WorkflowExecutionInfo) error { return u.checkRun(ctx, run) }))
	return log, errors.Join(p...)
}

func (u *user) countLog(log []event.Event) {
	for _, e := range log {
		switch body := e.Body.(type) {
		case event.LLMRequestCompleted:
			u.counts.add("answered", 1)
		case event.LLMRequestInterrupted:
			u.counts.add("interrupted", 1)
		case event.LLMRequestFailed:
			u.counts.add("failed", 1)
		case event.ApprovalDecided:
			switch {
			case body.Decision == event.Deny:
				u.counts.add("denied", 1)
			case len(body.Parameters) > 0:
				u.counts.add("edited", 1)
			default:
				u.counts.add("approved", 1)
			}
		case event.ToolResult:
			if strings.HasPrefix(string(body.Error), `"expired`) {
				u.counts.add("expired", 1)
			}
		case event.HookApplied:
			if body.Outcome == event.HookRefused {
				u.counts.add("refused", 1)
			}
		}
	}
	events, repeated, _ := u.recorder.check(u.context.Name(), nil)
	u.counts.add("events", len(log))
	u.counts.add("delivered", events)
	u.counts.add("delivered again", repeated)
	u.counts.add("executed", len(u.recorder.executionsOf(u.context.Name())))
}

func (u *user) eachRun(ctx context.Context, each func(*workflowpb.WorkflowExecutionInfo) error) error {
	request := &workflowservice.ListWorkflowExecutionsRequest{Query: fmt.Sprintf("WorkflowId = '%s'", wire.WorkflowID(u.context.Name()))}
	var errs []error
	for {
		page, err := u.Temporal.ListWorkflow(ctx, request)
		if err != nil {
			return fmt.Errorf("list the runs: %w", err)
		}
		for _, run := range page.GetExecutions() {
			errs = append(errs, each(run))
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return errors.Join(errs...)
		}
	}
}

// checkRun checks that the server did not end a run.
func (u *user) checkRun(ctx context.Context, run *workflowpb.WorkflowExecutionInfo) error {
	why := ""
	switch run.GetStatus() {
	case enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW:
		u.counts.add("continued as new", 1)
		return nil
	case enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		return nil
	case enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED:
		history, err := u.history(ctx, run)
		if err != nil {
			return err
		}
		if why = history.GetEvents()[len(history.GetEvents())-1].GetWorkflowExecutionTerminatedEventAttributes().GetReason(); why == reason {
			return nil
		}
	}
	return fmt.Errorf("run %s was ended by the server: %s %s", run.GetExecution().GetRunId(), run.GetStatus(), why)
}

func (u *user) history(ctx context.Context, run *workflowpb.WorkflowExecutionInfo) (*historypb.History, error) {
	h := &historypb.History{}
	events := u.Temporal.GetWorkflowHistory(ctx, run.GetExecution().GetWorkflowId(), run.GetExecution().GetRunId(), false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			return nil, err
		}
		h.Events = append(h.Events, e)
	}
	return h, nil
}

// dump writes the histories of all runs of the context to -logs, to be replayed.
func (u *user) dump() {
	if u.options.logs == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := u.eachRun(ctx, func(run *workflowpb.WorkflowExecutionInfo) error {
		h, err := u.history(ctx, run)
		if err != nil {
			return err
		}
		data, err := protojson.Marshal(h)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("%s.%s.%s.json", u.context.Name(), run.GetStartTime().AsTime().Format("150405.000"), run.GetExecution().GetRunId())
		return os.WriteFile(filepath.Join(u.options.logs, name), data, 0o600)
	})
	if err != nil {
		fmt.Fprintf(os.Stderr, "soak: write the histories of %s: %v\n", u.context.Name(), err)
	}
}

func tail(log []event.Event) string {
	var b strings.Builder
	for _, e := range log[max(0, len(log)-30):] {
		data, err := e.MarshalJSON()
		if err != nil {
			data = []byte(err.Error())
		}
		fmt.Fprintf(&b, "  %s\n", event.Redact(string(data), 300))
	}
	return b.String()
}
