package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// Ask sends events and yields what follows from them, until their turn is
// over: the events themselves as recorded, live deltas, the answer, and last
// the event that ended the turn: LLMRequestCompleted, LLMRequestInterrupted,
// LLMRequestFailed or InputRejected, or a SessionStarted when the run that was
// to answer was terminated. When none of the events wants an answer it ends after
// they are recorded. Events that are in the log already are yielded from there,
// with what followed from them.
//
// After a reset of the run in the middle of the turn, Ask yields the turn again
// from the reset point on, as the new run records it. The error is ErrLost when the run has ended without
// recording the events, and ErrUnanswered when it has ended without answering.
func (c *Context) Ask(ctx context.Context, events ...event.Event) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		// Before anything is sent, so that the first delta is not missed.
		f, err := c.follower(ctx, true)
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
		a := asking{c, sent.ClientEventIDs, yield}
		for range maxResets {
			again, ids := a.follow(ctx, f, c.before(known))
			f.close()
			if !again {
				return
			}
			known = ids
			if f, err = c.follower(ctx, true); err != nil {
				yield(event.Event{}, err)
				return
			}
		}
		f.close()
		yield(event.Event{}, fmt.Errorf("send to context %s: %w", c.name, ErrUnanswered))
	}
}

// maxResets is how often Ask follows the turn again.
const maxResets = 4

// asking is an Ask whose events were sent.
type asking struct {
	context *Context
	ids     []string
	yield   func(event.Event, error) bool
}

// The log does not say that a run was terminated or reset, so Ask looks for that
// when the turn has been silent for firstLook, and then less and less often.
const (
	firstLook = 2 * time.Second
	maxLook   = 30 * time.Second
)

// follow follows the log from an event until the turn is over. It returns true
// and ids of events when the log has to be followed again from there.
func (a asking) follow(ctx context.Context, f *follower, from string) (again bool, known []string) {
	entries := Entries(f.ctx, f.follow(from), 0)
	defer func() {
		f.cancel()
		for range entries {
		}
	}()
	t := newTurn(a.ids)
	last := event.Counter(from)
	wait := firstLook
	silence := time.NewTimer(wait)
	defer silence.Stop()
	looks := make(chan look, 1)
	isLooking := false
	lookNow := func() {
		if !isLooking {
			isLooking = true
			go func() {
				d, err := a.context.Delivery(f.ctx, a.ids...)
				looks <- look{d, err}
			}()
		}
	}
	for {
		select {
		case entry, ok := <-entries:
			if !ok {
				if err := ctx.Err(); err != nil {
					a.yield(event.Event{}, err)
				}
				return false, nil
			}
			if entry.Err != nil {
				a.yield(entry.Event, entry.Err)
				return false, nil
			}
			last = cmp.Or(event.Counter(entry.Event.ID), last)
			mine, over := t.see(entry.Event)
			if mine && !a.yield(entry.Event, nil) || over {
				return false, nil
			}
			if mine {
				wait = firstLook
				silence.Reset(wait)
			} else if entry.Event.Tag() == event.TagSessionStarted {
				lookNow() // the run that was sent the events may have been terminated
			}
		case <-silence.C:
			wait = min(2*wait, maxLook)
			silence.Reset(wait)
			lookNow()
		case found := <-looks:
			isLooking = false
			known, err := a.judge(ctx, found, &t, last)
			if err != nil {
				a.yield(event.Event{}, fmt.Errorf("send to context %s: %w", a.context.name, err))
				return false, nil
			}
			if known != nil {
				return true, known
			}
		}
	}
}

// look is what a context says of events that were sent to it.
type look struct {
	delivery Delivery
	err      error
}

// judge decides whether a turn that was followed up to an event can still go on.
// It returns ids of events when the log has to be followed again from there, and
// an error when the turn never ends.
func (a asking) judge(ctx context.Context, found look, t *turn, last int) (known []string, err error) {
	if errors.Is(found.err, ErrNoContext) {
		return nil, ErrLost
	}
	if found.err != nil {
		return nil, nil // no worker, or no server: both may come back
	}
	d := found.delivery
	ids, isWhole := d.ids(a.ids)
	isCaughtUp := last >= event.Counter(d.LastEventID)
	if !isWhole && (d.Pending || !isCaughtUp) {
		return nil, nil
	}
	if !isWhole {
		// It may be that newer events made the context forget these.
		if d, err = a.context.pastDelivery(ctx, a.ids); err != nil {
			return nil, err
		}
		if ids, isWhole = d.ids(a.ids); !isWhole {
			return nil, ErrLost
		}
		d.Status, d.Ended = found.delivery.Status, found.delivery.Ended
	}
	if len(t.waiting) > 0 {
		if isCaughtUp {
			return ids, nil // a reset has put them before what was read
		}
		return nil, nil
	}
	if d.Status == wire.StatusAnswering || !isCaughtUp {
		return nil, nil
	}
	// Nothing answers any more. After a reset the answer may be before what was read.
	past := newTurn(a.ids)
	for e, err := range a.context.Events(ctx, a.context.before(ids)) {
		if err != nil {
			return nil, err
		}
		if _, over := past.see(e); over {
			return ids, nil
		}
	}
	return nil, ErrUnanswered
}

// ids are the ids in the log of events with client ids; isWhole says that all of
// them are there.
func (d Delivery) ids(clientEventIDs []string) (ids []string, isWhole bool) {
	for _, id := range clientEventIDs {
		if eventID, ok := d.EventIDs[id]; ok {
			ids = append(ids, eventID)
		}
	}
	return ids, len(ids) == len(clientEventIDs)
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
	// waiting are the client ids of the events that were not seen yet, and seen are
	// those that were.
	waiting []string
	seen    []seenEvent
	// last is the counter of the newest event of the log.
	last int
	// through is the counter of the newest event that the newest request had
	// seen.
	through int
}

// seenEvent is an event that was sent and is in the log.
type seenEvent struct {
	clientEventID string
	counter       int
	triggers      bool // it wants an answer
}

// newTurn is the turn of events with client ids. An id that occurs twice is one
// event, since the context takes it once.
func newTurn(ids []string) turn {
	var t turn
	for _, id := range ids {
		if !slices.Contains(t.waiting, id) {
			t.waiting = append(t.waiting, id)
		}
	}
	return t
}

// see reports whether the event belongs to the turn and whether it is its last.
func (t *turn) see(e event.Event) (mine, over bool) {
	if counter := event.Counter(e.ID); counter > 0 {
		if counter <= t.last {
			t.goBack(counter)
		}
		t.last = counter
	}
	isBegun := len(t.seen) > 0
	if e.Tag() == event.TagInputRejected {
		isMine := slices.Contains(t.waiting, e.ClientEventID)
		return isMine || isBegun, isMine
	}
	if i := slices.Index(t.waiting, e.ClientEventID); i >= 0 && e.ClientEventID != "" {
		t.waiting = slices.Delete(t.waiting, i, i+1)
		m, ok := e.Body.(event.UserMessage)
		t.seen = append(t.seen, seenEvent{e.ClientEventID, event.Counter(e.ID), ok && m.Triggers()})
		return true, len(t.waiting) == 0 && t.trigger() == 0
	}
	switch body := e.Body.(type) {
	case event.LLMRequestStarted:
		t.through = event.Counter(body.ThroughEventID)
	case event.LLMRequestCompleted:
		return isBegun, t.answeredBy(cmp.Or(event.Counter(body.ThroughEventID), t.through))
	case event.LLMRequestFailed:
		return isBegun, t.answeredBy(cmp.Or(event.Counter(body.ThroughEventID), t.through))
	case event.LLMRequestInterrupted:
		return isBegun, t.answeredBy(cmp.Or(event.Counter(body.ThroughEventID), t.through))
	case event.SessionStarted:
		// In another run: that of the turn was terminated, and nobody answers.
		return isBegun, isBegun && body.PreviousRunID != ""
	}
	return isBegun, false
}

// goBack forgets what was in the log from an event on: the run was reset, and the log
// goes on with other events.
func (t *turn) goBack(counter int) {
	t.seen = slices.DeleteFunc(t.seen, func(e seenEvent) bool {
		if e.counter < counter {
			return false
		}
		t.waiting = append(t.waiting, e.clientEventID)
		return true
	})
}

// trigger is the counter of the newest event that wants an answer; 0 when none does.
func (t *turn) trigger() (counter int) {
	for _, e := range t.seen {
		if e.triggers {
			counter = max(counter, e.counter)
		}
	}
	return counter
}

func (t *turn) answeredBy(through int) bool {
	trigger := t.trigger()
	return trigger > 0 && through >= trigger
}
