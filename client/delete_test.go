package client_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	sdkclient "go.temporal.io/sdk/client"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs/blobstest"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// deletions is a Temporal client without contexts that runs deletions.
type deletions struct {
	temporal
	isRunning bool // a deletion of demo
	hasWorker bool
	started   []sdkclient.StartWorkflowOptions
	inputs    []any
}

func (d *deletions) ExecuteWorkflow(_ context.Context, options sdkclient.StartWorkflowOptions, workflow any, args ...any) (sdkclient.WorkflowRun, error) {
	if workflow != wire.WorkflowDelete {
		panic(workflow)
	}
	d.started, d.inputs, d.isRunning = append(d.started, options), append(d.inputs, args...), true
	return d.GetWorkflow(context.Background(), options.ID, ""), nil
}

func (d *deletions) GetWorkflow(_ context.Context, workflowID, _ string) sdkclient.WorkflowRun {
	return deletionRun{of: d, id: workflowID}
}

func (d *deletions) DescribeWorkflowExecution(_ context.Context, workflowID, _ string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	if workflowID != wire.DeletionID("demo") || !d.isRunning {
		return nil, serviceerror.NewNotFound("no such workflow")
	}
	response := &workflowservice.DescribeWorkflowExecutionResponse{
		WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{Status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING},
	}
	if !d.hasWorker {
		response.PendingWorkflowTask = &workflowpb.PendingWorkflowTaskInfo{State: enumspb.PENDING_WORKFLOW_TASK_STATE_SCHEDULED}
	}
	return response, nil
}

type deletionRun struct {
	sdkclient.WorkflowRun
	of *deletions
	id string
}

func (r deletionRun) GetID() string { return r.id }

// Get takes a minute with a worker.
func (r deletionRun) Get(ctx context.Context, result any) error {
	wait := time.Minute
	if !r.of.hasWorker {
		wait = 24 * time.Hour
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(wait):
	}
	*result.(*client.Deletion) = client.Deletion{ContextName: "demo", EndedAt: time.Now()}
	return nil
}

func deleting(t testing.TB, d *deletions, logs *archive.Archive, name string) *client.Context {
	t.Helper()
	c, err := client.New(client.Options{Temporal: d, Archive: logs}).Open(name)
	require.NoError(t, err)
	return c
}

func TestDeleteWaitsForTheReceipt(t *testing.T) {
	logs := archive.New(blobstest.New(t).Store)
	put(t, logs, "demo", numbered(1))
	synctest.Test(t, func(t *testing.T) {
		d := &deletions{hasWorker: true}
		receipt, err := deleting(t, d, logs, "demo").Delete(t.Context(), client.DeleteOptions{Forks: client.DeleteForks})
		require.NoError(t, err)
		require.False(t, receipt.EndedAt.IsZero())
		require.Equal(t, []sdkclient.StartWorkflowOptions{{
			ID: "delete:demo", TaskQueue: "contexts", WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		}}, d.started)
		require.Equal(t, []any{wire.Delete{ContextName: "demo", Forks: wire.DeleteForks}}, d.inputs)
	})
}

func TestDeleteWithoutAWorkerSaysSo(t *testing.T) {
	logs := archive.New(blobstest.New(t).Store)
	put(t, logs, "demo", numbered(1))
	synctest.Test(t, func(t *testing.T) {
		_, err := deleting(t, &deletions{}, logs, "demo").Delete(t.Context(), client.DeleteOptions{})
		require.ErrorIs(t, err, client.ErrNoWorker)
		require.EqualError(t, err, "delete context demo: no worker responds (start a worker): the deletion begins when one runs")
	})
}

func TestDeleteRejectsWhatItCannotDelete(t *testing.T) {
	logs := archive.New(blobstest.New(t).Store)
	d := &deletions{hasWorker: true}
	_, err := deleting(t, d, logs, "none").Delete(t.Context(), client.DeleteOptions{})
	require.ErrorIs(t, err, client.ErrNoContext)
	_, err = deleting(t, d, nil, "demo").Delete(t.Context(), client.DeleteOptions{})
	require.ErrorIs(t, err, client.ErrNoArchive)
	_, err = deleting(t, d, logs, "demo").Delete(t.Context(), client.DeleteOptions{Forks: "all"})
	require.ErrorAs(t, err, new(*event.FieldError))
	_, err = deleting(t, d, logs, "demo").Deletion(t.Context())
	require.ErrorIs(t, err, client.ErrNoContext)
	require.Empty(t, d.started)

	d.isRunning = true
	require.NoError(t, deleting(t, d, logs, "demo").StartDeletion(t.Context(), client.DeleteOptions{}), "nothing is left, but the deletion runs")
	running, err := deleting(t, d, logs, "demo").Deletion(t.Context())
	require.NoError(t, err)
	require.Zero(t, running.EndedAt)
}

func TestAForkOfADeletedContextIsUndone(t *testing.T) {
	bucket := blobstest.New(t)
	logs := archive.New(bucket.Store)
	put(t, logs, "demo", numbered(3))
	before := bucket.Names()
	err := deleting(t, &deletions{isRunning: true}, logs, "demo").Fork(t.Context(), id(2), "copy")
	require.ErrorIs(t, err, client.ErrNoContext)
	require.EqualError(t, err, "fork at demo:0002: context demo is deleted: no such context")
	require.Equal(t, before, bucket.Names())
}
