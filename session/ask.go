package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Ask sends events and yields what follows from them, until their turn is
// over: the events themselves as recorded, live deltas, the answer, and last
// the event that ended the turn: LLMRequestCompleted, LLMRequestInterrupted,
// LLMRequestFailed or InputRejected, or a SessionStarted when the run that was
// to answer was terminated. When none of the events wants an answer it ends after
// they are recorded.
func (c *Context) Ask(ctx context.Context, events ...event.Event) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		// Before anything is sent, so that the first delta is not missed.
		f, err := c.follower(ctx, true)
		if err != nil {
			yield(event.Event{}, err)
			return
		}
		defer f.close()
		sent, err := c.Send(ctx, events...)
		if err != nil && !errors.Is(err, ErrRefused) {
			yield(event.Event{}, err)
			return
		}
		known := sent.EventIDs
		if sent.refusalID != "" {
			known = []string{sent.refusalID}
		}
		t := turn{waiting: sent.ClientEventIDs, run: sent.runID}
		next := func(runID string) (string, error) { return c.client.log.Next(ctx, c.name, runID) }
		for e, err := range f.follow(c.before(known)) {
			if err != nil {
				yield(e, err)
				return
			}
			if lost, err := t.isLost(e, next); lost || err != nil {
				yield(event.Event{}, fmt.Errorf("send to context %s: %w", c.name, cmp.Or(err, ErrLost)))
				return
			}
			mine, over := t.see(e)
			if mine && !yield(e, nil) || over {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(event.Event{}, err)
		}
	}
}

// before is the id of the event before the first of some events; "" when they are
// not known, or begin the log.
func (c *Context) before(eventIDs []string) string {
	first := 0
	for _, id := range eventIDs {
		if n := event.Counter(id); first == 0 || n < first {
			first = n
		}
	}
	if first <= 1 {
		return ""
	}
	return event.FormatID(c.name, first-1)
}

// turn finds, in a log, the turn of some events that were sent.
type turn struct {
	// run is the run that took the events, or the newest that was handed them.
	run string
	// waiting are the client ids of the events that were not seen yet.
	waiting []string
	begun   bool
	// trigger is the counter of the newest of them that wants an answer; 0
	// when none does.
	trigger int
	// through is the counter of the newest event that the newest request had
	// seen.
	through int
}

// isLost reports whether a later session has begun and the run that took the
// events has not recorded them, nor one that it has handed over to. Next is the
// run that another has handed over to; "" when there is none.
func (t *turn) isLost(e event.Event, next func(runID string) (string, error)) (bool, error) {
	started, ok := e.Body.(event.SessionStarted)
	if !ok || t.begun || t.run == "" || started.PreviousRunID == "" {
		return false, nil
	}
	for t.run != started.PreviousRunID {
		run, err := next(t.run)
		if err != nil || run == "" {
			return false, err
		}
		t.run = run
	}
	return true, nil
}

// see reports whether the event belongs to the turn and whether it is its last.
func (t *turn) see(e event.Event) (mine, over bool) {
	if e.Tag() == event.TagInputRejected && len(t.waiting) > 0 && e.ClientEventID == t.waiting[0] {
		return true, true
	}
	if i := slices.Index(t.waiting, e.ClientEventID); i >= 0 && e.ClientEventID != "" {
		t.waiting = slices.Delete(t.waiting, i, i+1)
		t.begun = true
		if m, ok := e.Body.(event.UserMessage); ok && m.Triggers() {
			t.trigger = event.Counter(e.ID)
		}
		return true, len(t.waiting) == 0 && t.trigger == 0
	}
	switch body := e.Body.(type) {
	case event.LLMRequestStarted:
		t.through = event.Counter(body.ThroughEventID)
	case event.LLMRequestCompleted:
		return t.begun, t.answeredBy(cmp.Or(event.Counter(body.ThroughEventID), t.through))
	case event.LLMRequestFailed:
		return t.begun, t.answeredBy(cmp.Or(event.Counter(body.ThroughEventID), t.through))
	case event.LLMRequestInterrupted:
		return t.begun, t.answeredBy(cmp.Or(event.Counter(body.ThroughEventID), t.through))
	case event.SessionStarted:
		// In another run: that of the turn was terminated, and nobody answers.
		return t.begun, t.begun && body.PreviousRunID != ""
	}
	return t.begun, false
}

func (t *turn) answeredBy(through int) bool { return t.trigger > 0 && through >= t.trigger }
