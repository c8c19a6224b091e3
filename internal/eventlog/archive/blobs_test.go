package archive_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs/blobstest"
)

func TestABlobBelongsToAContextAndItsForks(t *testing.T) {
	bucket := blobstest.New(t)
	a := archive.New(bucket.Store)
	require.NoError(t, register(t.Context(), a, "demo", archive.Run{ID: "A"}))
	require.NoError(t, fork(t.Context(), a, "copy", "demo", 1))
	require.NoError(t, fork(t.Context(), a, "copy-of-copy", "copy", 1))
	require.NoError(t, register(t.Context(), a, "other", archive.Run{ID: "A"}))

	ref, err := a.Blobs("demo").Put(t.Context(), []byte("hello"))
	require.NoError(t, err)
	for _, name := range []string{"demo", "copy", "copy-of-copy"} {
		data, err := a.Blobs(name).Get(t.Context(), ref)
		require.NoError(t, err, name)
		require.Equal(t, "hello", string(data))
	}
	for _, name := range []string{"other", "none"} {
		_, err := a.Blobs(name).Get(t.Context(), ref)
		require.ErrorIs(t, err, blobs.ErrNotFound, name)
	}
	_, err = bucket.Store.Get(t.Context(), ref)
	require.ErrorIs(t, err, blobs.ErrNotFound)

	same, err := a.Blobs("other").Put(t.Context(), []byte("hello"))
	require.NoError(t, err)
	require.Equal(t, ref, same)
	bucket.Set("blobs/demo/"+string(ref), nil)
	_, err = a.Blobs("other").Get(t.Context(), ref)
	require.NoError(t, err, "contexts share no blobs")
	_, err = a.Blobs("copy").Get(t.Context(), ref)
	require.ErrorIs(t, err, blobs.ErrNotFound)
}

func TestABlobOfADistantOriginTakesTwoReadsPerFork(t *testing.T) {
	bucket := blobstest.New(t)
	a := archive.New(bucket.Store)
	require.NoError(t, register(t.Context(), a, "fork-0", archive.Run{ID: "A"}))
	for n := 1; n <= 10; n++ {
		require.NoError(t, fork(t.Context(), a, fmt.Sprint("fork-", n), fmt.Sprint("fork-", n-1), 1))
	}
	ref, err := a.Blobs("fork-0").Put(t.Context(), []byte("hello"))
	require.NoError(t, err)
	reads := bucket.Reads()
	_, err = a.Blobs("fork-10").Get(t.Context(), ref)
	require.NoError(t, err)
	require.Equal(t, 21, bucket.Reads()-reads)
}

func TestABlobOfAnUnavailableStoreIsNotMissing(t *testing.T) {
	bucket := blobstest.New(t)
	a := archive.New(bucket.Store)
	require.NoError(t, register(t.Context(), a, "demo", archive.Run{ID: "A"}))
	require.NoError(t, fork(t.Context(), a, "copy", "demo", 1))
	ref, err := a.Blobs("demo").Put(t.Context(), []byte("hello"))
	require.NoError(t, err)
	bucket.Set("contexts/copy/runs/000000000001.json", []byte("no JSON"))
	_, err = a.Blobs("copy").Get(t.Context(), ref)
	require.ErrorIs(t, err, blobs.ErrCorrupt)
	bucket.Fail(errors.New("no route"))
	_, err = a.Blobs("copy").Get(t.Context(), ref)
	require.ErrorIs(t, err, blobs.ErrUnavailable)
}
