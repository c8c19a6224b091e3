// Package replaytest records histories and replays them with the current workflow code. A replay
// fails if the code would issue other commands, or record events with other ids or tags.
package replaytest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/internal/references"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/workflows"
)

// Replay replays a history. References to large payloads are resolved in storage.
func Replay(history *historypb.History, storage converter.ExternalStorage) error {
	if len(history.GetEvents()) == 0 {
		return errors.New("replay: the history is empty")
	}
	if err := references.MakeInert(context.Background(), history); err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	started := history.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes()
	if started.GetWorkflowId() == "" {
		return errors.New("replay: the history does not begin with WorkflowExecutionStarted and a workflow id")
	}
	replayer, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{
		Interceptors:             []interceptor.WorkerInterceptor{workflows.Interceptor()},
		ExternalStorage:          storage,
		DisableDeadlockDetection: true,
	})
	if err != nil {
		return err
	}
	replayer.RegisterWorkflowWithOptions(workflows.Context, workflow.RegisterOptions{Name: wire.WorkflowType})
	replayer.RegisterWorkflowWithOptions(workflows.Send, workflow.RegisterOptions{Name: wire.WorkflowSend})
	replayer.RegisterWorkflowWithOptions(workflows.Budget, workflow.RegisterOptions{Name: wire.WorkflowBudget})
	replayer.RegisterWorkflowWithOptions(workflows.Evaluate, workflow.RegisterOptions{Name: wire.WorkflowEvaluate})
	replayer.RegisterWorkflowWithOptions(workflows.Offer, workflow.RegisterOptions{Name: wire.WorkflowOffer})
	return replayer.ReplayWorkflowHistoryWithOptions(
		log.NewStructuredLogger(slog.New(slog.DiscardHandler)), history,
		worker.ReplayWorkflowHistoryOptions{OriginalExecution: workflow.Execution{
			ID: started.GetWorkflowId(), RunID: runOf(history),
		}})
}

func runOf(history *historypb.History) string {
	run := history.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().GetOriginalExecutionRunId()
	for _, h := range history.GetEvents() {
		if failed := h.GetWorkflowTaskFailedEventAttributes(); failed.GetCause() == enumspb.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW {
			run = failed.GetNewRunId()
		}
	}
	return run
}

// Keep writes a history to a file, unless the file exists.
func Keep(history *historypb.History, file string) error {
	data, err := temporalproto.CustomJSONMarshalOptions{Indent: " "}.Marshal(history)
	if err != nil {
		return fmt.Errorf("keep history: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.Write(append(data, '\n'))
	return errors.Join(err, f.Close())
}

// Load reads a recorded history.
func Load(file string) (*historypb.History, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var history historypb.History
	if err := (temporalproto.CustomJSONUnmarshalOptions{}).Unmarshal(data, &history); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return &history, nil
}
