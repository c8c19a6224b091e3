package blobs_test

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
)

// TestABucketIsAStore checks the features of an S3 server that stores need, like
// conditional writes. `make e2e-postgres` sets the bucket.
func TestABucketIsAStore(t *testing.T) {
	const variable = "CHRONICLE_E2E_BLOB_URL"
	if os.Getenv(variable) == "" {
		t.Skip("S3 tests, run by make e2e-postgres")
	}
	u, err := url.Parse(os.Getenv(variable))
	require.NoError(t, err)
	query := u.Query()
	query.Set("prefix", t.Name()+"/")
	u.RawQuery = query.Encode()
	store, err := blobs.Open(t.Context(), u.String(), "default")
	require.NoError(t, err)
	defer store.Close()

	_, err = store.Read(t.Context(), "missing")
	require.ErrorIs(t, err, blobs.ErrNotFound)

	// One writer creates the name; the others get ErrExists.
	const writers, names = 8, 5
	for n := range names {
		name := fmt.Sprintf("names/%d", n)
		var wg sync.WaitGroup
		var winners atomic.Int64
		for i := range writers {
			wg.Go(func() {
				err := store.WriteOnce(t.Context(), name, fmt.Append(nil, "writer ", i))
				if err == nil {
					winners.Add(1)
				} else if !errors.Is(err, blobs.ErrExists) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		require.EqualValues(t, 1, winners.Load())
		written, err := store.Read(t.Context(), name)
		require.NoError(t, err)
		require.NoError(t, store.WriteOnce(t.Context(), name, written), "the same bytes again")
		require.ErrorIs(t, store.WriteOnce(t.Context(), name, []byte("other")), blobs.ErrExists)
	}

	var listed []string
	for name, err := range store.Names(t.Context(), "names/") {
		require.NoError(t, err)
		listed = append(listed, name)
	}
	require.Equal(t, []string{"names/0", "names/1", "names/2", "names/3", "names/4"}, listed)

	large := make([]byte, 20<<20)
	require.Empty(t, stderrOf(t, func() {
		store, err := blobs.Open(t.Context(), u.String(), "default")
		require.NoError(t, err)
		defer store.Close()
		ref, err := store.Put(t.Context(), large)
		require.NoError(t, err)
		got, err := store.Get(t.Context(), ref)
		require.NoError(t, err)
		require.Equal(t, blobs.RefOf(large), blobs.RefOf(got))
	}))
}
