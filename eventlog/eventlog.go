package eventlog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/seed-9ed7edd4/chronicle/archive"
	"github.com/seed-9ed7edd4/chronicle/blobs"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// ErrNoContext says that there is no context of that name.
var ErrNoContext = errors.New("no such context")

// StoreAdvice is what to do when a client needs a blob store and has none.
const StoreAdvice = "give the blob store of the workers by --blob-url or BLOB_URL, or go through the gateway"

// ErrNoArchive: what is read is in a blob store, and the reader has none.
var ErrNoArchive = errors.New("the client has no blob store (" + StoreAdvice + ")")

// Log reads the contexts of one namespace. It is safe for concurrent use.
type Log struct {
	temporal client.Client
	archive  *archive.Archive // nil: there is none
}

// New returns a log that reads what the archive has, and the rest through the
// client, in its namespace. The archive may be nil: then a log is what the server
// still has of it.
func New(temporal client.Client, archive *archive.Archive) *Log {
	return &Log{temporal, archive}
}

// Events yields the events of a context that are there now, beginning after the
// event with the id from, or at the first when from is empty. An error comes
// last; it is ErrNoContext when there is none of that name, and a [*GapError]
// when events are missing.
func (l *Log) Events(ctx context.Context, contextName, from string) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		r := reading{log: l, contextName: contextName, last: event.Counter(from)}
		if !r.past(ctx, math.MaxInt, yield) {
			return
		}
		var runs []string
		run, err := l.currentRun(ctx, contextName)
		if err == nil {
			runs, err = r.unread(ctx, run, "")
		}
		r.present(ctx, runs, err, yield)
	}
}

// UpTo yields the events of a run and of all runs before it. When the run is ""
// or the server has forgotten it, they are all that the archive has. What nobody
// has any more is left out: it is for those who go on with what there is.
func (l *Log) UpTo(ctx context.Context, contextName, runID string) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		r := reading{log: l, contextName: contextName}
		if l.archive != nil {
			// The archive may go on behind the run.
			through := math.MaxInt
			_, first, err := l.chain(ctx, contextName, runID, math.MaxInt-1, "")
			if err == nil && first > 0 {
				through = first - 1
			}
			if err != nil && !errors.Is(err, ErrNoContext) {
				yield(event.Event{}, err)
				return
			}
			if !r.past(ctx, through, yield) {
				return
			}
		}
		runs, err := r.unread(ctx, runID, "")
		var gap *GapError
		if errors.As(err, &gap) && gap.Err == nil {
			err = nil
		}
		r.present(ctx, runs, err, yield)
	}
}

// Follow yields the events of a context as Events does and goes on with those
// that are added, over the ends of runs and sessions, until ctx is done. It
// waits for a context that is not there yet and for a server or an archive that
// is away. An error that waiting cannot mend comes last.
//
// A context that is not there, or whose session has ended, is looked for again after a
// pause. A value from wake ends the pause: the caller has heard that there is something
// new. It may be nil.
func (l *Log) Follow(ctx context.Context, contextName, from string, wake <-chan struct{}) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		r := reading{log: l, contextName: contextName, last: event.Counter(from)}
		done := ""        // the newest run that was read to its end
		archived := false // the archive was read as far as it goes
		var pause pause
		for ctx.Err() == nil {
			wasArchived := archived
			if !archived && !r.past(ctx, math.MaxInt, yield) {
				return
			}
			archived = true
			run, err := l.currentRun(ctx, contextName)
			var runs []string
			if err == nil && run != done {
				runs, err = r.unread(ctx, run, done)
			}
			if err != nil {
				runs = nil
			}
			for _, run := range runs {
				var e event.Event
				for e, err = range l.run(ctx, contextName, run, true) {
					if err != nil {
						break
					}
					pause.reset()
					if r.pass(e) && !yield(e, nil) {
						return
					}
				}
				if err != nil {
					break
				}
				done, r.failed = run, nil
			}
			if errors.Is(err, ErrNoContext) && r.failed != nil {
				err = r.gap(0)
			}
			if gap := (*GapError)(nil); errors.As(err, &gap) {
				// The server may have forgotten meanwhile what the archive has got.
				archived = false
				if wasArchived {
					continue
				}
			}
			if err != nil && ctx.Err() == nil && !mayPass(err) {
				yield(event.Event{}, err)
				return
			}
			pause.wait(ctx, wake, errors.Is(err, ErrNoContext))
		}
	}
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
	return errors.Is(err, ErrNoContext) || errors.Is(err, blobs.ErrAway) || errors.Is(err, context.DeadlineExceeded) ||
		errors.As(err, &unavailable) || errors.As(err, &exhausted) || errors.As(err, &deadline) ||
		errors.As(err, &aborted) || errors.As(err, &internal) || errors.As(err, &cancelled)
}

// run yields the events of one run; with wait, until the run has ended.
func (l *Log) run(ctx context.Context, contextName, runID string, wait bool) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		history := l.temporal.GetWorkflowHistory(ctx, wire.WorkflowID(contextName), runID, wait,
			enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for history.HasNext() {
			h, err := history.Next()
			if err != nil {
				yield(event.Event{}, fmt.Errorf("read the log of context %s: %w", contextName, noContext(err)))
				return
			}
			events, err := l.decode(ctx, h)
			if err != nil {
				yield(event.Event{}, fmt.Errorf("read the log of context %s, run %s: %w", contextName, runID, err))
				return
			}
			for _, e := range events {
				if !yield(e, nil) {
					return
				}
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
