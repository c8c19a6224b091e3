package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/exchange"
	"github.com/seed-9ed7edd4/chronicle/session"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// archived opens a closed context of 10,000 events again, exports it, and forks it
// and one of 100 events.
func archived(l *lab) error {
	ctx, cancel := context.WithTimeout(l.ctx, 10*time.Minute)
	defer cancel()
	c, err := l.rig.Contexts.Open("archived")
	if err != nil {
		return err
	}
	const inputs, each = 10, event.MaxInputEvents
	for range inputs {
		if _, err := c.Send(ctx, notes(each)...); err != nil {
			return err
		}
	}
	var reopen, export samples
	for range l.times(10) {
		if err := l.closeContext(ctx, c); err != nil {
			return err
		}
		began := time.Now()
		sent, err := c.Send(ctx, notes(1)...)
		if err != nil {
			return err
		}
		if len(sent.EventIDs) == 0 {
			return fmt.Errorf("context %s was not open again within the patience of its sender", c.Name())
		}
		if n := event.Counter(sent.EventIDs[0]); n <= inputs*each {
			return fmt.Errorf("the note is event %d of context %s, which had %d", n, c.Name(), inputs*each)
		}
		reopen.add(time.Since(began))
	}
	if err := l.closeContext(ctx, c); err != nil {
		return err
	}
	for range l.times(10) {
		n := 0
		log := func(yield func(event.Event, error) bool) {
			for e, err := range c.Events(ctx, "") {
				if n++; !yield(e, err) {
					return
				}
			}
		}
		began := time.Now()
		if err := exchange.Write(io.Discard, exchange.JSONL, log); err != nil {
			return err
		}
		export = append(export, float64(n)/time.Since(began).Seconds())
	}
	l.report.add("reopen_ms_10000_events", "ms", reopen)
	l.report.add("export_events_per_second", "events/s", export)

	few, err := l.rig.Contexts.Open("archived-few")
	if err != nil {
		return err
	}
	const fewEvents = 100
	if _, err := few.Send(ctx, notes(fewEvents)...); err != nil {
		return err
	}
	if err := l.closeContext(ctx, few); err != nil {
		return err
	}
	for _, origin := range []struct {
		context *session.Context
		events  int
	}{{few, fewEvents}, {c, inputs * each}} {
		forks, err := l.forks(ctx, origin.context, origin.events)
		if err != nil {
			return err
		}
		l.report.add(fmt.Sprintf("fork_ms_%d_events", origin.events), "ms", forks)
	}
	return nil
}

// notes are so many messages that want no answer.
func notes(n int) []event.Event {
	no := false
	notes := make([]event.Event, n)
	for i := range notes {
		notes[i] = event.New(event.UserMessage{Content: fmt.Sprintf("This is note %d, and it wants no answer.", i), TriggersTurn: &no})
	}
	return notes
}

// forks measures how long it takes until a fork at an event is there.
func (l *lab) forks(ctx context.Context, c *session.Context, at int) (forks samples, err error) {
	for i := range l.times(10) {
		fork, err := l.rig.Contexts.Open(fmt.Sprintf("%s-fork-%d", c.Name(), i))
		if err != nil {
			return nil, err
		}
		began := time.Now()
		if err := c.Fork(ctx, event.FormatID(c.Name(), at), fork.Name()); err != nil {
			return nil, err
		}
		forks.add(time.Since(began))
		// Its worker is done with it before the next one is measured.
		if _, err := fork.State(ctx); err != nil {
			return nil, err
		}
	}
	return forks, nil
}

// closeContext closes a context and waits until its run has ended, and so is
// archived.
func (l *lab) closeContext(ctx context.Context, c *session.Context) error {
	if err := c.Close(ctx, "measured"); err != nil {
		return err
	}
	return l.rig.Temporal.GetWorkflow(ctx, wire.WorkflowID(c.Name()), "").Get(ctx, nil)
}
