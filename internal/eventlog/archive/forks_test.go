package archive_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs/blobstest"
)

func TestAnOriginListsItsForks(t *testing.T) {
	a := archive.New(blobstest.New(t).Store)
	require.NoError(t, register(t.Context(), a, "demo", archive.Run{ID: "A"}))
	for i, name := range []string{"b", "B", "a"} {
		require.NoError(t, fork(t.Context(), a, name, "demo", i+1))
	}
	require.NoError(t, fork(t.Context(), a, "c", "a", 1))

	forks, err := a.Forks(t.Context(), "demo")
	require.NoError(t, err)
	require.Equal(t, []archive.Fork{
		{"a", archive.Origin{ContextName: "demo", RunID: "A", At: 3}},
		{"b", archive.Origin{ContextName: "demo", RunID: "A", At: 1}},
		{"B", archive.Origin{ContextName: "demo", RunID: "A", At: 2}},
	}, forks)
	forks, err = a.Forks(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, []archive.Fork{{"c", archive.Origin{ContextName: "a", RunID: archive.ForkID, At: 1}}}, forks)
	forks, err = a.Forks(t.Context(), "none")
	require.NoError(t, err)
	require.Empty(t, forks)
	for problem, err := range a.Check(t.Context(), "demo") {
		t.Fatal(problem, err)
	}
}

func TestAContextThatBecameNoForkIsNotListed(t *testing.T) {
	bucket := blobstest.New(t)
	a := archive.New(bucket.Store)
	require.NoError(t, register(t.Context(), a, "demo", archive.Run{ID: "A"}))
	require.NoError(t, fork(t.Context(), a, "interrupted", "demo", 1))
	bucket.Set("contexts/interrupted/runs/000000000001.json", nil)
	require.NoError(t, fork(t.Context(), a, "other", "demo", 1))
	bucket.Set("contexts/other/runs/000000000001.json", nil)
	require.NoError(t, register(t.Context(), a, "other", archive.Run{ID: "A"}))

	forks, err := a.Forks(t.Context(), "demo")
	require.NoError(t, err)
	require.Empty(t, forks)

	bucket.Fail(errors.New("connection refused"))
	_, err = a.Forks(t.Context(), "demo")
	require.ErrorIs(t, err, blobs.ErrUnavailable)
	require.ErrorContains(t, err, "list the forks of context demo: ")
}

func TestManyForksAreListed(t *testing.T) {
	bucket := blobstest.New(t)
	a := archive.New(bucket.Store)
	require.NoError(t, register(t.Context(), a, "demo", archive.Run{ID: "A"}))
	for i := range 200 {
		require.NoError(t, fork(t.Context(), a, fmt.Sprintf("fork-%03d", i), "demo", 1))
	}
	reads := bucket.Reads()
	forks, err := a.Forks(t.Context(), "demo")
	require.Equal(t, 201, bucket.Reads()-reads, "a listing, and the registration of each fork")
	require.NoError(t, err)
	require.Len(t, forks, 200)
	require.True(t, slices.IsSortedFunc(forks, func(a, b archive.Fork) int { return cmp.Compare(a.ContextName, b.ContextName) }))
}
