package index

import (
	"maps"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/seed-9ed7edd4/chronicle/client"
)

// Filter selects contexts of a list. The zero value selects those that are not archived.
type Filter struct {
	Part     string // of the name or the title, ignoring case; empty: any
	Status   client.Status
	Label    string // KEY=VALUE; empty: any
	Owner    string // empty: any
	Archived bool   // archived contexts instead of the others
	After    Position
	Limit    int // at least 1
}

// Position is that of a context in a list. Zero: the beginning.
type Position struct {
	At   time.Time `json:"at"`
	Name string    `json:"name"`
}

// PositionOf returns the position of a context.
func PositionOf(c Context) Position { return Position{c.LastActiveAt, c.ContextName} }

func (f *Filter) selects(r *record) bool {
	return r.Archived == f.Archived && (f.Status == "" || r.Status == f.Status) && (f.Owner == "" || r.Owner == f.Owner) &&
		r.hasLabel(f.Label) && strings.Contains(r.folded, f.Part)
}

// hasLabel reports whether a context has a label, KEY=VALUE; "": true.
func (r *record) hasLabel(label string) bool {
	if label == "" {
		return true
	}
	key, value, _ := strings.Cut(label, "=")
	is, ok := r.Labels[key]
	return ok && is == value
}

// list is the contexts in memory, by last activity.
type list struct {
	mu     sync.RWMutex
	byName map[string]*record
	forks  map[string]map[string]*record // by origin and by name
	sorted []*record
}

func newList() *list {
	return &list{byName: map[string]*record{}, forks: map[string]map[string]*record{}}
}

func (l *list) get(name string) *record {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.byName[name]
}

// set replaces the record of a context.
func (l *list) set(r *record) {
	r.folded = strings.ToLower(r.ContextName + "\n" + r.Title)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(r.ContextName)
	l.byName[r.ContextName] = r
	for _, f := range r.Forks {
		if l.forks[f.Origin] == nil {
			l.forks[f.Origin] = map[string]*record{}
		}
		l.forks[f.Origin][r.ContextName] = r
	}
	i, _ := slices.BinarySearchFunc(l.sorted, r, compare)
	l.sorted = slices.Insert(l.sorted, i, r)
}

func (l *list) remove(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(name)
}

// drop requires the lock.
func (l *list) drop(name string) {
	r, ok := l.byName[name]
	if !ok {
		return
	}
	delete(l.byName, name)
	for _, f := range r.Forks {
		if delete(l.forks[f.Origin], name); len(l.forks[f.Origin]) == 0 {
			delete(l.forks, f.Origin)
		}
	}
	i, _ := slices.BinarySearchFunc(l.sorted, r, compare)
	l.sorted = slices.Delete(l.sorted, i, i+1)
}

// all returns the records in the order of the list.
func (l *list) all() []*record {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return slices.Clone(l.sorted)
}

func (l *list) forksOf(origin string) []*record {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return slices.Collect(maps.Values(l.forks[origin]))
}

// unread returns the number of contexts whose logs were never read.
func (l *list) unread() (n int) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, r := range l.sorted {
		if r.Through == 0 {
			n++
		}
	}
	return n
}

// find returns a page, and whether there are more contexts after it.
func (l *list) find(f Filter) (found []Context, more bool) {
	f.Part = strings.ToLower(f.Part)
	found = []Context{}
	l.mu.RLock()
	defer l.mu.RUnlock()
	first := 0
	if f.After != (Position{}) {
		first = sort.Search(len(l.sorted), func(i int) bool {
			return comparePositions(l.sorted[i].LastActiveAt, l.sorted[i].ContextName, f.After.At, f.After.Name) > 0
		})
	}
	for _, r := range l.sorted[first:] {
		if !f.selects(r) {
			continue
		}
		if len(found) == f.Limit {
			return found, true
		}
		found = append(found, r.Context)
	}
	return found, false
}
