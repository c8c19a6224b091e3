package eventlog

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// BookmarkBytes returns the size of all bookmarks after some were added.
func BookmarkBytes(t *testing.T, fill func(add func(runID string, entry int, token []byte))) int {
	t.Helper()
	b := newBookmarks()
	fill(func(runID string, entry int, token []byte) {
		b.add(runID, bookmark{counter: entry, entry: int64(entry), token: token})
		require.Equal(t, int64(entry), b.find(runID, entry).entry, "the newest run stays")
	})
	bytes := 0
	for b.runs.Len() > 0 {
		before := b.bytes
		b.runs.RemoveOldest()
		bytes += before - b.bytes
	}
	require.Zero(t, b.bytes)
	return bytes
}
