package contexts

import (
	"slices"

	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"

	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/references"
)

// WithStore returns the options of the Temporal client of a [Worker]: the client keeps large payloads in the store,
// and references to payloads in input reach contexts as data, so that nobody can stop a context with a reference that
// cannot be read.
func WithStore(options client.Options, store *blobs.Store) client.Options {
	options.ExternalStorage = blobs.ExternalStorage(store)
	options.ConnectionOptions.DialOptions = append(slices.Clone(options.ConnectionOptions.DialOptions),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(references.Codec())))
	return options
}
