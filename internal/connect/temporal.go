package connect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seed-9ed7edd4/chronicle/internal/eventlog"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/references"
)

// ErrUnreachable is exported as client.ErrUnreachable.
var ErrUnreachable = errors.New("temporal is unreachable")

// UnreachableError is an [ErrUnreachable] of [Dial].
type UnreachableError struct {
	Address string
	Cause   error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("connect to Temporal at %s: %v: %v", e.Address, ErrUnreachable, e.Cause)
}

func (e *UnreachableError) Unwrap() []error { return []error{ErrUnreachable, e.Cause} }

// Dial connects to Temporal. The error is an [UnreachableError], that of ctx, or says that access was denied.
func Dial(ctx context.Context, options client.Options, timeout time.Duration) (client.Client, error) {
	timed, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	c, err := client.DialContext(timed, options)
	switch {
	case err == nil:
		return c, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, new(*serviceerror.PermissionDenied)) || status.Code(err) == codes.Unauthenticated:
		return nil, fmt.Errorf("connect to Temporal at %s: access denied (check the credentials): %w", options.HostPort, err)
	}
	return nil, &UnreachableError{options.HostPort, err}
}

// WithStore returns the options of the Temporal client of a worker: the client keeps large payloads in the store,
// and references to payloads in input reach contexts as data, so that nobody can stop a context with a reference that
// cannot be read. A nil store keeps none.
func WithStore(options client.Options, store *blobs.Store) client.Options {
	options.ExternalStorage = eventlog.ExternalStorage(store)
	options.ConnectionOptions.DialOptions = append(slices.Clone(options.ConnectionOptions.DialOptions),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(references.Codec())))
	return options
}
