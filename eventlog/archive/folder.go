package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/big"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// folderOf is where the archive keeps a context. Names that differ in case alone
// have folders that differ on every file system: an upper-case letter is written
// in lower case, and a suffix says which letters those are. Some file systems
// ignore a dot at the end of a name.
func folderOf(contextName string) string {
	var upper big.Int
	for i := range len(contextName) {
		if c := contextName[i]; 'A' <= c && c <= 'Z' {
			upper.SetBit(&upper, i, 1)
		}
	}
	folder := "contexts/" + strings.ToLower(contextName)
	switch {
	case upper.Sign() > 0:
		folder += "~" + upper.Text(16)
	case strings.HasSuffix(contextName, "."):
		folder += "~"
	}
	return folder + "/"
}

// span is the counters of the first and the last event of a segment.
type span struct{ first, last int }

// entry is the name of the segment's entry.
func (s span) entry(contextName, runID string) string {
	return fmt.Sprintf("%s%s/%012d-%012d.json", folderOf(contextName), runID, s.first, s.last)
}

// runEntry is the name under which a run is registered.
func runEntry(contextName string, number int) string {
	return fmt.Sprintf("%sruns/%012d.json", folderOf(contextName), number)
}

// Folder is what the archive has of a context at one time, by the names alone.
type Folder struct {
	archive     *Archive
	contextName string
	// newest is the number of the newest registered run; 0 when there is none.
	newest int
	// spans are those of each run, in the order of their first events.
	spans map[string][]span
	// unknown are the names that no archive has.
	unknown []string
}

// Folder lists what the archive has of a context.
func (a *Archive) Folder(ctx context.Context, contextName string) (*Folder, error) {
	if err := event.ValidateContextName(contextName); err != nil {
		return nil, err
	}
	f := &Folder{archive: a, contextName: contextName, spans: map[string][]span{}}
	for name, err := range a.store.Names(ctx, folderOf(contextName)) {
		if err != nil {
			return nil, fmt.Errorf("list the archive of context %s: %w", contextName, err)
		}
		run := path.Base(path.Dir(name))
		first, last, isSpan := strings.Cut(strings.TrimSuffix(path.Base(name), ".json"), "-")
		// An error leaves zero, which is in the name of no entry.
		var s span
		s.first, _ = strconv.Atoi(first)
		s.last, _ = strconv.Atoi(last)
		switch {
		case !isSpan && s.first > 0 && name == runEntry(contextName, s.first):
			f.newest = max(f.newest, s.first)
		case isSpan && 1 <= s.first && s.first <= s.last && name == s.entry(contextName, run):
			f.spans[run] = append(f.spans[run], s)
		default:
			f.unknown = append(f.unknown, name)
		}
	}
	for _, spans := range f.spans {
		slices.SortFunc(spans, func(a, b span) int { return cmp.Or(a.first-b.first, a.last-b.last) })
	}
	return f, nil
}

// IsEmpty reports whether no run is registered.
func (f *Folder) IsEmpty() bool { return f.newest == 0 }

// cover is the spans that have the events from one counter through another, up to
// the first gap: of those that have the next event, the one that reaches furthest.
func cover(spans []span, from, through int) []span {
	var chosen []span
	for i := 0; from <= through; {
		best := span{}
		for ; i < len(spans) && spans[i].first <= from; i++ {
			if spans[i].last > best.last {
				best = spans[i]
			}
		}
		if best.last < from {
			break
		}
		chosen = append(chosen, best)
		from = best.last + 1
	}
	return chosen
}

var errUnknownEntry = errors.New("no archive has such an entry")
