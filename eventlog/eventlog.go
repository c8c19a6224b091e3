package eventlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/eventlog/blobs"
)

// ErrNoContext says that there is no context of that name.
var ErrNoContext = errors.New("no such context")

// StoreAdvice is what to do when a client needs a blob store and has none.
const StoreAdvice = "give the blob store of the workers by --blob-url or BLOB_URL, or go through the gateway"

// ErrNoArchive: what is read is in a blob store, and the reader has none.
var ErrNoArchive = errors.New("the client has no blob store (" + StoreAdvice + ")")

// Log reads the contexts of one namespace. It is safe for concurrent use.
type Log struct {
	temporal  client.Client
	namespace string
	archive   *archive.Archive // nil: there is none
	bookmarks *bookmarks
}

// New returns a log that reads what the archive has, and the rest through the
// client. The namespace is that of the client; empty: "default". The archive may be
// nil: then a log is what the server still has of it.
func New(temporal client.Client, namespace string, archive *archive.Archive) *Log {
	return &Log{temporal, cmp.Or(namespace, client.DefaultNamespace), archive, newBookmarks()}
}

// Events yields the events of a context that are there now, beginning after the
// event with the id from, or at the first when from is empty. An error comes
// last; it is ErrNoContext when there is none of that name, and a [*GapError]
// when events are missing.
func (l *Log) Events(ctx context.Context, contextName, from string) iter.Seq2[event.Event, error] {
	return l.events(ctx, contextName, from, func() (view, error) { return l.current(ctx, contextName, event.Counter(from)) })
}

// Run yields the events of a run and of those whose log it continues, like
// [Log.Events]. So it reads a branch that a reset has abandoned.
func (l *Log) Run(ctx context.Context, contextName, runID, from string) iter.Seq2[event.Event, error] {
	return l.events(ctx, contextName, from, func() (view, error) { return l.view(ctx, contextName, runID, event.Counter(from)) })
}

func (l *Log) events(ctx context.Context, contextName, from string, find func() (view, error)) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		v, err := find()
		if err != nil {
			yield(event.Event{}, err)
			return
		}
		r := &reading{log: l, contextName: contextName, last: event.Counter(from)}
		r.read(ctx, v, yield)
	}
}

// Follow yields the events of a context as Events does and goes on with those
// that are added, over the ends of runs and sessions, until ctx is done. It
// waits for a context that is not there yet and for a server or an archive that
// is away. Other errors come last.
//
// After `temporal workflow reset` it goes back: it yields the events of the new
// branch from the reset point on. An event with an id that was yielded before
// replaces that event and all behind it.
//
// A context that is not there, or whose session has ended, is looked for again after a
// pause. A value from wake ends the pause: the caller has heard that there is something
// new. It may be nil.
func (l *Log) Follow(ctx context.Context, contextName, from string, wake <-chan struct{}) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		r := &reading{log: l, contextName: contextName, last: event.Counter(from), wait: true}
		var pause pause
		gaps := 0
		done := "" // the newest run that was read to its end
		for ctx.Err() == nil {
			run, _, err := l.currentRun(ctx, contextName)
			var v view
			if errors.Is(err, ErrNoContext) && l.archive != nil && done == "" {
				// The server may have forgotten it.
				if v, err = l.view(ctx, contextName, "", r.last); errors.Is(err, archive.ErrNoRun) {
					err = nil
				}
				v.isGone = true
			} else if err == nil && run != done {
				v, err = l.view(ctx, contextName, run, max(0, r.last-1))
				if err == nil {
					v, err = r.goBack(ctx, v)
				}
				if errors.Is(err, archive.ErrNoRun) {
					// It registers before it records anything. The archive may have been
					// away until goBack asked it.
					v, err = view{}, l.awaitMarker(ctx, contextName, run)
				}
			}
			if len(v.parts) > 0 && err == nil {
				before, was := r.last, r.run
				if !r.read(ctx, v, func(e event.Event, failed error) bool {
					if err = failed; err != nil {
						return false
					}
					return yield(e, nil)
				}) && err == nil {
					return
				}
				if err == nil {
					done = run
				}
				if r.last != before || r.run != was {
					pause.reset()
					gaps = 0
				}
			}
			if errors.As(err, new(*GapError)) && gaps == 0 {
				gaps++ // the server may have forgotten just now what the archive has
				continue
			}
			if err != nil && ctx.Err() == nil && !mayPass(err) {
				yield(event.Event{}, err)
				return
			}
			pause.wait(ctx, wake, errors.Is(err, ErrNoContext))
		}
	}
}

// awaitMarker waits until a run has recorded a marker, or has ended.
func (l *Log) awaitMarker(ctx context.Context, contextName, runID string) error {
	for page, err := range l.pages(ctx, contextName, runID, bookmark{}, following) {
		if err != nil {
			return err
		}
		for _, h := range page.entries {
			if h.GetEventType() == enumspb.EVENT_TYPE_MARKER_RECORDED {
				return nil
			}
		}
	}
	return nil
}

// pause waits a little longer each time, from 50 ms to 400.
type pause struct{ next time.Duration }

// missingPause is the wait before a context that is not there is looked for again: one
// lookup a second for each reader.
const missingPause = time.Second

func (p *pause) reset() { p.next = 0 }

// wait waits, until something is new at the longest.
func (p *pause) wait(ctx context.Context, wake <-chan struct{}, missing bool) {
	p.next = min(max(2*p.next, 50*time.Millisecond), 400*time.Millisecond)
	if missing {
		p.next = missingPause
	}
	timer := time.NewTimer(p.next)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-wake:
		p.reset()
	}
}

// mayPass reports whether an error may be gone in a moment: the server is away
// or busy, the archive is away, or the context is still to come.
func mayPass(err error) bool {
	var (
		unavailable *serviceerror.Unavailable
		exhausted   *serviceerror.ResourceExhausted
		deadline    *serviceerror.DeadlineExceeded
		aborted     *serviceerror.Aborted
		internal    *serviceerror.Internal
		cancelled   *serviceerror.Canceled
	)
	return errors.Is(err, ErrNoContext) || errors.Is(err, blobs.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) ||
		errors.As(err, &unavailable) || errors.As(err, &exhausted) || errors.As(err, &deadline) ||
		errors.As(err, &aborted) || errors.As(err, &internal) || errors.As(err, &cancelled)
}

// run yields the events of one run from a page on that is not behind an event. The
// length is that of [Log.pages].
func (l *Log) run(ctx context.Context, contextName, runID string, after int, length int64) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		from := l.bookmarks.find(runID, after)
		counter := from.counter
		for page, err := range l.pages(ctx, contextName, runID, from, length) {
			if err != nil && from.entry > 0 && (!mayPass(err) || errors.As(err, new(*serviceerror.Internal))) {
				l.bookmarks.forget(runID) // the server may have refused the token
				l.run(ctx, contextName, runID, after, length)(yield)
				return
			}
			if err != nil {
				yield(event.Event{}, fmt.Errorf("read the log of context %s, run %s: %w", contextName, runID, err))
				return
			}
			for _, h := range page.entries {
				events, err := l.decode(ctx, h)
				if err != nil {
					yield(event.Event{}, fmt.Errorf("read the log of context %s, run %s: %w", contextName, runID, err))
					return
				}
				for _, e := range events {
					counter = event.Counter(e.ID)
					if !yield(e, nil) {
						return
					}
				}
			}
			if page.next.counter = counter; len(page.next.token) > 0 {
				l.bookmarks.add(runID, page.next)
			}
		}
	}
}

// noContext turns "not found" into ErrNoContext. A server with a database calls a
// run whose history it has taken away, and nothing else of it yet, an invalid
// argument, and only its words say which.
func noContext(err error) error {
	var notFound *serviceerror.NotFound
	var invalid *serviceerror.InvalidArgument
	if errors.As(err, &notFound) || errors.As(err, &invalid) && strings.Contains(invalid.Message, "history not found") {
		return fmt.Errorf("%w: %w", ErrNoContext, err)
	}
	return err
}
