package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/formats/chat"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// archived reopens a closed context with 10,000 events, exports it, and forks it and a
// context with 100 events.
func archived(r *runner) error {
	ctx, cancel := context.WithTimeout(r.ctx, 10*time.Minute)
	defer cancel()
	c, err := r.rig.Contexts.Open("archived")
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
	for range r.times(50) {
		if err := r.closeContext(ctx, c); err != nil {
			return err
		}
		began := time.Now()
		sent, err := c.Send(ctx, notes(1)...)
		if err != nil {
			return err
		}
		if len(sent.EventIDs) == 0 {
			return fmt.Errorf("context %s did not reopen in time to record the note by an update", c.Name())
		}
		if n := event.Counter(sent.EventIDs[0]); n <= inputs*each {
			return fmt.Errorf("context %s lost events: its new note is event %d, but it had %d events", c.Name(), n, inputs*each)
		}
		reopen.add(time.Since(began))
	}
	if err := r.closeContext(ctx, c); err != nil {
		return err
	}
	for range r.times(10) {
		n := 0
		log := func(yield func(event.Event, error) bool) {
			for e, err := range c.Events(ctx, "") {
				if n++; !yield(e, err) {
					return
				}
			}
		}
		began := time.Now()
		if _, err := chat.Write(io.Discard, chat.JSONL, log, nil); err != nil {
			return err
		}
		export = append(export, float64(n)/time.Since(began).Seconds())
	}
	r.report.add("reopen_ms_10000_events", "ms", reopen)
	r.report.add("export_events_per_second", "events/s", export)

	// Like the large context, this one has many runs.
	few, err := r.rig.Contexts.Open("archived-few")
	if err != nil {
		return err
	}
	const fewEvents = 100
	for i := range r.times(10) + 1 {
		input := notes(1)
		if i == 0 {
			input = notes(fewEvents)
		}
		if _, err := few.Send(ctx, input...); err != nil {
			return err
		}
		if err := r.closeContext(ctx, few); err != nil {
			return err
		}
	}
	var short, long samples
	for i := range r.times(20) {
		if err := r.fork(ctx, few, fewEvents, i, &short); err != nil {
			return err
		}
		if err := r.fork(ctx, c, inputs*each, i, &long); err != nil {
			return err
		}
	}
	r.report.add("fork_ms_100_events", "ms", short)
	r.report.add("fork_ms_10000_events", "ms", long)
	return nil
}

// Notes trigger no turn.
func notes(n int) []event.Event {
	no := false
	notes := make([]event.Event, n)
	for i := range notes {
		notes[i] = event.New(event.UserMessage{Content: fmt.Sprintf("This is note %d, and it wants no answer.", i), TriggersTurn: &no})
	}
	return notes
}

func (r *runner) fork(ctx context.Context, c *client.Context, at, number int, took *samples) error {
	fork, err := r.rig.Contexts.Open(fmt.Sprintf("%s-fork-%d", c.Name(), number))
	if err != nil {
		return err
	}
	began := time.Now()
	if err := c.Fork(ctx, event.FormatID(c.Name(), at), fork.Name()); err != nil {
		return err
	}
	took.add(time.Since(began))
	// Its worker must be idle before the next measurement.
	_, err = fork.State(ctx)
	return err
}

// closeContext returns when the run has ended and is archived.
func (r *runner) closeContext(ctx context.Context, c *client.Context) error {
	if err := c.Close(ctx, "measured"); err != nil {
		return err
	}
	return r.rig.Temporal.GetWorkflow(ctx, wire.WorkflowID(c.Name()), "").Get(ctx, nil)
}
