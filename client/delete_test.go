package client_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	sdkclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	sdktemporal "go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs/blobstest"
	"github.com/seed-9ed7edd4/chronicle/internal/pause"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// deletions is a Temporal client without contexts that runs deletions.
type deletions struct {
	temporal
	isRunning bool   // a deletion of demo
	session   string // the open run of demo, which ends after a second with a worker; "": none
	hasWorker bool
	started   []sdkclient.StartWorkflowOptions
	inputs    []any
	result    client.Deletion
	failure   error // of the deletion
	status    enumspb.WorkflowExecutionStatus
}

func (d *deletions) ExecuteWorkflow(_ context.Context, options sdkclient.StartWorkflowOptions, workflow any, args ...any) (sdkclient.WorkflowRun, error) {
	if workflow != wire.WorkflowDelete {
		panic(workflow)
	}
	if d.isRunning {
		return nil, serviceerror.NewWorkflowExecutionAlreadyStarted("it runs", "", "run")
	}
	d.started, d.inputs, d.isRunning = append(d.started, options), append(d.inputs, args...), true
	return d.GetWorkflow(context.Background(), options.ID, ""), nil
}

func (d *deletions) GetWorkflow(_ context.Context, workflowID, runID string) sdkclient.WorkflowRun {
	if workflowID == wire.WorkflowID("demo") && runID == d.session {
		return sessionRun{of: d}
	}
	return deletionRun{of: d, id: workflowID}
}

func (d *deletions) DescribeWorkflowExecution(_ context.Context, workflowID, _ string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	if workflowID == wire.WorkflowID("demo") && d.session != "" {
		return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
			Status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, Execution: &commonpb.WorkflowExecution{RunId: d.session},
		}}, nil
	}
	if workflowID != wire.DeletionID("demo") || !d.isRunning && d.status == 0 {
		return nil, serviceerror.NewNotFound("no such workflow")
	}
	response := &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
		Status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, Memo: &commonpb.Memo{}, CloseTime: timestamppb.New(time.Unix(9, 0)),
	}}
	if !d.isRunning {
		response.WorkflowExecutionInfo.Status = d.status
	}
	if len(d.started) > 0 && d.started[0].Memo != nil {
		payload, err := converter.GetDefaultDataConverter().ToPayload(d.started[0].Memo[wire.MemoForks])
		if err != nil {
			return nil, err
		}
		response.WorkflowExecutionInfo.Memo.Fields = map[string]*commonpb.Payload{wire.MemoForks: payload}
	}
	// A deletion with many forks almost always has a workflow task.
	response.PendingWorkflowTask = &workflowpb.PendingWorkflowTaskInfo{State: enumspb.PENDING_WORKFLOW_TASK_STATE_SCHEDULED}
	response.WorkflowExecutionInfo.HistoryLength = 2
	if d.hasWorker {
		response.WorkflowExecutionInfo.HistoryLength = 100
	}
	return response, nil
}

func (d *deletions) QueryWorkflow(ctx context.Context, workflowID, _, query string, _ ...any) (converter.EncodedValue, error) {
	if workflowID != wire.DeletionID("demo") || query != wire.QueryDeletion {
		panic(query)
	}
	if !d.hasWorker {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	payloads, err := converter.GetDefaultDataConverter().ToPayloads(client.Deletion{
		ContextName: "demo", StartedAt: time.Unix(1, 0), Removed: []wire.Removed{{Place: wire.PlaceRuns, Count: 3}},
	})
	return sdkclient.NewValue(payloads), err
}

type sessionRun struct {
	sdkclient.WorkflowRun
	of *deletions
}

func (r sessionRun) Get(ctx context.Context, _ any) error {
	wait := 24 * time.Hour
	if r.of.hasWorker && r.of.isRunning {
		wait = time.Second
	}
	if !pause.For(ctx, wait) {
		return ctx.Err()
	}
	r.of.session = ""
	return nil
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
	switch {
	case !r.of.isRunning:
		wait = 0
	case !r.of.hasWorker:
		wait = 24 * time.Hour
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(wait):
	}
	*result.(*client.Deletion) = client.Deletion{ContextName: "demo", EndedAt: time.Now()}
	if r.of.result.ContextName != "" {
		*result.(*client.Deletion) = r.of.result
	}
	return r.of.failure
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
			ID: "delete:demo", TaskQueue: "contexts", WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
			WorkflowExecutionErrorWhenAlreadyStarted: true, Memo: map[string]any{wire.MemoForks: client.DeleteForks},
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
		require.EqualError(t, err, "delete context demo: no worker responds (start one, or retry later if they are busy): the deletion begins when one runs")
	})
}

func TestInputAfterTheStartOfADeletionMeetsNoSessionThatItEnds(t *testing.T) {
	logs := archive.New(blobstest.New(t).Store)
	put(t, logs, "demo", numbered(1))
	synctest.Test(t, func(t *testing.T) {
		d := &deletions{hasWorker: true, session: "open"}
		require.NoError(t, deleting(t, d, logs, "demo").StartDeletion(t.Context(), client.DeleteOptions{}))
		require.Empty(t, d.session)

		begun := time.Now()
		d.session = "waits" // with input, for the end of the deletion
		require.NoError(t, deleting(t, d, logs, "demo").StartDeletion(t.Context(), client.DeleteOptions{}))
		d = &deletions{hasWorker: true, session: "inactive"} // input ends this deletion
		require.NoError(t, deleting(t, d, logs, "demo").StartDeletion(t.Context(), client.DeleteOptions{InactiveSince: begun}))
		require.Zero(t, time.Since(begun))

		require.NoError(t, deleting(t, &deletions{session: "no worker"}, logs, "demo").StartDeletion(t.Context(), client.DeleteOptions{}))
		require.Equal(t, 10*time.Second, time.Since(begun))
	})
}

// A round of the deletion that follows would delete what they store.
func TestTheNameOfAContextIsFreeWhenItsDeletionHasEnded(t *testing.T) {
	logs := archive.New(blobstest.New(t).Store)
	put(t, logs, "origin", []event.Event{numbered(1)[0].MovedTo("origin")})
	d := &deletions{isRunning: true}
	demo := deleting(t, d, logs, "demo")
	require.ErrorIs(t, importLog(t.Context(), demo, numbered(1)), client.ErrExists)
	err := deleting(t, d, logs, "origin").Fork(t.Context(), "origin:0001", "demo")
	require.EqualError(t, err, "fork as context demo: context already exists (choose another name): its deletion has not ended")
	isStored, err := logs.IsStored(t.Context(), "demo")
	require.NoError(t, err)
	require.False(t, isStored)
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

	put(t, logs, "demo", numbered(1))
	require.NoError(t, deleting(t, d, logs, "demo").StartDeletion(t.Context(), client.DeleteOptions{}))
	_, err = logs.Delete(t.Context(), "demo")
	require.NoError(t, err)
	require.NoError(t, deleting(t, d, logs, "demo").StartDeletion(t.Context(), client.DeleteOptions{}), "nothing is left, but the deletion runs")
	running, err := deleting(t, d, logs, "demo").Deletion(t.Context())
	require.NoError(t, err)
	require.Zero(t, running.EndedAt)
}

func TestASecondDeletionWithOtherOptionsIsRejected(t *testing.T) {
	logs := archive.New(blobstest.New(t).Store)
	put(t, logs, "demo", numbered(1))
	inactive := client.DeleteOptions{Forks: client.KeepForks, InactiveSince: time.Unix(1, 0)}
	for _, test := range []struct {
		running, next client.DeleteOptions
		want          string
	}{
		{client.DeleteOptions{}, client.DeleteOptions{Forks: client.KeepForks}, ""},
		{client.DeleteOptions{Forks: client.DeleteForks}, client.DeleteOptions{Forks: client.DeleteForks}, ""},
		{client.DeleteOptions{Forks: client.DeleteForks}, client.DeleteOptions{},
			"delete context demo: a deletion runs: its choice for forks is delete (repeat with this choice, or when it has ended)"},
		{client.DeleteOptions{}, client.DeleteOptions{Forks: client.DeleteForks},
			"delete context demo: a deletion runs: its choice for forks is keep (repeat with this choice, or when it has ended)"},
		{inactive, client.DeleteOptions{},
			"delete context demo: a deletion runs: it deletes the context only if it is inactive (repeat when it has ended)"},
		{client.DeleteOptions{}, inactive,
			"delete context demo: a deletion runs: its choice for forks is keep (repeat with this choice, or when it has ended)"},
	} {
		d := &deletions{hasWorker: true}
		require.NoError(t, deleting(t, d, logs, "demo").StartDeletion(t.Context(), test.running))
		err := deleting(t, d, logs, "demo").StartDeletion(t.Context(), test.next)
		if test.want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, client.ErrDeleting)
		require.EqualError(t, err, test.want)
		require.Len(t, d.started, 1)
	}
}

// The deletion would delete it before a run reads it.
func TestNothingIsStoredForInputWhileADeletionRuns(t *testing.T) {
	bucket := blobstest.New(t)
	c := deleting(t, &deletions{isRunning: true}, archive.New(bucket.Store), "demo")
	for name, e := range map[string]event.Event{
		"file": file("text/plain", 8<<10),
		"text": event.New(event.UserMessage{Content: strings.Repeat("x", wire.MaxAppendBytes)}),
	} {
		_, err := c.Send(t.Context(), e)
		require.ErrorIs(t, err, client.ErrDeleting, name)
		require.ErrorContains(t, err, "context demo: a deletion runs", name)
	}
	require.Zero(t, bucket.Writes())
}

func TestADeletionThatEndedEarlySaysWhy(t *testing.T) {
	so := client.Deletion{ContextName: "demo", StartedAt: time.Unix(1, 0).UTC(), Removed: []wire.Removed{{Place: wire.PlaceRuns, Count: 3}}}
	active := so
	active.EndedAt, active.Error = time.Unix(8, 0), wire.StillActive
	for name, test := range map[string]struct {
		deletions
		want string
	}{
		"failed": {deletions{
			status: enumspb.WORKFLOW_EXECUTION_STATUS_FAILED, failure: sdktemporal.NewNonRetryableApplicationError("a part is lost (delete the forks, too)", "Lost", nil, so),
		}, "a part is lost (delete the forks, too)"},
		"terminated": {deletions{
			status: enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED, result: so, failure: &sdktemporal.WorkflowExecutionError{},
		}, "it was stopped (delete the context again)"},
		"active": {deletions{status: enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, result: active}, "the context is active again: nothing was deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			logs := archive.New(blobstest.New(t).Store)
			put(t, logs, "demo", numbered(1))
			d := test.deletions
			d.hasWorker = true
			receipt, err := deleting(t, &d, logs, "demo").Deletion(t.Context())
			require.NoError(t, err)
			require.Equal(t, test.want, receipt.Error)
			require.False(t, receipt.EndedAt.IsZero())
			require.Equal(t, so.StartedAt, receipt.StartedAt.UTC())

			synctest.Test(t, func(t *testing.T) {
				receipt, err = deleting(t, &d, logs, "demo").Delete(t.Context(), client.DeleteOptions{})
				require.EqualError(t, err, "delete context demo: "+test.want)
				require.Equal(t, so.Removed, receipt.Removed)
				require.Len(t, d.started, 1, "another deletion resumes it")
			})
		})
	}
}

func TestARunningDeletionShowsItsProgress(t *testing.T) {
	logs := archive.New(blobstest.New(t).Store)
	put(t, logs, "demo", numbered(1))
	for _, hasWorker := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			d := &deletions{isRunning: true, hasWorker: hasWorker}
			running, err := deleting(t, d, logs, "demo").Deletion(t.Context())
			require.NoError(t, err)
			require.Zero(t, running.EndedAt)
			require.NotNil(t, running.Removed)
			require.Equal(t, hasWorker, len(running.Removed) == 1)
		})
	}
	synctest.Test(t, func(t *testing.T) {
		shown := 0
		_, err := deleting(t, &deletions{hasWorker: true}, logs, "demo").Delete(t.Context(), client.DeleteOptions{Progress: func(d client.Deletion) {
			require.Equal(t, 3, d.Removed[0].Count)
			shown++
		}})
		require.NoError(t, err)
		require.InDelta(t, 60, shown, 1)
	})
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
