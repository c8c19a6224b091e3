package archive

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
)

// Blobs are the bytes that the log and the histories of a context refer to. No other context refers to them, except its
// forks, so that they can be deleted with the context.
type Blobs struct {
	blobs.Folder
	archive     *Archive
	contextName string
}

// BlobFolder returns the name of the [blobs.Folder] of a context.
func BlobFolder(contextName string) string { return folderOf(content, contextName) }

// Blobs returns the blobs of a context.
func (a *Archive) Blobs(contextName string) *Blobs {
	return &Blobs{a.store.Folder(BlobFolder(contextName)), a, contextName}
}

// Get returns the bytes of a reference, which the origin of a fork may have. Its errors are those of
// [blobs.Folder.Get].
func (b *Blobs) Get(ctx context.Context, ref blobs.Ref) ([]byte, error) {
	data, err := b.Folder.Get(ctx, ref)
	for depth, fork := 0, b.contextName; errors.Is(err, blobs.ErrNotFound) && depth < MaxForkDepth; depth++ {
		origin, originErr := b.archive.Registered(ctx, fork)
		if originErr == nil && origin == nil || errors.Is(originErr, ErrNoRun) {
			break
		}
		if originErr != nil {
			return nil, fmt.Errorf("look for blob %s: %w", ref, originErr)
		}
		fork = origin.ContextName
		data, err = b.archive.Blobs(fork).Folder.Get(ctx, ref)
	}
	return data, err
}

// origin returns nil for a context that is no fork, or that does not exist.
func (a *Archive) origin(ctx context.Context, contextName string) (*Origin, error) {
	origin, err := a.Origin(ctx, contextName)
	if errors.Is(err, ErrNoRun) {
		return nil, nil
	}
	return origin, err
}
