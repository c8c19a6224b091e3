package eventlog

import (
	"slices"
	"sort"
	"sync"

	"github.com/golang/groupcache/lru"
)

// bookmark is a place in the history of a run where a page begins.
type bookmark struct {
	// counter is that of the newest event before the place, and entry the number of the
	// newest entry of the history before it. Zero: there is none.
	counter int
	entry   int64
	// token makes the server continue there. Empty: at the beginning.
	token []byte
}

const (
	// bookmarkBytes bounds the memory of all bookmarks. bookmarkBytes is enough for about
	// 200 runs of 4,096 entries that were read completely.
	bookmarkBytes = 8 << 20
	// bookmarkOverhead is about how many bytes a bookmark takes beside its token.
	bookmarkOverhead = 64
	// bookmarkDistance is the least number of entries between two bookmarks of a run.
	bookmarkDistance = 32
)

// bookmarks are places in the histories of the runs that were read last, so that a
// page of a log or a single event is read without all that is before it.
type bookmarks struct {
	mu    sync.Mutex
	runs  *lru.Cache // of []bookmark by run id, in the order of their places
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

// find returns the last bookmark that is not behind an event.
func (b *bookmarks) find(runID string, counter int) bookmark {
	b.mu.Lock()
	defer b.mu.Unlock()
	marks := b.of(runID)
	if i := sort.Search(len(marks), func(i int) bool { return marks[i].counter > counter }); i > 0 {
		return marks[i-1]
	}
	return bookmark{}
}

// of returns the bookmarks of a run. It is called with the lock held.
func (b *bookmarks) of(runID string) []bookmark {
	marks, _ := b.runs.Get(runID)
	of, _ := marks.([]bookmark)
	return of
}

// add remembers a bookmark, unless there is another one shortly before it.
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

// forget removes the bookmarks of a run, whose tokens the server refuses.
func (b *bookmarks) forget(runID string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.runs.Remove(runID)
}
