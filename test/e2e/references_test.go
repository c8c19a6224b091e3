package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	sdkclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/connect"
	"github.com/seed-9ed7edd4/chronicle/internal/devserver"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// claimed is a signal input that claims to be the SDK's reference to an external payload.
func claimed(data string) converter.RawValue {
	return converter.NewRawValue(&commonpb.Payload{Data: []byte(data), Metadata: map[string][]byte{
		converter.MetadataEncoding:    []byte(converter.MetadataEncodingProtoJSON),
		converter.MetadataMessageType: []byte("temporal.api.sdk.v1.ExternalStorageReference"),
	}})
}

// claim refers to a payload of a context.
func claim(contextName, ref, store string) converter.RawValue {
	return claimed(`{"driverName":"chronicle-blobs","claimData":{"ref":"` + ref + `","store":"` + store + `","folder":"` + archive.BlobFolder(contextName) + `"}}`)
}

const missing = "sha256/0000000000000000000000000000000000000000000000000000000000000000"

// hostileReferences are references that cannot be read, with a part of the reason for rejection.
func hostileReferences(w *world, name string) map[string]struct {
	input  any
	reason string
} {
	blobs := w.archive.Blobs(name)
	noPayload, err := blobs.Put(w.ctx, []byte("\xff\xff\xff not a payload"))
	require.NoError(w.t, err)
	huge, err := blobs.Put(w.ctx, []byte(strings.Repeat("x", wire.MaxStoredBytes+1<<20)))
	require.NoError(w.t, err)
	nested, err := proto.Marshal(claim(name, missing, w.storeID).Payload())
	require.NoError(w.t, err)
	reference, err := blobs.Put(w.ctx, nested)
	require.NoError(w.t, err)
	return map[string]struct {
		input  any
		reason string
	}{
		"a missing object":       {claim(name, missing, w.storeID), "is not in the store"},
		"another store":          {claim(name, missing, "nope"), "is not in the store"},
		"no hash":                {claim(name, "../../etc/passwd", w.storeID), "invalid reference"},
		"an object of the store": {claim(name, string(noPayload), w.storeID), "is no payload"},
		"too large an object":    {claim(name, string(huge), w.storeID), "at most"},
		"another context":        {claim("other", string(noPayload), w.storeID), "it refers to another context"},
		"another reference":      {claim(name, string(reference), w.storeID), "another reference"},
		"another driver":         {claimed(`{"driverName":"s3","claimData":{}}`), `the storage driver is "s3"`},
		"no JSON":                {claimed(`{"driverName":`), "not JSON of an ExternalStorageReference"},
		"an early encoding":      {payload("json/external-storage-reference", `{"driver_name":"gone"}`), "the storage driver is"},
	}
}

func TestReferencesThatCannotBeReadAreRejected(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llmtest.Answer("Still here."))
	stop := w.worker()
	c := w.open("references")
	id := wire.WorkflowID(c.Name())
	w.send(c, event.New(event.SetTimeout{TimeoutMs: 10_000}))
	hostile := hostileReferences(w, c.Name())
	for name, bad := range hostile {
		require.NoError(t, w.temporal.SignalWorkflow(w.ctx, id, "", wire.SignalEvent, bad.input), name)
		w.await(c, func(e event.Event) bool {
			rejected, ok := e.Body.(event.InputRejected)
			return ok && strings.Contains(rejected.Reason, bad.reason) && rejected.Input != ""
		})
	}
	update, err := w.temporal.UpdateWorkflow(w.ctx, sdkclient.UpdateWorkflowOptions{
		WorkflowID: id, UpdateName: wire.UpdateAppend, Args: []any{claim("other", missing, "nope")}, WaitForStage: sdkclient.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = update.Get(w.ctx, nil)
	}
	require.ErrorContains(t, err, "want JSON")
	_, err = w.temporal.QueryWorkflow(w.ctx, id, "", wire.QueryDelivery, claim("other", missing, "nope"))
	require.Error(t, err)
	stop()
	w.worker()
	last := w.say(c, "Still there?")
	require.Equal(t, event.TagLLMRequestCompleted, last[len(last)-1].Tag())
	require.Equal(t, []string{"Still here."}, w.requireConsistentLog(c, "Still there?"))
	rejections := countOf(w, c, event.TagInputRejected)
	require.Equal(t, len(hostile), rejections)
	w.replay(c, "")
}

func TestABudgetIgnoresAReferenceThatCannotBeRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.worker()
	id := wire.BudgetID("", "team", w.queue)
	_, err := w.temporal.SignalWithStartWorkflow(w.ctx, id, wire.SignalSettle, claim("other", missing, "nope"),
		sdkclient.StartWorkflowOptions{ID: id, TaskQueue: w.queue}, wire.WorkflowBudget, reducer.Ledger{})
	require.NoError(t, err)
	update, err := w.temporal.UpdateWorkflow(w.ctx, sdkclient.UpdateWorkflowOptions{
		WorkflowID: id, UpdateName: wire.UpdateReserve, WaitForStage: sdkclient.WorkflowUpdateStageCompleted,
		Args: []any{wire.Reserve{Reservations: []reducer.Reservation{{Key: "k", Wanted: event.Amount{Tokens: 1}, Limit: event.Budget{Tokens: new(int64(10))}}}}},
	})
	require.NoError(t, err)
	var reserved wire.Reserved
	require.NoError(t, update.Get(w.ctx, &reserved))
	require.True(t, reserved.Answers[0].Granted)
}

func TestALargeInputIsLoadedInItsPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llmtest.Answer("Read."))
	w.worker()
	c := w.open("large-input")
	text := strings.Repeat("long ", 40_000)
	quiet := false
	w.send(c, event.New(event.UserMessage{Content: "before", TriggersTurn: &quiet}))
	for _, content := range []string{text, "after"} {
		require.NoError(t, w.temporal.SignalWorkflow(w.ctx, wire.WorkflowID(c.Name()), "", wire.SignalEvent,
			event.New(event.UserMessage{Content: content, TriggersTurn: &quiet})))
	}
	w.say(c, "Summarize.")
	var contents []string
	for _, m := range w.model.Requests()[0].Messages {
		contents = append(contents, m.Content)
	}
	require.Contains(t, strings.Join(contents, "|"), "before|"+text+"|after|Summarize.")
	w.replay(c, "")
}

func TestAContextStartedWithTheMemoOfAnotherStoreOpens(t *testing.T) {
	t.Parallel()
	devServerOnly(t)
	own, err := devserver.Start(t.Context(), devserver.Options{Command: command, DataDir: t.TempDir(), Unsynced: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, own.Stop()) })
	w := newWorldOn(t, environment{temporal: own.Address()}, llmtest.Answer("Open."))
	require.NoError(t, connect.BindStore(w.ctx, w.temporal, "default", w.storeID))
	conn := w.connection()
	conn.SearchAttributes = false
	w.workerOn(conn, w.workerOptions())
	w.client = client.New(client.Options{Temporal: w.temporal, Namespace: "default", Stream: w.stream, Archive: w.archive, TaskQueue: w.queue})
	c := w.open("claimed")
	_, err = w.temporal.ExecuteWorkflow(w.ctx, sdkclient.StartWorkflowOptions{
		ID: wire.WorkflowID(c.Name()), TaskQueue: w.queue, Memo: map[string]any{wire.MemoStore: "evil", wire.MemoPreviousRun: "no run"},
	}, wire.WorkflowType, claim("other", missing, "nope"))
	require.NoError(t, err)
	w.awaitHistory(c, func(h *historypb.HistoryEvent) bool { return h.GetWorkflowPropertiesModifiedEventAttributes() != nil })
	w.say(c, "Are you open?")
	require.Equal(t, []string{"Open."}, w.requireConsistentLog(c, "Are you open?"))
}
