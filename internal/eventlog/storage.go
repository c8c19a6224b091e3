package eventlog

import (
	"go.temporal.io/sdk/converter"

	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// ExternalStorage makes a Temporal client keep the large payloads of contexts, and of the workflows that have their content,
// among their [archive.Blobs], and those of other workflows in the root of the store. With a nil store, nothing is stored.
func ExternalStorage(store *blobs.Store) converter.ExternalStorage {
	return blobs.ExternalStorage(store, func(workflowID string) string {
		if name, ok := wire.OwnerOf(workflowID); ok {
			return archive.BlobFolder(name)
		}
		return ""
	})
}
