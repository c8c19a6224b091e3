package eventlog

import (
	"slices"
	"sort"
	"sync"

	"github.com/golang/groupcache/lru"
)

// bookmark is the position of a page in the history of a run.
type bookmark struct {
	counter int    // of the event before the position; 0: none
	entry   int64  // number of the history entry before the position; 0: none
	token   []byte // page token of the server; empty at the beginning
}

const (
	// bookmarkBytes bounds all bookmarks: about 200 runs of 4,096 entries that were read completely.
	bookmarkBytes    = 8 << 20
	bookmarkOverhead = 64 // bytes of a bookmark without its token
	bookmarkDistance = 32 // minimum between two bookmarks, in history entries
)

type bookmarks struct {
	mu    sync.Mutex
	runs  *lru.Cache // of sorted []bookmark by run id
	bytes int
}

func newBookmarks() *bookmarks {
	b := &bookmarks{runs: lru.New(0)}
	b.runs.OnEvicted = func(_ lru.Key, marks any) {
		for _, m := range marks.([]bookmark) {
			b.bytes -= m.size()
		}
	}
	return b
}

func (m bookmark) size() int { return len(m.token) + bookmarkOverhead }

func (b *bookmarks) find(runID string, counter int) bookmark {
	b.mu.Lock()
	defer b.mu.Unlock()
	marks := b.of(runID)
	if i := sort.Search(len(marks), func(i int) bool { return marks[i].counter > counter }); i > 0 {
		return marks[i-1]
	}
	return bookmark{}
}

// of returns the bookmarks of a run. The caller holds the lock.
func (b *bookmarks) of(runID string) []bookmark {
	marks, _ := b.runs.Get(runID)
	of, _ := marks.([]bookmark)
	return of
}

func (b *bookmarks) add(runID string, m bookmark) {
	b.mu.Lock()
	defer b.mu.Unlock()
	marks := b.of(runID)
	i := sort.Search(len(marks), func(i int) bool { return marks[i].entry > m.entry })
	var before bookmark
	if i > 0 {
		before = marks[i-1]
	}
	if m.entry-before.entry < bookmarkDistance {
		return
	}
	b.runs.Add(runID, slices.Insert(marks, i, m))
	for b.bytes += m.size(); b.bytes > bookmarkBytes && b.runs.Len() > 1; {
		b.runs.RemoveOldest()
	}
}

func (b *bookmarks) forget(runID string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.runs.Remove(runID)
}
