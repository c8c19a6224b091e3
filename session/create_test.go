package session_test

import (
	"bytes"
	"iter"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/archive"
	"github.com/seed-9ed7edd4/chronicle/blobs/blobstest"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
	"github.com/seed-9ed7edd4/chronicle/exchange"
	"github.com/seed-9ed7edd4/chronicle/session"
)

// archived is a context of a Temporal and an archive.
func archived(t require.TestingT, f *temporal, logs *archive.Archive, name string) *session.Context {
	c, err := session.New(session.Options{Temporal: f, Archive: logs}).Open(name)
	require.NoError(t, err)
	return c
}

// jsonl is a log as it is exported.
func jsonl(t require.TestingT, log iter.Seq2[event.Event, error]) string {
	var out bytes.Buffer
	require.NoError(t, exchange.Write(&out, exchange.JSONL, log))
	return out.String()
}

func TestALogIsImportedAsItWasExported(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		logs := archive.New(blobstest.New(t).Store)
		_, err := logs.Write(t.Context(), "demo", eventtest.Log("demo").Draw(r, "log"))
		require.NoError(r, err)
		exported := jsonl(r, archived(r, &temporal{}, logs, "demo").Events(t.Context(), ""))

		elsewhere := archive.New(blobstest.New(t).Store)
		for _, name := range []string{"demo", "copy"} {
			var events []event.Event
			for e, err := range exchange.Read(strings.NewReader(exported), name, eventtest.Epoch) {
				require.NoError(r, err)
				events = append(events, e)
			}
			require.NoError(r, archived(r, &temporal{}, elsewhere, name).Import(t.Context(), events))
		}
		require.Equal(r, exported, jsonl(r, archived(r, &temporal{}, elsewhere, "demo").Events(t.Context(), "")))
		require.Equal(r, jsonl(r, func(yield func(event.Event, error) bool) {
			for e, err := range logs.Events(t.Context(), "demo", 0) {
				if !yield(e.MovedTo("copy"), err) {
					return
				}
			}
		}), jsonl(r, archived(r, &temporal{}, elsewhere, "copy").Events(t.Context(), "")))
	})
}

func TestAnImportBeginsASession(t *testing.T) {
	f := &temporal{}
	require.NoError(t, archived(t, f, archive.New(blobstest.New(t).Store), "demo").Import(t.Context(), numbered(1)))
	require.Equal(t, client.StartWorkflowOptions{
		ID: "context:demo", TaskQueue: "contexts", WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
	}, f.start)
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

func TestAnImportThatWasCutShortIsUnseenUntilItIsFinished(t *testing.T) {
	log := numbered(12_000)
	logs := archive.New(blobstest.New(t).Store)
	// The end is written first.
	_, err := logs.Write(t.Context(), "demo", log[10_000:])
	require.NoError(t, err)
	demo := archived(t, &temporal{}, logs, "demo")
	require.Empty(t, jsonl(t, demo.Events(t.Context(), "")))

	err = demo.Import(t.Context(), log[:11_000])
	require.ErrorIs(t, err, session.ErrExists)
	require.ErrorContains(t, err, "has left events up to 12000 in the archive")
	other := numbered(12_000)
	other[11_000].Body = event.UserMessage{Content: "Another"}
	require.ErrorIs(t, demo.Import(t.Context(), other), archive.ErrConflict)
	require.Empty(t, jsonl(t, demo.Events(t.Context(), "")))

	require.NoError(t, demo.Import(t.Context(), log))
	segments, err := logs.Segments(t.Context(), "demo")
	require.NoError(t, err)
	require.Len(t, segments, 3)
	require.ErrorIs(t, demo.Import(t.Context(), log), session.ErrExists)
}

func TestAnImportIsRefused(t *testing.T) {
	logs := archive.New(blobstest.New(t).Store)
	for name, test := range map[string]struct {
		temporal *temporal
		archive  *archive.Archive
		events   []event.Event
		want     string
	}{
		"without an archive":       {&temporal{}, nil, numbered(1), "import context demo: the client has no blob store (give the blob store of the workers by --blob-url"},
		"when there is a run":      {&temporal{known: true}, logs, numbered(1), "import context demo: there is such a context already"},
		"without events":           {&temporal{}, logs, nil, "want all events, from the first on"},
		"without the first events": {&temporal{}, logs, numbered(2)[1:], "want all events, from the first on"},
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorContains(t, archived(t, test.temporal, test.archive, "demo").Import(t.Context(), test.events), test.want)
		})
	}
}
