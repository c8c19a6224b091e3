package activities

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/seed-9ed7edd4/chronicle/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/references"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// LoadTimeout bounds one attempt of [Activities.Load].
const LoadTimeout = 2 * time.Minute

// LoadInput is the input of [Activities.Load].
type LoadInput struct {
	Reference []byte `json:"reference"` // the data of an inert payload, see package references
}

// errReference is the type of the error of a reference that cannot be read, now or later.
const errReference = "Reference"

// Load returns the payload that a reference in a signal refers to, unchanged: the store has its bytes already. A
// reference that is malformed, of another store, too large or missing is a final error, unlike an unavailable store.
func (a *Activities) Load(ctx context.Context, in LoadInput) (converter.RawValue, error) {
	payload, err := a.options.Archive.Store().Payload(ctx, references.Active(in.Reference), maxLoaded)
	if errors.Is(err, blobs.ErrReference) || errors.Is(err, blobs.ErrNotFound) || errors.Is(err, blobs.ErrCorrupt) {
		err = temporal.NewNonRetryableApplicationError("read the reference to a large input: "+err.Error(), errReference, nil)
	}
	return converter.NewRawValue(payload), err
}

// maxLoaded bounds the stored payload of an input in bytes: [wire.MaxStoredBytes] and its encoding.
const maxLoaded = wire.MaxStoredBytes + 64<<10
