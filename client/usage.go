package client

import (
	"context"
	"fmt"

	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
)

// StoreUsage is the number of contexts that workers have opened, and what they occupy in the blob store.
type StoreUsage = archive.Usage

// StoreUsage measures the contexts of the tenant, or those without one, in the blob store, and looks for the contexts with
// the names among them. It lists all their objects, for many thousands of which it takes seconds. The error may be
// ErrNoArchive.
func (c *Client) StoreUsage(ctx context.Context, names ...string) (StoreUsage, error) {
	if c.options.Archive == nil {
		return StoreUsage{}, fmt.Errorf("measure the usage of tenant %q: %w", c.tenant, errStoreRequired)
	}
	return c.options.Archive.Usage(ctx, c.tenant, names...)
}
