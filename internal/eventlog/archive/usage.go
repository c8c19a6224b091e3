package archive

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Usage is what the contexts of a tenant occupy in the store.
type Usage struct {
	Contexts int
	Bytes    int64
	Missing  []string // sorted: the contexts that were asked for and are not among Contexts
}

// Usage measures what the contexts of a tenant occupy, or those without a tenant. It lists all of it, and looks for the
// contexts with the names.
func (a *Archive) Usage(ctx context.Context, tenant string, names ...string) (u Usage, err error) {
	missing := map[string]string{} // by folder
	for _, name := range names {
		missing[folderName(name)] = name
	}
	for _, kind := range []string{logs, content, cursors, forks} {
		folder, newest := kindOf(kind, tenant), ""
		for o, err := range a.store.Objects(ctx, folder) {
			if err != nil {
				return Usage{}, fmt.Errorf("measure the archive of tenant %q: %w", tenant, err)
			}
			u.Bytes += o.Bytes
			name, _, _ := strings.Cut(strings.TrimPrefix(o.Name, folder), "/")
			if kind == logs && name != newest { // those of a context follow each other
				newest = name
				u.Contexts++
				delete(missing, name)
			}
		}
	}
	u.Missing = slices.Sorted(maps.Values(missing))
	return u, nil
}
