package archive_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs/blobstest"
)

func cursor(t *testing.T, a *archive.Archive, contextName, reader string) *archive.Cursor {
	t.Helper()
	c, err := a.Cursor(t.Context(), contextName, reader)
	require.NoError(t, err)
	return c
}

func after(runID string, n int) archive.Progress {
	return archive.Progress{Position: archive.Position{RunID: runID, After: n}}
}

func TestACursorIsStored(t *testing.T) {
	a := archive.New(blobstest.New(t).Store)
	c := cursor(t, a, "demo", "crm/1")
	require.True(t, c.IsNew())
	require.NoError(t, c.Set(t.Context(), after("A", 3)))
	failing := archive.Progress{Position: archive.Position{RunID: "B", After: 7}, FailingSince: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Through: 9}
	require.NoError(t, c.Set(t.Context(), failing))
	require.Equal(t, failing, cursor(t, a, "demo", "crm/1").Progress)
	require.False(t, cursor(t, a, "demo", "crm/1").IsNew())
	for _, other := range [][2]string{{"demo", "crm"}, {"Demo", "crm/1"}, {"demo2", "crm/1"}} {
		require.True(t, cursor(t, a, other[0], other[1]).IsNew(), other)
	}
	var names []string
	for name, err := range a.Store().Names(t.Context(), "cursors/demo/") {
		require.NoError(t, err)
		names = append(names, name)
	}
	require.Len(t, names, 1, "older objects are deleted")
}

func TestALateWriterDoesNotMoveACursor(t *testing.T) {
	a := archive.New(blobstest.New(t).Store)
	require.NoError(t, cursor(t, a, "demo", "crm").Set(t.Context(), after("A", 1)))
	late, later := cursor(t, a, "demo", "crm"), cursor(t, a, "demo", "crm")
	current := cursor(t, a, "demo", "crm")
	require.NoError(t, current.Set(t.Context(), after("A", 5)))
	require.ErrorIs(t, late.Set(t.Context(), after("A", 2)), blobs.ErrExists)
	for n := 6; n < 9; n++ {
		require.NoError(t, current.Set(t.Context(), after("A", n)))
	}
	_ = later.Set(t.Context(), after("A", 3)) // its number was deleted, so it may succeed
	require.Equal(t, 8, cursor(t, a, "demo", "crm").Progress.After)
	require.NoError(t, cursor(t, a, "demo", "crm").Set(t.Context(), after("A", 9)))
	require.Equal(t, 9, cursor(t, a, "demo", "crm").Progress.After)
}

func TestCursorsAreNoEntriesOfAnArchive(t *testing.T) {
	a := archive.New(blobstest.New(t).Store)
	require.NoError(t, cursor(t, a, "demo", "crm").Set(t.Context(), after("", 0)))
	problems := slices.Collect(func(yield func(string) bool) {
		for p, err := range a.Check(t.Context(), "demo") {
			require.NoError(t, err)
			yield(p.String())
		}
	})
	require.Empty(t, problems)
}
