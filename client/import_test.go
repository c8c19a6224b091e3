package client_test

import (
	"bytes"
	"context"
	"iter"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	sdkclient "go.temporal.io/sdk/client"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs/blobstest"
	"github.com/seed-9ed7edd4/chronicle/internal/formats/chat"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// archived is a context with an archive.
func archived(t require.TestingT, f *temporal, logs *archive.Archive, name string) *client.Context {
	c, err := client.New(client.Options{Temporal: f, Archive: logs}).Open(name)
	require.NoError(t, err)
	return c
}

// put archives events as the log of a run.
func put(t require.TestingT, logs *archive.Archive, name string, events []event.Event) {
	folder, err := logs.Folder(context.Background(), name)
	require.NoError(t, err)
	require.NoError(t, folder.Register(context.Background(), archive.Run{ID: "A"}))
	_, err = logs.Write(context.Background(), name, "A", events)
	require.NoError(t, err)
}

func logOf(events []event.Event) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func importLog(ctx context.Context, c *client.Context, events []event.Event) error {
	_, err := c.Import(ctx, logOf(events), client.ImportOptions{})
	return err
}

// jsonl exports a log.
func jsonl(t require.TestingT, log iter.Seq2[event.Event, error]) string {
	var out bytes.Buffer
	_, err := chat.Write(&out, chat.JSONL, log, nil)
	require.NoError(t, err)
	return out.String()
}

func TestAnImportedLogEqualsTheExportedOne(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		logs := archive.New(blobstest.New(t).Store)
		put(r, logs, "demo", eventtest.Log("demo").Draw(r, "log"))
		exported := jsonl(r, archived(r, &temporal{}, logs, "demo").Events(t.Context(), ""))

		elsewhere := archive.New(blobstest.New(t).Store)
		for _, name := range []string{"demo", "copy"} {
			var events []event.Event
			for e, err := range chat.Read(strings.NewReader(exported), name, eventtest.Epoch) {
				require.NoError(r, err)
				events = append(events, e)
			}
			_, err := archived(r, &temporal{}, elsewhere, name).Import(t.Context(), logOf(events), client.ImportOptions{AllowMissing: true})
			require.NoError(r, err)
		}
		require.Equal(r, exported, jsonl(r, archived(r, &temporal{}, elsewhere, "demo").Events(t.Context(), "")))
		require.Equal(r, jsonl(r, func(yield func(event.Event, error) bool) {
			for e, err := range archived(r, &temporal{}, logs, "demo").Events(t.Context(), "") {
				if !yield(e.MovedTo("copy"), err) {
					return
				}
			}
		}), jsonl(r, archived(r, &temporal{}, elsewhere, "copy").Events(t.Context(), "")))
	})
}

func TestAnImportStartsASession(t *testing.T) {
	f := &temporal{}
	logs := archive.New(blobstest.New(t).Store)
	require.NoError(t, importLog(t.Context(), archived(t, f, logs, "demo"), numbered(1)))
	id, err := logs.Store().ReadIdentity(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, id)
	require.Equal(t, sdkclient.StartWorkflowOptions{
		ID: "context:demo", TaskQueue: "contexts", WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		Memo: map[string]any{wire.MemoStore: id},
	}, f.start, "a worker with another store does not open it")
}

// numbered are the first events of a context.
func numbered(count int) []event.Event {
	var events []event.Event
	for n := 1; n <= count; n++ {
		e := recorded(n, event.UserMessage{})
		e.Timestamp = eventtest.Epoch
		if n > 1 {
			e.ParentID = id(n - 1)
		}
		events = append(events, e)
	}
	return events
}

func TestAnInterruptedImportIsInvisibleUntilItIsRepeated(t *testing.T) {
	log := numbered(12_000)
	bucket := blobstest.New(t)
	logs := archive.New(bucket.Store)
	require.NoError(t, importLog(t.Context(), archived(t, &temporal{}, logs, "demo"), log))
	// As if the client was killed before it registered the import.
	const registration = "contexts/demo/runs/000000000001.json"
	bucket.Set(registration, nil)
	demo := archived(t, &temporal{}, logs, "demo")
	for _, err := range demo.Events(t.Context(), "") {
		require.ErrorIs(t, err, client.ErrNoContext)
	}
	require.NoError(t, importLog(t.Context(), demo, numbered(3)), "an import of another log succeeds")
	n := 0
	for _, err := range demo.Events(t.Context(), "") {
		require.NoError(t, err)
		n++
	}
	require.Equal(t, 3, n)
	require.ErrorIs(t, importLog(t.Context(), demo, log), client.ErrExists)
	bucket.Set(registration, nil)
	writes := bucket.Writes()
	require.NoError(t, importLog(t.Context(), demo, log))
	require.Equal(t, writes+1, bucket.Writes(), "only the registration is written")
	require.NoError(t, importLog(t.Context(), demo, log), "the session may not have started")
}

func TestImportErrors(t *testing.T) {
	logs := archive.New(blobstest.New(t).Store)
	for name, test := range map[string]struct {
		temporal *temporal
		archive  *archive.Archive
		events   []event.Event
		want     string
	}{
		"without an archive":       {&temporal{}, nil, numbered(1), "import context demo: the client has no blob store (set --blob-url"},
		"to an existing context":   {&temporal{known: true}, logs, numbered(1), "import context demo: context already exists (choose another name)"},
		"without events":           {&temporal{}, logs, nil, "the first event is missing (want the complete log)"},
		"without the first events": {&temporal{}, logs, numbered(2)[1:], "the first event is missing (want the complete log)"},
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorContains(t, importLog(t.Context(), archived(t, test.temporal, test.archive, "demo"), test.events), test.want)
		})
	}
}

func TestImportWithoutABlobStoreSaysWhatToSet(t *testing.T) {
	err := importLog(t.Context(), archived(t, &temporal{}, nil, "copy"), nil)
	require.ErrorIs(t, err, client.ErrNoArchive)
	require.EqualError(t, err, "import context copy: the client has no blob store (set --blob-url or BLOB_URL to the blob store of the workers)")
}
