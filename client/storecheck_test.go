package client_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	sdkclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs/blobstest"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// bound is a run with a blob store in its memo.
func bound(t *testing.T, storeID string) *workflowservice.DescribeWorkflowExecutionResponse {
	t.Helper()
	payload, err := converter.GetDefaultDataConverter().ToPayload(storeID)
	require.NoError(t, err)
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
		Status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
		Memo:   &commonpb.Memo{Fields: map[string]*commonpb.Payload{wire.MemoStore: payload}},
	}}
}

// appends records every update.
func appends(sdkclient.UpdateWorkflowOptions) (wire.Appended, error) {
	return wire.Appended{EventIDs: []string{"demo:0002"}}, nil
}

// changes are the operations that change a context.
var changes = map[string]func(context.Context, *client.Context) error{
	"send to": func(ctx context.Context, c *client.Context) error {
		_, err := c.Send(ctx, event.New(event.UserMessage{Content: "Hello"}), file("text/plain", 1<<20))
		return err
	},
	"interrupt": func(ctx context.Context, c *client.Context) error { return c.Interrupt(ctx) },
	"close":     func(ctx context.Context, c *client.Context) error { return c.Close(ctx, "") },
	"import":    func(ctx context.Context, c *client.Context) error { return importLog(ctx, c, numbered(1)) },
}

func TestAClientWithAnotherStoreChangesNothing(t *testing.T) {
	for verb, change := range changes {
		for name, id := range map[string]string{"a used store": "MINE", "a new store": ""} {
			t.Run(verb+" with "+name, func(t *testing.T) {
				bucket := blobstest.New(t)
				got := "one without contexts"
				if id != "" {
					got = id
					bucket.Set("store.json", []byte(`{"version":1,"id":"`+id+`"}`))
				}
				f := &temporal{run: bound(t, "THEIRS"), update: appends}
				err := change(t.Context(), archived(t, f, archive.New(bucket.Store), "demo"))
				require.ErrorIs(t, err, client.ErrOtherStore)
				require.ErrorContains(t, err, verb+" context demo: it belongs to blob store THEIRS, but this process uses "+got+": ")
				require.Empty(t, f.updates)
				require.Empty(t, f.signals)
				require.Empty(t, f.start)
				require.Zero(t, bucket.Writes())
			})
		}
	}
	t.Run("fork", func(t *testing.T) {
		bucket := blobstest.New(t)
		f := &forked{temporal: temporal{run: bound(t, "THEIRS")}}
		c, err := client.New(client.Options{Temporal: f, Archive: archive.New(bucket.Store)}).Open("demo")
		require.NoError(t, err)
		err = c.Fork(t.Context(), "demo:0001", "copy")
		require.ErrorIs(t, err, client.ErrOtherStore)
		require.ErrorContains(t, err, "context demo: it belongs to blob store THEIRS, but this process uses one without contexts: ")
		require.Empty(t, f.start)
		require.Zero(t, bucket.Writes())
	})
}

// forked has only the context demo.
type forked struct{ temporal }

func (f *forked) DescribeWorkflowExecution(ctx context.Context, workflowID, runID string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	if workflowID != "context:demo" {
		return nil, serviceerror.NewNotFound("no such workflow")
	}
	return f.temporal.DescribeWorkflowExecution(ctx, workflowID, runID)
}

func TestTheStoreOfAContextIsComparedOnce(t *testing.T) {
	store := blobstest.New(t).Store
	id, err := store.Identity(t.Context())
	require.NoError(t, err)
	f := &temporal{run: bound(t, id), update: appends}
	c := archived(t, f, archive.New(store), "demo")
	for range 3 {
		for _, verb := range []string{"send to", "interrupt", "close"} {
			require.NoError(t, changes[verb](t.Context(), c))
		}
	}
	require.EqualValues(t, 1, f.described)
	require.Equal(t, map[string]any{wire.MemoStore: id}, f.start.Memo, "a worker with another store does not open the next session")
}

func TestANewContextHasNoStoreToCompare(t *testing.T) {
	f := &temporal{update: appends}
	c := archived(t, f, archive.New(blobstest.New(t).Store), "demo")
	require.NoError(t, changes["send to"](t.Context(), c))
	require.Empty(t, f.start.Memo, "the store of the client is unconfirmed")

	f.run = bound(t, "THEIRS") // the worker that responded has set it
	require.ErrorIs(t, changes["send to"](t.Context(), c), client.ErrOtherStore)
	require.Len(t, f.updates, 1)
}

func TestAClientWithoutAStoreComparesNothing(t *testing.T) {
	f := &temporal{run: bound(t, "THEIRS"), update: appends}
	_, err := archived(t, f, nil, "demo").Send(t.Context(), event.New(event.UserMessage{Content: "Hello"}))
	require.NoError(t, err)
	require.Zero(t, f.described)
}

func TestSmallInputIsSentDuringAnOutageOfTheStore(t *testing.T) {
	bucket := blobstest.New(t)
	bucket.Fail(errors.New("away"))
	f := &temporal{run: bound(t, "THEIRS"), update: appends}
	_, err := archived(t, f, archive.New(bucket.Store), "demo").Send(t.Context(), event.New(event.UserMessage{Content: "Hello"}))
	require.NoError(t, err)
	require.Empty(t, f.start.Memo)
}
