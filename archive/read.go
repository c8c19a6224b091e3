package archive

import (
	"cmp"
	"context"
	"iter"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Events yields the events of a context after the one with the counter after, in
// order, for as far as there is no gap. An error comes last; it is a
// [*SegmentError] when it is known which events cannot be read.
func (a *Archive) Events(ctx context.Context, contextName string, after int) iter.Seq2[event.Event, error] {
	return a.after(ctx, contextName, after, 0)
}

// after is Events, of a context to which so many forks have led.
func (a *Archive) after(ctx context.Context, contextName string, after, forks int) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		folder, err := a.list(ctx, contextName)
		if err != nil {
			yield(event.Event{}, err)
			return
		}
		if folder.isFork {
			origin, err := a.origin(ctx, contextName, forks)
			if err != nil {
				yield(event.Event{}, err)
				return
			}
			for e, err := range a.inherited(ctx, contextName, origin, after, forks) {
				if !yield(e, err) || err != nil {
					return
				}
				after++
			}
			if after < origin.At {
				return
			}
		}
		for e, err := range a.own(ctx, contextName, folder, after+1) {
			if !yield(e, err) {
				return
			}
		}
	}
}

// inherited yields the events of a fork that are those of its origin.
func (a *Archive) inherited(ctx context.Context, contextName string, origin Origin, after, forks int) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		if after >= origin.At {
			return
		}
		for e, err := range a.after(ctx, origin.ContextName, after, forks+1) {
			if err != nil {
				yield(event.Event{}, err)
				return
			}
			if !yield(e.MovedTo(contextName), nil) || event.Counter(e.ID) == origin.At {
				return
			}
		}
	}
}

// own yields the events from a counter on that are in segments of the context's
// own. One that cannot be read is made good for by others with the same events.
func (a *Archive) own(ctx context.Context, contextName string, folder folder, next int) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for {
			begin := next
			var failed error
			for _, s := range folder.with(begin) {
				for e, err := range a.events(ctx, contextName, s, next) {
					if err != nil {
						failed = cmp.Or(failed, err)
						break
					}
					if !yield(e, nil) {
						return
					}
					next++
				}
				if next > s.last {
					break
				}
			}
			if next == begin {
				if failed != nil {
					yield(event.Event{}, failed)
				}
				return
			}
		}
	}
}
