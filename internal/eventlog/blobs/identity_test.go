package blobs_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs/blobstest"
)

func TestConcurrentOpenersGetOneIdentity(t *testing.T) {
	folder := "file://" + filepath.ToSlash(t.TempDir())
	ids := make([]string, 20)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			store, err := blobs.Open(t.Context(), folder, "default")
			if err == nil {
				ids[i], err = store.Identity(t.Context())
			}
			if err != nil {
				ids[i] = err.Error()
			}
		})
	}
	all.Wait()
	require.Len(t, ids[0], 26)
	for _, id := range ids {
		require.Equal(t, ids[0], id)
	}
	other, err := blobstest.New(t).Store.Identity(t.Context())
	require.NoError(t, err)
	require.NotEqual(t, ids[0], other)
}

func TestADamagedIdentityIsAnError(t *testing.T) {
	bucket := blobstest.New(t)
	bucket.Set("store.json", []byte(`{}`))
	_, err := bucket.Store.Identity(t.Context())
	require.ErrorIs(t, err, blobs.ErrCorrupt)
	require.Zero(t, bucket.Writes())
}

func TestAReferenceToAnotherStoreNamesBoth(t *testing.T) {
	first, second := blobstest.New(t), blobstest.New(t)
	large := payload(t, strings.Repeat("l", blobs.PayloadThreshold))
	stored, err := sdk(t, first.Store, "encode", large)
	require.NoError(t, err)
	_, err = sdk(t, second.Store, "encode", large) // the second store has the same bytes
	require.NoError(t, err)
	want, err := first.Store.Identity(t.Context())
	require.NoError(t, err)
	got, err := second.Store.Identity(t.Context())
	require.NoError(t, err)
	_, err = sdk(t, second.Store, "decode", stored...)
	require.ErrorContains(t, err, "belongs to blob store "+want+", but this process uses "+got)
}

func TestOneGoroutineOfSeveralCreatesAName(t *testing.T) {
	inEach(t, func(t *testing.T, store *blobs.Store) {
		for round := range 10 {
			var won atomic.Int32
			var all sync.WaitGroup
			for writer := range 8 {
				all.Go(func() {
					err := store.WriteOnce(t.Context(), fmt.Sprintf("names/%d.json", round), []byte{byte(writer)})
					if err == nil {
						won.Add(1)
					}
				})
			}
			all.Wait()
			require.EqualValues(t, 1, won.Load())
		}
		require.Len(t, names(t, store, "names/"), 10, "no temporary file is left")
	})
}

const (
	writesNames = "CHRONICLE_TEST_WRITES_NAMES"
	rounds      = 40
)

// writeNames is the main function of a process that creates names and prints how many it
// created.
func writeNames(url string) int {
	store, err := blobs.Open(context.Background(), url, "default")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	won := 0
	for round := range rounds {
		if store.WriteOnce(context.Background(), fmt.Sprintf("names/%d.json", round), []byte(fmt.Sprint(os.Getpid()))) == nil {
			won++
		}
	}
	fmt.Print(won)
	return 0
}

func TestOneProcessOfSeveralCreatesAName(t *testing.T) {
	executable, err := os.Executable()
	require.NoError(t, err)
	url := "file://" + filepath.ToSlash(t.TempDir())
	total := 0
	out := make([]strings.Builder, 4)
	var processes []*exec.Cmd
	for i := range out {
		p := exec.Command(executable)
		p.Env, p.Stdout = append(os.Environ(), writesNames+"="+url), &out[i]
		require.NoError(t, p.Start())
		processes = append(processes, p)
	}
	for i, p := range processes {
		require.NoError(t, p.Wait())
		won := 0
		_, err := fmt.Sscan(out[i].String(), &won)
		require.NoError(t, err)
		total += won
	}
	require.Equal(t, rounds, total)
}

func TestNamesListsALargeFolderCompletely(t *testing.T) {
	folder := t.TempDir()
	store := open(t, "file://"+filepath.ToSlash(folder))
	for _, each := range []string{"a", "a-b"} {
		require.NoError(t, os.MkdirAll(filepath.Join(folder, "default", "list", each), 0o700))
	}
	// Listing pages by key would skip "a-b/...": the file system orders it differently from
	// "a/...".
	var want []string
	for i := range 600 {
		for _, each := range []string{"a", "a-b"} {
			name := fmt.Sprintf("list/%s/%04d.json", each, i)
			require.NoError(t, os.WriteFile(filepath.Join(folder, "default", name), []byte("{}"), 0o600))
			want = append(want, name)
		}
	}
	require.ElementsMatch(t, want, names(t, store, "list/"))
}

func TestAnUnmountedVolumeIsNotAnEmptyStore(t *testing.T) {
	folder := t.TempDir()
	store := open(t, "file://"+filepath.ToSlash(folder))
	_, err := store.Identity(t.Context())
	require.NoError(t, err)
	require.Empty(t, names(t, store, "names/"))
	require.NoError(t, os.RemoveAll(filepath.Join(folder, "default")))
	for _, err := range store.Names(t.Context(), "names/") {
		require.ErrorIs(t, err, blobs.ErrUnavailable)
	}
}
