package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// Ask sends events and yields the turn that they start: recorded events, live deltas, the answer
// and the event that ends the turn (LLMRequestCompleted, LLMRequestInterrupted, LLMRequestFailed,
// InputRejected, or SessionStarted if the run was terminated). Events that require no answer end
// the turn when they are recorded. If an earlier call recorded the events, Ask yields that turn
// from the log. After a reset of the run, it continues with the new run from the reset point.
//
// Ask waits for a worker until ctx ends; the error is then also an ErrNoWorker if none responded. Otherwise, it is
// ErrLost if the run ended before it recorded the events, ErrUnanswered if it ended before it answered them or was reset
// repeatedly, ErrNoArchive if the answer is in a blob store and the client has none, or an error of [Context.Send] or
// [Context.Follow]. Only the blob store shows what an ended run recorded, so Ask waits while it is unavailable.
func (c *Context) Ask(ctx context.Context, events ...event.Event) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		// Subscribe before sending, so that no delta is missed.
		f, err := c.newFollower(ctx, true)
		if err != nil {
			yield(event.Event{}, err)
			return
		}
		sent, err := c.Send(ctx, events...)
		if err != nil && !errors.Is(err, ErrRefused) {
			f.close()
			yield(event.Event{}, err)
			return
		}
		known := sent.EventIDs
		if sent.RefusalID != "" {
			known = []string{sent.RefusalID}
		}
		q := question{context: c, clientEventIDs: sent.ClientEventIDs, yield: yield, isUnrecorded: known == nil}
		for range maxFollows {
			restart, ids := q.follow(ctx, f, c.idBefore(known))
			f.close()
			if !restart {
				return
			}
			known = ids
			if f, err = c.newFollower(ctx, true); err != nil {
				yield(event.Event{}, err)
				return
			}
		}
		f.close()
		yield(event.Event{}, fmt.Errorf("send to context %s: %w", c.Name(), ErrUnanswered))
	}
}

const maxFollows = 4 // of a turn; resets cause all but the first

type question struct {
	context        *Context
	clientEventIDs []string
	yield          func(event.Event, error) bool
	isUnrecorded   bool // no worker recorded the events while Send waited for that
}

// The log does not show a termination or reset, so Ask queries the delivery when no events arrive.
const (
	firstCheck = 2 * time.Second
	maxCheck   = 30 * time.Second
)

// If restart is true, the caller must follow the log again, starting at the earliest of ids.
func (q question) follow(ctx context.Context, f *follower, from string) (restart bool, ids []string) {
	entries := Entries(f.ctx, f.follow(from), 0)
	defer func() {
		f.cancel()
		for range entries {
		}
	}()
	t := newTurn(q.clientEventIDs)
	last := event.Counter(from)
	interval := firstCheck
	silence := time.NewTimer(interval)
	defer silence.Stop()
	checks := make(chan check, 1)
	isChecking, isUnattended := false, q.isUnrecorded
	startCheck := func() {
		if !isChecking {
			isChecking = true
			go func() {
				d, err := q.context.Delivery(f.ctx, q.clientEventIDs...)
				checks <- check{d, err}
			}()
		}
	}
	for {
		select {
		case entry, ok := <-entries:
			if !ok {
				if err := ctx.Err(); err != nil && isUnattended {
					q.yield(event.Event{}, fmt.Errorf("send to context %s: %w: %w", q.context.name, ErrNoWorker, err))
				} else if err != nil {
					q.yield(event.Event{}, err)
				}
				return false, nil
			}
			if entry.Err != nil {
				q.yield(entry.Event, q.explain(entry.Err))
				return false, nil
			}
			last = cmp.Or(event.Counter(entry.Event.ID), last)
			belongs, ends := t.add(entry.Event)
			isUnattended = isUnattended && !belongs
			if belongs && !q.yield(entry.Event, nil) || ends {
				return false, nil
			}
			if belongs {
				interval = firstCheck
				silence.Reset(interval)
			} else if entry.Event.Tag() == event.TagSessionStarted {
				startCheck() // the run that received the events may have been terminated
			}
		case <-silence.C:
			interval = min(2*interval, maxCheck)
			silence.Reset(interval)
			startCheck()
		case result := <-checks:
			isChecking = false
			if ctx.Err() == nil {
				isUnattended = errors.Is(result.err, ErrNoWorker)
			}
			ids, err := q.evaluate(ctx, result, &t, last)
			if err != nil {
				q.yield(event.Event{}, fmt.Errorf("send to context %s: %w", q.context.name, q.explain(err)))
				return false, nil
			}
			if ids != nil {
				return true, ids
			}
		}
	}
}

type check struct {
	delivery Delivery
	err      error
}

// evaluate returns the events from which to follow the log again, or an error if the turn cannot end. If
// it returns neither, the caller keeps waiting.
func (q question) evaluate(ctx context.Context, result check, t *turn, last int) (ids []string, err error) {
	if errors.Is(result.err, ErrNoContext) {
		return nil, ErrLost
	}
	if result.err != nil {
		return nil, nil // the worker or the server may become available
	}
	d := result.delivery
	ids, all := d.recorded(q.clientEventIDs)
	isCaughtUp := last >= event.Counter(d.LastEventID)
	if !isCaughtUp && q.context.client.options.Archive == nil {
		return nil, q.unreadable(ctx, last)
	}
	if !all && (d.Pending || !isCaughtUp) {
		return nil, nil
	}
	if !all {
		// The context remembers only its newest client event ids.
		d, err = q.context.deliveryFromLog(ctx, q.clientEventIDs)
		if errors.Is(err, blobs.ErrUnavailable) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if ids, all = d.recorded(q.clientEventIDs); !all {
			return nil, ErrLost
		}
		d.Status, d.Ended = result.delivery.Status, result.delivery.Ended
	}
	if len(t.waiting) > 0 {
		if isCaughtUp {
			return ids, nil // after a reset, they precede the last event read
		}
		return nil, nil
	}
	if d.Status == wire.StatusAnswering || !isCaughtUp {
		return nil, nil
	}
	// No answer is running. After a reset, the answer may precede the last event read.
	past := newTurn(q.clientEventIDs)
	for e, err := range q.context.Events(ctx, q.context.idBefore(ids)) {
		if err != nil {
			return nil, err
		}
		if _, ends := past.add(e); ends {
			return ids, nil
		}
	}
	return nil, ErrUnanswered
}

// unreadable returns an error if the next event of the log is in a blob store and the client has
// none. The follower of the log waits instead: it cannot tell whether an unreadable record contains
// new events.
func (q question) unreadable(ctx context.Context, last int) error {
	for _, err := range q.context.Events(ctx, event.FormatID(q.context.name, last)) {
		if errors.Is(err, ErrNoArchive) {
			return err
		}
		break
	}
	return nil
}

func (q question) explain(err error) error {
	if !errors.Is(err, ErrNoArchive) {
		return err
	}
	return fmt.Errorf("the input was accepted, but its turn cannot be read: %w", err)
}

// idBefore returns the id before the earliest of eventIDs; "" if there is none.
func (c *Context) idBefore(eventIDs []string) string {
	first := 0
	for _, id := range eventIDs {
		if n := event.Counter(id); first == 0 || n < first {
			first = n
		}
	}
	return event.IDBefore(c.name, first)
}
