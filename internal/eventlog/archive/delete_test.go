package archive_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs/blobstest"
)

// store stores a log with an attachment, and a cursor.
func store(t *testing.T, a *archive.Archive, contextName string) blobs.Ref {
	t.Helper()
	ref, err := a.Blobs(contextName).Put(t.Context(), []byte("PNG of a harbour"))
	require.NoError(t, err)
	log := messages(contextName, 1, 2500)
	log[1].Body = event.FileAttachment{Source: event.Source{Type: event.SourceBlob, Ref: string(ref)}, MediaType: "image/png", Size: 16}
	log[2].Body = event.FileAttachment{Source: event.Source{Type: event.SourceBlob, Ref: event.RefOf([]byte("missing"))}, MediaType: "image/png", Size: 7}
	_, err = put(t.Context(), a, contextName, log)
	require.NoError(t, err)
	cursor, err := a.Cursor(t.Context(), contextName, "crm")
	require.NoError(t, err)
	require.NoError(t, cursor.Set(t.Context(), archive.Progress{Epoch: 1}))
	return ref
}

func below(bucket *blobstest.Bucket, contextName string) []string {
	return slices.DeleteFunc(bucket.Names(), func(name string) bool { return !strings.Contains(name, "/"+contextName+"/") })
}

func TestADeletedContextLeavesNothingAndOthersStay(t *testing.T) {
	bucket := blobstest.New(t)
	a := archive.New(bucket.Store)
	store(t, a, "other")
	before := bucket.Names()
	store(t, a, "demo")
	require.NoError(t, fork(t.Context(), a, "copy", "demo", 1))
	require.NoError(t, fork(t.Context(), a, "copy-of-copy", "copy", 1))
	isStored, err := a.IsStored(t.Context(), "copy")
	require.NoError(t, err)
	require.True(t, isStored)

	for _, name := range []string{"copy-of-copy", "copy"} {
		deleted, err := a.Delete(t.Context(), name)
		require.NoError(t, err)
		require.Equal(t, archive.Deleted{Log: 1, Forks: 1}, deleted)
	}
	forks, err := a.Forks(t.Context(), "demo")
	require.NoError(t, err)
	require.Empty(t, forks)
	deleted, err := a.Delete(t.Context(), "demo")
	require.NoError(t, err)
	require.Equal(t, archive.Deleted{Log: 2, Blobs: 2, Cursors: 1}, deleted)
	require.Equal(t, before, bucket.Names())

	deleted, err = a.Delete(t.Context(), "demo")
	require.NoError(t, err)
	require.Zero(t, deleted)
	isStored, err = a.IsStored(t.Context(), "demo")
	require.NoError(t, err)
	require.False(t, isStored)
}

func TestAnInterruptedDeletionIsRepeated(t *testing.T) {
	bucket := blobstest.New(t)
	a := archive.New(bucket.Store)
	store(t, a, "demo")
	bucket.Fail(errors.New("no route"))
	_, err := a.Delete(t.Context(), "demo")
	require.ErrorIs(t, err, blobs.ErrUnavailable)
	_, err = a.IsStored(t.Context(), "demo")
	require.ErrorIs(t, err, blobs.ErrUnavailable)
	bucket.Fail(nil)
	_, err = a.Delete(t.Context(), "demo")
	require.NoError(t, err)
	require.Empty(t, below(bucket, "demo"))
}

func TestADetachedForkOutlivesItsOrigin(t *testing.T) {
	bucket := blobstest.New(t)
	a := archive.New(bucket.Store)
	ref := store(t, a, "demo")
	require.NoError(t, fork(t.Context(), a, "copy", "demo", 2400))
	require.NoError(t, fork(t.Context(), a, "copy-of-copy", "copy", 2))
	require.NoError(t, a.Detach(t.Context(), "copy"))
	writes := bucket.Writes()
	require.NoError(t, a.Detach(t.Context(), "copy"))
	bucket.Set("contexts/copy/fork/000000000001-000000001000.json", nil)
	require.NoError(t, a.Detach(t.Context(), "copy"), "an interrupted one is completed")
	require.Equal(t, writes+1, bucket.Writes())
	require.NoError(t, a.Detach(t.Context(), "demo"), "it is no fork")

	_, err := a.Delete(t.Context(), "demo")
	require.NoError(t, err)
	for name, last := range map[string]int{"copy": 2400, "copy-of-copy": 2} {
		n := 0
		for e, err := range read(t.Context(), a, name, 0) {
			require.NoError(t, err)
			n++
			require.Equal(t, event.FormatID(name, n), e.ID)
		}
		require.Equal(t, last, n)
		data, err := a.Blobs(name).Get(t.Context(), ref)
		require.NoError(t, err)
		require.Equal(t, "PNG of a harbour", string(data))
		for problem, err := range a.Check(t.Context(), name) {
			t.Error(problem, err)
		}
	}
	require.NoError(t, register(t.Context(), a, "demo", archive.Run{ID: "B"}), "a new context with the name of the origin")
	forks, err := a.Forks(t.Context(), "demo")
	require.NoError(t, err)
	require.Empty(t, forks)
	require.Equal(t, 2400, archivedThrough(t, a, "copy"))
}

func TestAForkWithoutItsOriginIsNotDetached(t *testing.T) {
	a := archive.New(blobstest.New(t).Store)
	write(t, a, "demo", 1, 2)
	require.NoError(t, fork(t.Context(), a, "copy", "demo", 3))
	err := a.Detach(t.Context(), "copy")
	require.ErrorIs(t, err, archive.ErrLost)
	require.EqualError(t, err, "detach context copy from its origin: events 3 to 3 of the origin demo are missing or damaged")
}

func TestAForkOfAnUnknownRunIsNotDetached(t *testing.T) {
	bucket := blobstest.New(t)
	a := archive.New(bucket.Store)
	write(t, a, "demo", 1, 2)
	require.NoError(t, fork(t.Context(), a, "copy", "demo", 2))
	bucket.Set("contexts/demo/runs/000000000001.json", nil)
	require.ErrorIs(t, a.Detach(t.Context(), "copy"), archive.ErrLost)
	bucket.Fail(errors.New("no route"))
	require.NotErrorIs(t, a.Detach(t.Context(), "copy"), archive.ErrLost)
}

func TestAContextWithADamagedRegistrationIsDeleted(t *testing.T) {
	a, bucket := written(t, [2]int{1, 2})
	bucket.Set("contexts/demo/runs/000000000001.json", []byte("no JSON"))
	_, err := a.Delete(t.Context(), "demo")
	require.NoError(t, err)
	require.Empty(t, bucket.Names())
}
