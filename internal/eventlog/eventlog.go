package eventlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
)

// ErrNoContext means that neither the server nor the archive has the context.
var ErrNoContext = errors.New("no such context")

// NoContext returns an [ErrNoContext] that wraps the error of the server without its text, which
// contains ids of Temporal.
func NoContext(cause error) error { return &noContextError{cause} }

type noContextError struct{ cause error }

func (*noContextError) Error() string     { return ErrNoContext.Error() }
func (e *noContextError) Unwrap() []error { return []error{ErrNoContext, e.cause} }

// StoreAdvice tells the user of a client what to do without a blob store.
const StoreAdvice = "set --blob-url or BLOB_URL to the blob store of the workers, or use the gateway"

// ErrNoArchive means that a record is in a blob store, and the [Log] has no archive to read it.
var ErrNoArchive = errors.New("the client has no blob store (" + StoreAdvice + ")")

// Log reads the contexts of a namespace. It is safe for concurrent use.
type Log struct {
	temporal  client.Client
	namespace string
	archive   *archive.Archive // may be nil
	bookmarks *bookmarks
}

// New returns the log of a namespace; "" is "default". With a nil archive, a log contains what the
// server still has.
func New(temporal client.Client, namespace string, archive *archive.Archive) *Log {
	return &Log{temporal, cmp.Or(namespace, client.DefaultNamespace), archive, newBookmarks()}
}

// Events yields the current events of a context after the event id from; "" means all. An error is
// the last element: [ErrNoContext], a [*GapError], or an error of the server or the archive.
func (l *Log) Events(ctx context.Context, contextName, from string) iter.Seq2[event.Event, error] {
	return l.EventsAndWaiting(ctx, contextName, from, nil)
}

// EventsAndWaiting is [Log.Events], and calls waiting with the work that no worker has done. The last call counts.
// It reads no more than Events, except the history of a run that has not recorded anything. Nil: not called.
func (l *Log) EventsAndWaiting(ctx context.Context, contextName, from string, waiting func(Waiting)) iter.Seq2[event.Event, error] {
	return l.events(ctx, contextName, from, waiting, func() (view, error) { return l.current(ctx, contextName, event.Counter(from)) })
}

// Registered is [Log.Events] for callers that treat the absence of an event as proof that it is not
// recorded. If the archive is unavailable, Registered fails with blobs.ErrUnavailable, whereas [Log.Events]
// reads only histories, which may lack events. For example, a reset starts a run, and this new run closes before
// it registers. The log is still the whole log of the run that was reset, but the history of the new run has only
// the events up to the reset point.
func (l *Log) Registered(ctx context.Context, contextName, from string) iter.Seq2[event.Event, error] {
	return l.events(ctx, contextName, from, nil, func() (view, error) {
		v, err := l.current(ctx, contextName, event.Counter(from))
		return v, cmp.Or(err, v.archiveErr)
	})
}

// Run is [Log.Events] for the log of a run, which may be an abandoned branch.
func (l *Log) Run(ctx context.Context, contextName, runID, from string) iter.Seq2[event.Event, error] {
	return l.events(ctx, contextName, from, nil, func() (view, error) { return l.view(ctx, contextName, runID, event.Counter(from)) })
}

func (l *Log) events(ctx context.Context, contextName, from string, waiting func(Waiting), find func() (view, error)) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		r := &reader{log: l, contextName: contextName, last: event.Counter(from), waiting: waiting}
		v, err := find()
		if err == nil {
			err = r.read(ctx, v, yielding(yield))
		}
		if err == nil && waiting != nil && v.unregistered != "" {
			err = r.readUntilMarker(ctx, v.unregistered, 0)
		}
		if err != nil && !errors.Is(err, errStopped) {
			yield(event.Event{}, err)
		}
	}
}

// ErrDeleted is the [ErrNoContext] of followers of a context that neither the server nor the archive has any more.
var ErrDeleted = fmt.Errorf("it was deleted: %w", ErrNoContext)

var errStopped = errors.New("stopped")

func yielding(yield func(event.Event, error) bool) func(event.Event) error {
	return func(e event.Event) error {
		if !yield(e, nil) {
			return errStopped
		}
		return nil
	}
}

// FollowOptions configure [Log.Follow]. The zero value is valid.
type FollowOptions struct {
	Wake    <-chan struct{} // a value ends the pause between two polls; nil: none
	Waiting func(Waiting)   // called between two events when the waiting work may have changed; nil: not called
}

// Follow yields the events of a context like Events, then new ones across runs and sessions until
// ctx is done. It waits for a context that does not exist yet, and while the server or the archive
// is unavailable. Any other error is the last element, such as [ErrDeleted].
//
// After `temporal workflow reset`, it yields the events of the new branch from the reset point. An
// event whose id was yielded before replaces that event and all later ones.
//
// Contexts that do not exist or have no session are polled.
func (l *Log) Follow(ctx context.Context, contextName, from string, options FollowOptions) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		r := &reader{log: l, contextName: contextName, last: event.Counter(from), follow: true, waiting: options.Waiting}
		var backoff backoff
		isRetry := false // of a gap
		isKnown := false // the server has answered
		done := ""       // the newest run that was read to its end
		for ctx.Err() == nil {
			v, isMissing, err := r.next(ctx, done)
			isKnown = isKnown || err == nil
			if len(v.parts) > 0 && err == nil {
				last, lastRun := r.last, r.run
				if err = r.read(ctx, v, yielding(yield)); errors.Is(err, errStopped) {
					return
				}
				if err == nil && !v.isForgotten {
					done = v.run
				}
				if r.last != last || r.run != lastRun {
					backoff.reset()
					isRetry = false
				}
			}
			if errors.As(err, new(*GapError)) && !isRetry {
				isRetry = true // the server may just have deleted a history that is archived
				continue
			}
			if isMissing && err != nil && !isTransient(err) {
				if isDeleting, _ := l.IsDeleting(ctx, contextName); isDeleting {
					err = fmt.Errorf("follow context %s: %w", contextName, ErrDeleted) // the archive is being deleted
				}
			}
			// A server that has just started may not know its namespaces yet.
			isStarting := isKnown && errors.As(err, new(*serviceerror.NamespaceNotFound))
			if err != nil && ctx.Err() == nil && !isTransient(err) && !isStarting {
				yield(event.Event{}, err)
				return
			}
			backoff.wait(ctx, options.Wake, isMissing)
		}
	}
}

// readUntilMarker reads the history of a run, up to a length as in pages, until the run records events.
func (r *reader) readUntilMarker(ctx context.Context, runID string, length int64) error {
	work := unprocessed{isChanged: true}
	for page, err := range r.log.pages(ctx, r.contextName, runID, bookmark{}, length) {
		if err != nil {
			return err
		}
		for _, h := range page.entries {
			if h.GetEventType() == enumspb.EVENT_TYPE_MARKER_RECORDED {
				return nil
			}
			work.apply(h, nil)
		}
		work.report(r.blobs(), r.waiting)
	}
	return nil
}

type backoff struct{ delay time.Duration }

const missingDelay = time.Second // while the context does not exist

func (b *backoff) reset() { b.delay = 0 }

func (b *backoff) wait(ctx context.Context, wake <-chan struct{}, isMissing bool) {
	b.delay = min(max(2*b.delay, 50*time.Millisecond), 400*time.Millisecond)
	if isMissing {
		b.delay = missingDelay
	}
	timer := time.NewTimer(b.delay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-wake:
		b.reset()
	}
}

func isTransient(err error) bool {
	if errors.Is(err, ErrDeleted) {
		return false
	}
	return errors.Is(err, ErrNoContext) || errors.Is(err, blobs.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) ||
		errors.As(err, new(*serviceerror.Unavailable)) || errors.As(err, new(*serviceerror.ResourceExhausted)) ||
		errors.As(err, new(*serviceerror.DeadlineExceeded)) || errors.As(err, new(*serviceerror.Aborted)) ||
		errors.As(err, new(*serviceerror.Internal)) || errors.As(err, new(*serviceerror.Canceled))
}
