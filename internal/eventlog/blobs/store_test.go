package blobs_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs/blobstest"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(putsForEver); url != "" {
		putForEver(url)
	}
	if url := os.Getenv(writesNames); url != "" {
		os.Exit(writeNames(url))
	}
	os.Exit(m.Run())
}

// kinds are the stores that work offline.
var kinds = map[string]func(t testing.TB) *blobs.Store{
	"a folder":      func(t testing.TB) *blobs.Store { return open(t, "file://"+filepath.ToSlash(t.TempDir())+"/blobs") },
	"memory":        func(t testing.TB) *blobs.Store { return open(t, "mem://") },
	"a prefix":      func(t testing.TB) *blobs.Store { return open(t, "mem://?prefix=shared/") },
	"a test bucket": func(t testing.TB) *blobs.Store { return blobstest.New(t).Store },
}

// inEach runs a test on each kind of store.
func inEach(t *testing.T, test func(t *testing.T, store *blobs.Store)) {
	for kind, open := range kinds {
		t.Run("in "+kind, func(t *testing.T) { test(t, open(t)) })
	}
}

func TestGetReturnsWhatWasPut(t *testing.T) {
	inEach(t, func(t *testing.T, store *blobs.Store) {
		hello, err := store.Put(t.Context(), []byte("hello"))
		require.NoError(t, err)
		require.EqualValues(t, "sha256/"+digits, hello, "the reference is the hash")
		rapid.Check(t, func(r *rapid.T) {
			data := rapid.SliceOf(rapid.Byte()).Draw(r, "data")
			ref, err := store.Put(t.Context(), data)
			require.NoError(r, err)
			again, err := store.Put(t.Context(), data)
			require.NoError(r, err)
			require.Equal(r, ref, again)
			got, err := store.Get(t.Context(), ref)
			require.NoError(r, err)
			require.True(r, bytes.Equal(data, got))
		})
	})
}

func TestAMissingBlobIsErrNotFound(t *testing.T) {
	inEach(t, func(t *testing.T, store *blobs.Store) {
		_, err := store.Get(t.Context(), "sha256/"+digits)
		require.ErrorIs(t, err, blobs.ErrNotFound)
		require.EqualError(t, err, "blob sha256/"+digits+" is not in the store")
		_, err = store.Read(t.Context(), "contexts/demo/origin.json")
		require.ErrorIs(t, err, blobs.ErrNotFound)
	})
}

func TestWriteOnceKeepsTheFirstBytes(t *testing.T) {
	inEach(t, func(t *testing.T, store *blobs.Store) {
		const name = "contexts/demo/1.json"
		require.NoError(t, store.WriteOnce(t.Context(), name, []byte("first")))
		require.NoError(t, store.WriteOnce(t.Context(), name, []byte("first")), "a retry")
		err := store.WriteOnce(t.Context(), name, []byte("second"))
		require.ErrorIs(t, err, blobs.ErrExists)
		require.EqualError(t, err, "blob contexts/demo/1.json already exists with different content")
		got, err := store.Read(t.Context(), name)
		require.NoError(t, err)
		require.Equal(t, "first", string(got))
	})
}

func TestWriteOnceWaitsForTheBytesOfTheFirstWriter(t *testing.T) {
	bucket := blobstest.New(t)
	require.NoError(t, bucket.Store.WriteOnce(t.Context(), "name", []byte("first")))
	bucket.Hide(3)
	require.ErrorIs(t, bucket.Store.WriteOnce(t.Context(), "name", []byte("second")), blobs.ErrExists)
	bucket.Hide(3)
	require.NoError(t, bucket.Store.WriteOnce(t.Context(), "name", []byte("first")))
}

func TestADeletedNameCanBeWrittenAgain(t *testing.T) {
	inEach(t, func(t *testing.T, store *blobs.Store) {
		require.NoError(t, store.WriteOnce(t.Context(), "cursors/demo/1.json", []byte("1")))
		for range 2 {
			require.NoError(t, store.Delete(t.Context(), "cursors/demo/1.json"))
		}
		_, err := store.Read(t.Context(), "cursors/demo/1.json")
		require.ErrorIs(t, err, blobs.ErrNotFound)
		for name, err := range store.Names(t.Context(), "cursors/") {
			t.Error(name, err)
		}
		require.NoError(t, store.WriteOnce(t.Context(), "cursors/demo/1.json", []byte("2")))
	})
}

func TestOperationsAreMeasuredByOutcome(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	bucket := blobstest.New(t)
	bucket.Store.Measure(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	require.NoError(t, bucket.Store.WriteOnce(t.Context(), "name", []byte("one")))
	require.NoError(t, bucket.Store.WriteOnce(t.Context(), "name", []byte("one")))
	for range 2 {
		require.NoError(t, bucket.Store.Delete(t.Context(), "name"))
	}

	var data metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &data))
	counts := map[string]float64{}
	for _, m := range data.ScopeMetrics[0].Metrics {
		if m.Name != "chronicle_store_operations" {
			continue
		}
		for _, point := range m.Data.(metricdata.Sum[float64]).DataPoints {
			operation, _ := point.Attributes.Value("operation")
			outcome, _ := point.Attributes.Value("outcome")
			counts[operation.AsString()+" "+outcome.AsString()] = point.Value
		}
	}
	require.Equal(t, map[string]float64{"write ok": 1, "write exists": 1, "read ok": 1, "delete ok": 1, "delete missing": 1}, counts)
}

func TestNamesAreListedByPrefixInOrder(t *testing.T) {
	inEach(t, func(t *testing.T, store *blobs.Store) {
		for _, name := range []string{"contexts/a/2.json", "contexts/b/1.json", "contexts/a/1.json", "contexts/ab/1.json"} {
			require.NoError(t, store.WriteOnce(t.Context(), name, []byte(name)))
		}
		require.Equal(t, []string{"contexts/a/1.json", "contexts/a/2.json"}, names(t, store, "contexts/a/"))
		require.Equal(t, []string{"contexts/a/1.json", "contexts/a/2.json", "contexts/ab/1.json", "contexts/b/1.json"}, names(t, store, ""))
		require.Empty(t, names(t, store, "contexts/c/"))
		for range store.Names(t.Context(), "contexts/") {
			break // a reader may stop anywhere
		}
		for o, err := range store.Objects(t.Context(), "contexts/") {
			require.NoError(t, err)
			require.EqualValues(t, len(o.Name), o.Bytes, "each object has its name as its content")
		}
	})
}

func names(t testing.TB, store *blobs.Store, prefix string) []string {
	t.Helper()
	var names []string
	for name, err := range store.Names(t.Context(), prefix) {
		require.NoError(t, err)
		names = append(names, name)
	}
	return names
}

func TestPutWritesOnlyMissingBytes(t *testing.T) {
	bucket := blobstest.New(t)
	for range 3 {
		_, err := bucket.Store.Put(t.Context(), []byte("hello"))
		require.NoError(t, err)
	}
	require.Equal(t, 1, bucket.Writes())
}

func TestPutRepairsADamagedBlob(t *testing.T) {
	bucket := blobstest.New(t)
	ref, err := bucket.Store.Put(t.Context(), []byte("hello"))
	require.NoError(t, err)

	bucket.Set(string(ref), []byte("hullo"))
	_, err = bucket.Store.Get(t.Context(), ref)
	require.ErrorIs(t, err, blobs.ErrCorrupt)
	require.EqualError(t, err, "blob "+string(ref)+" is damaged: its content does not match its hash")

	// As after a power failure.
	bucket.Set(string(ref), []byte{})
	_, err = bucket.Store.Get(t.Context(), ref)
	require.ErrorIs(t, err, blobs.ErrCorrupt)
	_, err = bucket.Store.Put(t.Context(), []byte("hello"))
	require.NoError(t, err)
	got, err := bucket.Store.Get(t.Context(), ref)
	require.NoError(t, err)
	require.Equal(t, "hello", string(got))
}

func TestErrorsOfAnUnavailableStoreContainNoSecrets(t *testing.T) {
	bucket := blobstest.New(t)
	ref, err := bucket.Store.Put(t.Context(), []byte("hello"))
	require.NoError(t, err)
	unreachable := errors.New(`Get "https://account.blob.core.windows.net/c/k?sv=1&sig=s3cr3t": dial tcp: no route, password=s3cr3t`)
	bucket.Fail(unreachable)
	for name, use := range map[string]func() error{
		"put":   func() error { _, err := bucket.Store.Put(t.Context(), []byte("more")); return err },
		"write": func() error { return bucket.Store.WriteOnce(t.Context(), "name", []byte("1")) },
		"read":  func() error { _, err := bucket.Store.Get(t.Context(), ref); return err },
		"list": func() (err error) {
			for _, err = range bucket.Store.Names(t.Context(), "") {
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := use()
			require.ErrorIs(t, err, unreachable)
			require.ErrorIs(t, err, blobs.ErrUnavailable)
			require.NotErrorIs(t, err, blobs.ErrNotFound)
			require.NotErrorIs(t, err, blobs.ErrCorrupt)
			require.ErrorContains(t, err, name+" blob ")
			require.ErrorContains(t, err, "no route")
			require.NotContains(t, err.Error(), "s3cr3t")
		})
	}
	bucket.Fail(nil)
	_, err = bucket.Store.Get(t.Context(), ref)
	require.NoError(t, err)
}

func TestDeniedAccessIsNotUnavailability(t *testing.T) {
	bucket := blobstest.New(t)
	bucket.Fail(fs.ErrPermission)
	_, err := bucket.Store.Put(t.Context(), []byte("hello"))
	require.ErrorIs(t, err, fs.ErrPermission)
	require.NotErrorIs(t, err, blobs.ErrUnavailable)
}

func TestACancelledContextEndsACall(t *testing.T) {
	store := open(t, "file://"+filepath.ToSlash(t.TempDir())+"/blobs")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := store.Put(ctx, []byte("hello"))
	require.ErrorIs(t, err, context.Canceled)
}

func TestConcurrentPutsOfTheSameBytes(t *testing.T) {
	inEach(t, func(t *testing.T, store *blobs.Store) {
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				for i := range 20 {
					data := fmt.Append(nil, "blob ", i)
					ref, err := store.Put(t.Context(), data)
					if err == nil {
						_, err = store.Get(t.Context(), ref)
					}
					if err == nil {
						err = store.WriteOnce(t.Context(), fmt.Sprint("name/", i), data)
					}
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
		require.Len(t, names(t, store, "sha256/"), 20)
		require.Len(t, names(t, store, "name/"), 20)
	})
}

// putsForEver is the environment variable that makes the test binary put blobs into the
// store at a URL, and print their references, until it is killed.
const putsForEver = "BLOBS_TEST_PUTS_FOR_EVER"

func putForEver(url string) {
	store, err := blobs.Open(context.Background(), url, "default")
	for i := 0; err == nil; i++ {
		var ref blobs.Ref
		if ref, err = store.Put(context.Background(), bytes.Repeat(fmt.Append(nil, i, " "), 100_000)); err == nil {
			fmt.Println(ref)
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func TestAKilledProcessLeavesNoPartialBlobs(t *testing.T) {
	url := "file://" + filepath.ToSlash(t.TempDir()) + "/blobs"
	store := open(t, url)
	for range 5 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		child := exec.CommandContext(ctx, os.Args[0])
		child.Env = append(os.Environ(), putsForEver+"="+url)
		out, err := child.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, child.Start())
		var put []string
		for lines := bufio.NewScanner(out); len(put) < 10 && lines.Scan(); {
			put = append(put, lines.Text())
		}
		require.NoError(t, child.Process.Kill())
		require.Error(t, child.Wait())
		cancel()
		require.Len(t, put, 10)
		there := names(t, store, "sha256/")
		require.Subset(t, there, put, "every blob that was reported is stored")
		for _, name := range there {
			_, err := store.Get(t.Context(), blobs.Ref(name))
			require.NoError(t, err, "every stored blob is complete")
		}
	}
	require.NotContains(t, strings.Join(names(t, store, ""), " "), ".tmp")
}

func TestDeleteAllLeavesNothingOfAFolder(t *testing.T) {
	folder := t.TempDir()
	store := open(t, "file://"+folder)
	for i := range 100 {
		require.NoError(t, store.WriteOnce(t.Context(), fmt.Sprintf("contexts/demo/runs/%03d.json", i), []byte("{}")))
	}
	ref, err := store.Folder("blobs/demo/").Put(t.Context(), []byte("hello"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "default/contexts/demo/runs/killed.tmp"), []byte("secret"), 0o600))
	require.NoError(t, store.WriteOnce(t.Context(), "contexts/demo2/runs/1.json", []byte("{}")))

	deleted, err := store.DeleteAll(t.Context(), "contexts/demo/")
	require.NoError(t, err)
	require.Equal(t, 100, deleted)
	require.NoDirExists(t, filepath.Join(folder, "default/contexts/demo"))
	_, err = store.Read(t.Context(), "contexts/demo2/runs/1.json")
	require.NoError(t, err)
	_, err = store.Folder("blobs/demo/").Get(t.Context(), ref)
	require.NoError(t, err)
	deleted, err = store.DeleteAll(t.Context(), "contexts/demo/")
	require.NoError(t, err)
	require.Zero(t, deleted)
}
