package eventlog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// ErrNoContext says that there is no context of that name.
var ErrNoContext = errors.New("no such context")

// Log reads the contexts of one namespace. It is safe for concurrent use.
type Log struct{ temporal client.Client }

// New returns a log that reads through the client, in its namespace.
func New(temporal client.Client) *Log { return &Log{temporal: temporal} }

// Events yields the events of a context that are there now, beginning after the
// event with the id from, or at the first when from is empty. An error comes
// last; it is ErrNoContext when there is none of that name.
func (l *Log) Events(ctx context.Context, contextName, from string) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		run, err := l.currentRun(ctx, contextName)
		if err != nil {
			yield(event.Event{}, err)
			return
		}
		l.upTo(ctx, contextName, run, from, yield)
	}
}

// UpTo yields the events of a run and of all runs before it.
func (l *Log) UpTo(ctx context.Context, contextName, runID string) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) { l.upTo(ctx, contextName, runID, "", yield) }
}

func (l *Log) upTo(ctx context.Context, contextName, runID, from string, yield func(event.Event, error) bool) {
	c := cursor{last: event.Counter(from)}
	runs, err := l.chain(ctx, contextName, runID, c, "")
	if err != nil {
		yield(event.Event{}, err)
		return
	}
	for _, run := range runs {
		for e, err := range l.run(ctx, contextName, run, false) {
			if err == nil && !c.pass(e) {
				continue
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// Follow yields the events of a context as Events does and goes on with those
// that are added, over the ends of runs and sessions, until ctx is done. It
// waits for a context that is not there yet and for a server that is away. An
// error that waiting cannot mend comes last.
func (l *Log) Follow(ctx context.Context, contextName, from string) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		c := cursor{last: event.Counter(from)}
		done := "" // the newest run that was read to its end
		var pause pause
		for ctx.Err() == nil {
			runs, err := l.unread(ctx, contextName, c, done)
			for _, run := range runs {
				var e event.Event
				for e, err = range l.run(ctx, contextName, run, true) {
					if err != nil {
						break
					}
					pause.reset()
					if c.pass(e) && !yield(e, nil) {
						return
					}
				}
				if err != nil {
					break
				}
				done = run
			}
			if err != nil && ctx.Err() == nil && !mayPass(err) {
				yield(event.Event{}, err)
				return
			}
			pause.wait(ctx)
		}
	}
}

// unread lists the runs that were not read to their end, oldest first.
func (l *Log) unread(ctx context.Context, contextName string, c cursor, done string) ([]string, error) {
	run, err := l.currentRun(ctx, contextName)
	if err != nil || run == done {
		return nil, err
	}
	return l.chain(ctx, contextName, run, c, done)
}

// cursor lets every event pass once, in order.
type cursor struct{ last int }

func (c *cursor) pass(e event.Event) bool {
	counter := event.Counter(e.ID)
	if counter <= c.last {
		return false
	}
	c.last = counter
	return true
}

// pause waits a little longer each time, from 50 ms to 400.
type pause struct{ next time.Duration }

func (p *pause) reset() { p.next = 0 }

func (p *pause) wait(ctx context.Context) {
	p.next = min(max(2*p.next, 50*time.Millisecond), 400*time.Millisecond)
	timer := time.NewTimer(p.next)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// mayPass reports whether an error may be gone in a moment: the server is away
// or busy, or the context is still to come.
func mayPass(err error) bool {
	var (
		unavailable *serviceerror.Unavailable
		exhausted   *serviceerror.ResourceExhausted
		deadline    *serviceerror.DeadlineExceeded
		aborted     *serviceerror.Aborted
		internal    *serviceerror.Internal
		cancelled   *serviceerror.Canceled
	)
	return errors.Is(err, ErrNoContext) || errors.Is(err, context.DeadlineExceeded) ||
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
			events, err := Decode(h)
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

// noContext turns "not found" into ErrNoContext.
func noContext(err error) error {
	var notFound *serviceerror.NotFound
	if errors.As(err, &notFound) {
		return fmt.Errorf("%w: %w", ErrNoContext, err)
	}
	return err
}
