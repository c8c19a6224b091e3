package archive_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gocloud.dev/blob/memblob"

	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
)

var contextNames = []string{"demo", "Demo", "a", "a.b", "A.", "acme/demo", "Acme/demo", "acme./x"}

func storedContexts(t *testing.T, a *archive.Archive) map[string]time.Time {
	t.Helper()
	found := map[string]time.Time{}
	for stored, err := range a.Contexts(t.Context()) {
		require.NoError(t, err)
		require.NotContains(t, found, stored.ContextName)
		found[stored.ContextName] = stored.At
	}
	return found
}

func TestContextsListsEachContextOnceWithItsNewestTime(t *testing.T) {
	dir := t.TempDir()
	files, err := blobs.Open(t.Context(), "file://"+dir, "")
	require.NoError(t, err)
	cloud := blobs.New(memblob.OpenBucket(nil))
	for _, store := range []*blobs.Store{files, cloud} {
		defer store.Close()
		a := archive.New(store)
		require.Empty(t, storedContexts(t, a))
		for _, name := range contextNames {
			require.NoError(t, register(t.Context(), a, name, archive.Run{ID: "first"}))
			require.NoError(t, register(t.Context(), a, name, archive.Run{ID: "second", Behind: "first"}))
		}
		require.NoError(t, store.WriteOnce(t.Context(), "contexts/no name/x.json", []byte("{}")))
		require.NoError(t, store.WriteOnce(t.Context(), "tenants/no name/contexts/x/y.json", []byte("{}")))
		found := storedContexts(t, a)
		require.Len(t, found, len(contextNames))
		for _, name := range contextNames {
			require.WithinDuration(t, time.Now(), found[name], time.Minute, name)
		}
	}
	runs, err := filepath.Glob(filepath.Join(dir, "contexts", "demo", "runs", "*"))
	require.NoError(t, err)
	require.Len(t, runs, 2)
	for i, at := range []time.Time{time.Unix(2000, 0), time.Unix(1000, 0)} {
		require.NoError(t, os.Chtimes(runs[i], at, at))
	}
	require.WithinDuration(t, time.Unix(2000, 0), storedContexts(t, archive.New(files))["demo"], 0)
}
