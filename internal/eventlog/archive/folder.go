package archive

import (
	"cmp"
	"context"
	"fmt"
	"math/big"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// folderOf returns the prefix of what is kept of a context, like contexts/demo/ or tenants/acme/contexts/demo/.
func folderOf(kind, contextName string) string {
	tenant, local := event.CutTenant(contextName)
	return kindOf(kind, tenant) + folderName(local) + "/"
}

// kindOf returns the prefix of a kind of folders of a tenant.
func kindOf(kind, tenant string) string {
	if tenant == "" {
		return kind + "/"
	}
	return tenants + folderName(tenant) + "/" + kind + "/"
}

// folderName returns a name that is unique on case-insensitive file systems: upper-case letters become lower case, and
// a suffix is the bit mask of their positions. A name with a dot at its end gets a suffix, too, since some file systems
// ignore the dot.
func folderName(name string) string {
	var upper big.Int
	for i := range len(name) {
		if c := name[i]; 'A' <= c && c <= 'Z' {
			upper.SetBit(&upper, i, 1)
		}
	}
	folder := strings.ToLower(name)
	switch {
	case upper.Sign() > 0:
		folder += "~" + upper.Text(16)
	case strings.HasSuffix(name, "."):
		folder += "~"
	}
	return folder
}

// contextOf returns the name without a tenant of which a folder name was made.
func contextOf(folder string) string {
	lower, mask, _ := strings.Cut(folder, "~")
	upper, ok := new(big.Int).SetString(mask, 16) // not ok without upper-case letters
	name := []byte(lower)
	for i := range name {
		if ok && upper.Bit(i) == 1 {
			name[i] -= 'a' - 'A'
		}
	}
	return string(name)
}

const tenants = "tenants/" // folder of folders of tenants

// Folders of contexts.
const (
	logs    = "contexts"
	content = "blobs" // see [Blobs]
	cursors = "cursors"
	forks   = "forks"
)

type span struct{ first, last int } // first and last event counter of a segment

func (s span) entry(contextName, runID string) string {
	return fmt.Sprintf("%s%s/%012d-%012d.json", folderOf(logs, contextName), runID, s.first, s.last)
}

func runEntry(contextName string, number int) string {
	return fmt.Sprintf("%sruns/%012d.json", folderOf(logs, contextName), number)
}

// Folder is a listing of a context's entries in the archive, as of the time it was read.
type Folder struct {
	archive     *Archive
	contextName string
	newest      int               // number of the newest registered run; 0 without one
	spans       map[string][]span // by run, sorted by first counter
	unknown     []string          // names of objects that are neither registrations nor segments
}

// Folder lists the entries of a context. Without entries, the folder is empty.
func (a *Archive) Folder(ctx context.Context, contextName string) (*Folder, error) {
	if err := event.ValidateContextName(contextName); err != nil {
		return nil, err
	}
	f := &Folder{archive: a, contextName: contextName, spans: map[string][]span{}}
	for name, err := range a.store.Names(ctx, folderOf(logs, contextName)) {
		if err != nil {
			return nil, fmt.Errorf("list the archive of context %s: %w", contextName, err)
		}
		run := path.Base(path.Dir(name))
		first, last, isSpan := strings.Cut(strings.TrimSuffix(path.Base(name), ".json"), "-")
		var s span // a malformed number becomes zero, which is in no entry's name
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

// cover returns the fewest spans that contain the events from one counter through another, up to
// the first gap.
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
