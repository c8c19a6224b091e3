package archive

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// folderOf is where the entries of a context are.
func folderOf(contextName string) string {
	folder := "contexts/" + contextName
	if strings.HasSuffix(contextName, ".") {
		// Some file systems take such a name for another one.
		folder += "~"
	}
	return folder + "/"
}

// span is the counters of the first and the last event of a segment.
type span struct{ first, last int }

// entry is the name of the segment's entry.
func (s span) entry(contextName string) string {
	return fmt.Sprintf("%s%012d-%012d.json", folderOf(contextName), s.first, s.last)
}

// folder is what the archive has of a context, by the names alone.
type folder struct {
	// spans are in the order of their first events.
	spans  []span
	isFork bool
	// strange are the names that mean nothing.
	strange []string
}

func (a *Archive) list(ctx context.Context, contextName string) (folder, error) {
	var f folder
	if err := event.ValidateContextName(contextName); err != nil {
		return f, err
	}
	for name, err := range a.store.Names(ctx, folderOf(contextName)) {
		if err != nil {
			return f, fmt.Errorf("list the archive of context %s: %w", contextName, err)
		}
		var s span
		// An error leaves zeros, which are the name of no entry.
		_, _ = fmt.Sscanf(path.Base(name), "%d-%d.json", &s.first, &s.last)
		switch {
		case name == originEntry(contextName):
			f.isFork = true
		case name == s.entry(contextName) && 1 <= s.first && s.first <= s.last:
			f.spans = append(f.spans, s)
		default:
			f.strange = append(f.strange, name)
		}
	}
	slices.SortFunc(f.spans, func(a, b span) int { return cmp.Or(a.first-b.first, a.last-b.last) })
	return f, nil
}

// cover is the spans that are needed to have all events: of those that lead on,
// the one that leads the furthest.
func (f folder) cover() []span {
	var chosen []span
	next := 0 // nothing before it is missing in what was chosen
	for i := 0; i < len(f.spans); {
		best := f.spans[i]
		for begin := max(next, best.first); i < len(f.spans) && f.spans[i].first <= begin; i++ {
			if f.spans[i].last > best.last {
				best = f.spans[i]
			}
		}
		if best.last >= next {
			chosen = append(chosen, best)
			next = best.last + 1
		}
	}
	return chosen
}

// with is the spans that have an event, the one that leads the furthest first.
func (f folder) with(counter int) []span {
	var with []span
	for _, s := range f.spans {
		if s.first <= counter && counter <= s.last {
			with = append(with, s)
		}
	}
	slices.SortFunc(with, func(a, b span) int { return b.last - a.last })
	return with
}
