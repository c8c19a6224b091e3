package client_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs/blobstest"
)

// BenchmarkBranches lists the branches of a conversation in a store whose reads and lists take 10 ms.
func BenchmarkBranches(b *testing.B) {
	for _, forks := range []int{100, 990} {
		b.Run(fmt.Sprint(forks), func(b *testing.B) {
			bucket := blobstest.New(b)
			logs := archive.New(bucket.Store)
			put(b, logs, "demo", numbered(10))
			for n := range forks {
				folder, err := logs.Folder(b.Context(), fmt.Sprint("fork-", n))
				require.NoError(b, err)
				require.NoError(b, folder.Register(b.Context(), archive.Run{ID: archive.ForkID, Origin: &archive.Origin{
					ContextName: "demo", RunID: "A", At: 1 + n%10, CreatedAt: time.Unix(int64(n), 0).UTC(),
				}}))
			}
			_, err := logs.Store().Identity(b.Context())
			require.NoError(b, err)
			bucket.SetLatency(10 * time.Millisecond)
			c := archived(b, &temporal{}, logs, "demo")
			before := bucket.Reads()
			for b.Loop() {
				got, err := c.Branches(b.Context())
				require.NoError(b, err)
				require.Len(b, got.Contexts, forks+1)
			}
			b.ReportMetric(float64(bucket.Reads()-before)/float64(b.N), "reads/op")
		})
	}
}
