package client

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/api/serviceerror"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/connect"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
)

// Errors to test for with [errors.Is].
var (
	ErrName      = errors.New("invalid context name")
	ErrNoContext = eventlog.ErrNoContext
	// ErrDeleted is an ErrNoContext: the context was deleted while it was followed.
	ErrDeleted = eventlog.ErrDeleted
	// ErrMissingBytes: neither the log nor the blob store has bytes that events refer to.
	ErrMissingBytes = errors.New("the blob store lacks the bytes")
	ErrExists       = errors.New("context already exists (choose another name)")
	// ErrDeleting: a deletion of the context runs that does something else, or would delete the stored part of an input.
	ErrDeleting    = errors.New("a deletion runs")
	ErrUnreachable = connect.ErrUnreachable
	// ErrBusy is an ErrUnreachable: Temporal has too many requests, or does not respond in time.
	ErrBusy     error = busyError{}
	ErrNoWorker       = errors.New("no worker responds (start one, or retry later if they are busy)")
	// ErrFull: the history has no room until a worker processes it. Sending again later is safe.
	ErrFull = errors.New("full until a worker runs")
	// ErrRefused: the context rejected the events and recorded why in an InputRejectedEvent.
	ErrRefused = errors.New("rejected")
	// ErrKeyReused is an ErrRefused: an earlier, different input had the idempotency key, see
	// [event.KeyedIDs].
	ErrKeyReused    = fmt.Errorf("%w: %s", ErrRefused, event.KeyReused)
	ErrLost         = errors.New("the run ended before it recorded the events (after a termination, the next input records them first; after a reset, send them again)")
	ErrUnanswered   = errors.New("the run was terminated before it answered (send a new message)")
	ErrNoAttachment = errors.New("attachment not found")
	ErrNoArchive    = eventlog.ErrNoArchive
	ErrNoEvent      = eventlog.ErrNoEvent
	ErrNoSchedule   = errors.New("no such schedule")
	ErrNextUnknown  = errors.New("the schedule was stored, but its next time is unknown")
	ErrOtherStore   = blobs.ErrOtherStore
	ErrNoBlob       = blobs.ErrNotFound
	// ErrStoreUnavailable: the blob store does not respond. A retry may succeed.
	ErrStoreUnavailable = blobs.ErrUnavailable
)

// GapError reports a log that lacks events.
type GapError = eventlog.GapError

// StoreAdvice is the advice in errors of a client without a blob store.
const StoreAdvice = eventlog.StoreAdvice

type busyError struct{}

func (busyError) Error() string        { return "temporal is busy or does not respond (retry later)" }
func (busyError) Is(target error) bool { return target == ErrUnreachable }

// nameError is an ErrName whose text is that of the validation.
type nameError struct{ error }

func (nameError) Is(target error) bool { return target == ErrName }

// errStoreRequired is an ErrNoArchive without the advice to use the gateway, which does not offer the
// operation.
var errStoreRequired error = storeRequiredError{}

type storeRequiredError struct{}

func (storeRequiredError) Error() string {
	return "the client has no blob store (set --blob-url or BLOB_URL to the blob store of the workers)"
}

func (storeRequiredError) Is(target error) bool { return target == ErrNoArchive }

// onTimeout is the error for a call without a response.
func (c *Context) explain(ctx context.Context, operation string, err, onTimeout error) error {
	if err == nil {
		return nil
	}
	var (
		notFound *serviceerror.NotFound
		noWorker *serviceerror.FailedPrecondition
		failed   *serviceerror.QueryFailed
	)
	kind := outage(err)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, ErrRefused), errors.Is(err, ErrFull):
		return fmt.Errorf("%s context %s: %w", operation, c.Name(), err)
	case errors.As(err, &notFound):
		return fmt.Errorf("%s context %s: %w", operation, c.Name(), eventlog.NoContext(err))
	case isTimeout(err):
		if kind = onTimeout; kind == ErrNoWorker {
			return fmt.Errorf("%s context %s: %w", operation, c.Name(), noResponse{err})
		}
	case errors.As(err, &noWorker), errors.As(err, &failed):
		kind = ErrNoWorker
	case kind == nil:
		return fmt.Errorf("%s context %s: %w", operation, c.Name(), err)
	}
	return fmt.Errorf("%s context %s: %w: %w", operation, c.Name(), kind, err)
}

// noResponse is an ErrNoWorker without the text of its cause: that of gRPC only says that time passed.
type noResponse struct{ cause error }

func (noResponse) Error() string     { return ErrNoWorker.Error() }
func (e noResponse) Unwrap() []error { return []error{ErrNoWorker, e.cause} }

// isTimeout reports whether a call had no response in time. The server cancels calls at their deadline.
func isTimeout(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, new(*serviceerror.DeadlineExceeded)) || errors.As(err, new(*serviceerror.Canceled))
}

// outage returns ErrUnreachable, ErrBusy, or nil for other errors of Temporal.
func outage(err error) error {
	switch {
	case errors.As(err, new(*serviceerror.Unavailable)):
		return ErrUnreachable
	case errors.As(err, new(*serviceerror.ResourceExhausted)), errors.As(err, new(*serviceerror.DeadlineExceeded)):
		return ErrBusy
	default:
		return nil
	}
}

// unreachable adds ErrUnreachable, ErrBusy or ctx.Err(), which Temporal reports with types of its own.
func unreachable(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
		return fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	if kind := outage(err); ctx.Err() == nil && kind != nil {
		return fmt.Errorf("%w: %w", kind, err)
	}
	return err
}
