package client_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs/blobstest"
)

func TestAForkBeginsWithTheLogOfItsOrigin(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		log := eventtest.Log("demo").Draw(r, "log")
		logs := archive.New(blobstest.New(t).Store)
		put(r, logs, "demo", log)
		at := rapid.IntRange(1, len(log)).Draw(r, "at")
		f := &temporal{}
		require.NoError(r, archived(r, f, logs, "demo").Fork(t.Context(), id(at), "copy"))
		require.Equal(r, "context:copy", f.start.ID)
		i := 0
		for e, err := range archived(r, f, logs, "copy").Events(t.Context(), "") {
			require.NoError(r, err)
			require.Equal(r, log[i].MovedTo("copy"), e)
			i++
		}
		require.Equal(r, at, i)
	})
}

func TestTheNumberOfStoreCallsOfAForkIsConstant(t *testing.T) {
	var reads, writes [2]int
	for i, length := range []int{100, 10_000} {
		bucket := blobstest.New(t)
		logs := archive.New(bucket.Store)
		put(t, logs, "demo", numbered(length))
		_, err := logs.Store().Identity(t.Context())
		require.NoError(t, err)
		reads[i], writes[i] = bucket.Reads(), bucket.Writes()
		require.NoError(t, archived(t, &temporal{}, logs, "demo").Fork(t.Context(), id(length), "copy"))
		reads[i], writes[i] = bucket.Reads()-reads[i], bucket.Writes()-writes[i]
	}
	require.Equal(t, [2]int{2, 2}, writes)
	require.Equal(t, reads[0], reads[1])
}

func TestForkErrors(t *testing.T) {
	logs := archive.New(blobstest.New(t).Store)
	for _, name := range []string{"demo", "taken"} {
		events := numbered(3)
		for i, e := range events {
			events[i] = e.MovedTo(name)
		}
		put(t, logs, name, events)
	}
	known := numbered(1)
	known[0] = known[0].MovedTo("gap")
	put(t, logs, "gap", known)
	folder, err := logs.Folder(t.Context(), "gap")
	require.NoError(t, err)
	require.NoError(t, folder.Register(t.Context(), archive.Run{ID: "B", After: 3, Behind: "A"}))
	for name, test := range map[string]struct {
		origin, at, as string
		temporal       *temporal
		archive        *archive.Archive
		want           error
		text           string
	}{
		"without an archive":             {"demo", "demo:0001", "copy", &temporal{}, nil, client.ErrNoArchive, "fork as context copy: the client has no blob store (set --blob-url or BLOB_URL to the blob store of the workers)"},
		"as an existing context":         {"demo", "demo:0001", "copy", &temporal{known: true}, logs, client.ErrExists, ""},
		"as an archived context":         {"demo", "demo:0001", "taken", &temporal{}, logs, client.ErrExists, ""},
		"as an invalid name":             {"demo", "demo:0001", "..", &temporal{}, logs, client.ErrName, ""},
		"of an unknown context":          {"none", "none:0001", "copy", &temporal{}, logs, client.ErrNoContext, ""},
		"at an event of another context": {"demo", "taken:0001", "copy", &temporal{}, logs, nil, `at: "taken:0001" is not an event of context demo (want an id like demo:0001)`},
		"beyond the log":                 {"demo", "demo:0004", "copy", &temporal{}, logs, nil, "fork at demo:0004: archive context demo: no such event: the log ends at demo:0003, before demo:0004"},
		"at a lost event":                {"gap", "gap:0002", "copy", &temporal{}, logs, nil, "fork at gap:0002: archive context gap: events 2 to 3 of context gap are neither in a history nor in the archive"},
	} {
		t.Run(name, func(t *testing.T) {
			err := archived(t, test.temporal, test.archive, test.origin).Fork(t.Context(), test.at, test.as)
			require.Error(t, err)
			if test.want != nil {
				require.ErrorIs(t, err, test.want)
			}
			require.ErrorContains(t, err, test.text)
			require.Empty(t, test.temporal.start.ID, "no run is started")
		})
	}
}
