package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// dump writes the histories of all runs of the context to -logs, to be replayed.
func (u *user) dump() {
	if u.soak.options.logs == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	page, err := u.soak.rig.Temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Query: fmt.Sprintf("WorkflowId = '%s'", wire.WorkflowID(u.context.Name())),
	})
	if err != nil {
		fmt.Fprintf(os.Stderr, "soak: list the runs of %s: %v\n", u.context.Name(), err)
		return
	}
	for _, x := range page.GetExecutions() {
		runID := x.GetExecution().GetRunId()
		h := &historypb.History{}
		err := u.history(ctx, runID, func(e *historypb.HistoryEvent) error {
			h.Events = append(h.Events, e)
			return nil
		})
		var data []byte
		if err == nil {
			data, err = protojson.Marshal(h)
		}
		if err == nil {
			name := fmt.Sprintf("%s.%s.%s.json", u.context.Name(), x.GetStartTime().AsTime().Format("150405.000"), runID)
			err = os.WriteFile(filepath.Join(u.soak.options.logs, name), data, 0o600)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "soak: write the history of run %s of %s: %v\n", runID, u.context.Name(), err)
		}
	}
}

// unread describes the log, which may have events that the follower has not received.
func (u *user) unread() string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var log []event.Event
	for e, err := range u.context.Events(ctx, "") {
		if err != nil {
			return fmt.Sprintf("  read the log: %v\n", err)
		}
		log = append(log, e)
	}
	state, err := u.context.State(ctx)
	if err != nil {
		return fmt.Sprintf("  the log has %d events; query the state: %v\n", len(log), err)
	}
	return fmt.Sprintf("  the log has %d events, the session %d (%s):\n%s", len(log), state.EventCount, state.Status, tail(log))
}
