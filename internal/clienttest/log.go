// Package clienttest has the log of a context in memory, for tests of programs that use package client.
package clienttest

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
)

// Log is the log of a context. Tests write it, and its methods Events and Follow are those of
// [client.Context]. It is safe for concurrent use.
type Log struct {
	name string
	at   func(n int) time.Time

	mu      sync.Mutex
	changed chan struct{} // closed and replaced by each change
	events  []event.Event // including deltas
	last    int           // counter of the newest event
	err     error
	waiting client.Waiting
}

// NewLog returns the log of a context that does not exist before the first event is recorded. At is the
// time of event number n.
func NewLog(name string, at func(n int) time.Time) *Log {
	return &Log{name: name, at: at, changed: make(chan struct{})}
}

// Name returns the name of the context.
func (l *Log) Name() string { return l.name }

// Rename changes the name, and the context of later events. It must precede concurrent calls.
func (l *Log) Rename(name string) { l.name = name }

// Record appends events to the log, with ids, parents and times, and streams deltas. It returns the ids
// of the recorded events.
func (l *Log) Record(events ...event.Event) (ids []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range events {
		_, e.ContextName = event.CutTenant(l.name)
		if e.Tag().Class() != event.ClassEphemeral {
			e.ParentID = ""
			if l.last > 0 {
				e.ParentID = event.FormatID(l.name, l.last)
			}
			l.last++
			e.ID, e.Timestamp = event.FormatID(l.name, l.last), l.at(l.last)
			ids = append(ids, e.ID)
		}
		l.events = append(l.events, e)
	}
	l.change()
	return ids
}

// Replace replaces the log by events that have ids.
func (l *Log) Replace(events []event.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = events
	if n := len(events); n > 0 {
		l.last = event.Counter(events[n-1].ID)
	}
	l.change()
}

// Skip omits event numbers: the next event is number n + 1.
func (l *Log) Skip(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = n
}

// Fail makes Events and Follow fail, including running calls.
func (l *Log) Fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
	l.change()
}

func (l *Log) change() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// Wait reports work that waits for a worker.
func (l *Log) Wait(w client.Waiting) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = w
	l.change()
}

// Snapshot returns the events so far, including deltas. The channel is closed by the next change. The
// error is that of Fail.
func (l *Log) Snapshot() (events []event.Event, changed <-chan struct{}, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.events[:len(l.events):len(l.events)], l.changed, l.err
}

// Events yields the recorded events that follow the event with the id from; "": all.
func (l *Log) Events(_ context.Context, from string) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		events, _, err := l.Snapshot()
		if err == nil && len(events) == 0 {
			err = fmt.Errorf("context %s: %w", l.name, client.ErrNoContext)
		}
		if err != nil {
			yield(event.Event{}, err)
			return
		}
		for _, e := range events {
			if event.Counter(e.ID) > event.Counter(from) && !yield(e, nil) {
				return
			}
		}
	}
}

// EventsAndWaiting is Events, and reports the work of Wait.
func (l *Log) EventsAndWaiting(ctx context.Context, from string, waiting func(client.Waiting)) iter.Seq2[event.Event, error] {
	l.mu.Lock()
	defer l.mu.Unlock()
	waiting(l.waiting)
	return l.Events(ctx, from)
}

// Follow yields the recorded events that follow options.From and, if options.Deltas is set, all later deltas, until
// ctx is done.
func (l *Log) Follow(ctx context.Context, options client.FollowOptions) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		next, last, from := 0, 0, event.Counter(options.From)
		for ctx.Err() == nil {
			l.mu.Lock()
			waiting := l.waiting
			l.mu.Unlock()
			if options.Waiting != nil {
				options.Waiting(waiting)
			}
			events, changed, err := l.Snapshot()
			for _, e := range events[next:] {
				last = max(last, event.Counter(e.ID))
				isWanted := last > from
				if e.ID == "" {
					isWanted = options.Deltas && last >= from
				}
				if isWanted && !yield(e, nil) {
					return
				}
			}
			next = len(events)
			if err != nil {
				yield(event.Event{}, err)
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
			}
		}
	}
}
