package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/references"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// LoadTimeout bounds one attempt of [Activities.Load], with the wait for other loads of the worker.
const LoadTimeout = 2 * time.Minute

// LoadInput is the input of [Activities.Load].
type LoadInput struct {
	ContextName string `json:"contextName"`
	Reference   []byte `json:"reference"` // the data of an inert payload, see package references
	// Room is the number of bytes that the context has room for, see [reducer.ReducedContext.Room]. 0: no limit.
	Room int `json:"room,omitempty"`
}

// errReference is the type of the error of a reference that cannot be read, now or later.
const errReference = "Reference"

// Load returns the payload that a reference in a signal refers to, unchanged: the store has its bytes already. A
// reference that is malformed, of another store, too large, missing, or to another reference is a final error, unlike
// an unavailable store. A worker loads maxLoads payloads at a time. Heartbeats let another worker replace a killed one.
func (a *Activities) Load(ctx context.Context, in LoadInput) (converter.RawValue, error) {
	ctx, stop := withHeartbeats(ctx)
	defer stop()
	end, err := a.beginLoad(ctx)
	if err != nil {
		return converter.RawValue{}, err
	}
	defer end()
	payload, err := a.options.Archive.Blobs(in.ContextName).Payload(ctx, references.Active(in.Reference), in.limit())
	if err == nil && references.Is(payload) {
		// The SDK would resolve it in the result of the activity.
		err = fmt.Errorf("%w: it refers to another reference", blobs.ErrReference)
	}
	if errors.Is(err, blobs.ErrTooLarge) && in.limit() < maxLoaded {
		err = fmt.Errorf("%w: the context has room for %d bytes (send a short message, which compacts the context, or use another context)", err, in.Room)
	}
	if errors.Is(err, blobs.ErrReference) || errors.Is(err, blobs.ErrNotFound) || errors.Is(err, blobs.ErrCorrupt) {
		err = temporal.NewNonRetryableApplicationError("read the reference to a large input: "+err.Error(), errReference, nil)
	}
	return converter.NewRawValue(payload), err
}

// beginLoad waits until fewer than maxLoads loads run.
func (a *Activities) beginLoad(ctx context.Context) (end func(), err error) {
	select {
	case a.loads <- struct{}{}:
		return func() { <-a.loads }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (in LoadInput) limit() int64 {
	if in.Room > 0 {
		return min(int64(in.Room), maxLoaded)
	}
	return maxLoaded
}

const (
	// maxLoaded bounds the stored payload of an input in bytes: [wire.MaxStoredBytes] and its encoding.
	maxLoaded = wire.MaxStoredBytes + 64<<10
	// maxLoads bounds the memory of a worker that loads the input of many contexts at the same time.
	maxLoads = 8
)
