package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/formats/chat"
	"github.com/seed-9ed7edd4/chronicle/test/rig"
)

// measured are the turns at which the history is measured, each with the nine turns around it.
var measured = []int{10, 300, 4990}

func isMeasured(turn int) bool {
	return slices.ContainsFunc(measured, func(at int) bool { return turn > at-5 && turn <= at+5 })
}

// long has a conversation of 5,000 turns over many runs, measures its histories, and continues it on a new worker.
func long(r *runner) error {
	turns, compared := 5000, r.times(100)
	if r.quick {
		turns = 310
	}
	old := r.context("long")
	for i := range turns - compared {
		m := message(fmt.Sprintf("long-%d", i))
		if !isMeasured(i) {
			m.Every = 0
		}
		if _, err := old.turn(m); err != nil {
			return err
		}
	}
	if err := r.compareAges(old, compared); err != nil {
		return err
	}
	if err := r.measureHistory(old.name); err != nil {
		return err
	}
	var replay samples
	for i := range r.times(10) {
		if err := r.replaceWorker(); err != nil {
			return err
		}
		took, err := old.turn(rig.Message{Key: fmt.Sprintf("replay-%d", i), Tokens: 1})
		if err != nil {
			return err
		}
		replay.add(took.toEnd)
	}
	r.report.add("replay_ms_1000_turns", "ms", replay)
	return r.reopened()
}

// compareAges alternates turns between a long conversation and short ones.
func (r *runner) compareAges(old *talker, n int) error {
	var late, early samples
	var young *talker
	for i := range n {
		if i%10 == 0 {
			young = r.context(fmt.Sprintf("young-%d", i))
			for j := range 5 {
				if _, err := young.turn(rig.Message{Key: fmt.Sprintf("%s-grows-%d", young.name, j), Tokens: 1}); err != nil {
					return err
				}
			}
		}
		aged, err := old.turn(message(fmt.Sprintf("old-%d", i)))
		if err != nil {
			return err
		}
		fresh, err := young.turn(message(fmt.Sprintf("young-%d", i)))
		if err != nil {
			return err
		}
		late.add(aged.toRequest)
		early.add(fresh.toRequest)
	}
	r.report.add("signal_to_request_turn_10_ms", "ms", early)
	if !r.quick {
		r.report.add("signal_to_request_turn_5000_ms", "ms", late)
	}
	return nil
}

func (r *runner) measureHistory(name string) error {
	history, err := r.history(name)
	if err != nil {
		return err
	}
	var entries samples
	turns := turnsOf(history)
	for _, at := range measured {
		if at+5 >= len(turns) {
			continue
		}
		var overheads samples
		for _, turn := range turns[at-4 : at+6] {
			overhead, err := overheadOf(turn)
			if err != nil {
				return err
			}
			overheads = append(overheads, float64(overhead))
			entries = append(entries, float64(len(turn)))
		}
		r.report.add(fmt.Sprintf("history_bytes_per_turn_%d", at), "bytes", overheads)
	}
	r.report.add("history_events_per_turn", "events", entries)
	return nil
}

// reopened closes and reopens a context of 10,000 events, and exports it.
func (r *runner) reopened() error {
	ctx, cancel := context.WithTimeout(r.ctx, 10*time.Minute)
	defer cancel()
	t := r.context("reopened")
	c, err := r.Contexts.Open(t.name)
	if err != nil {
		return err
	}
	for n := 0; n < 10_000; n += event.MaxInputEvents {
		notes := make([]event.Event, event.MaxInputEvents)
		for i := range notes {
			notes[i] = note(fmt.Sprintf("This is note %d, and it wants no answer.", n+i))
		}
		if _, err := c.Send(ctx, notes...); err != nil {
			return err
		}
	}
	var reopen, export samples
	for range r.times(50) {
		if err := t.close(); err != nil {
			return err
		}
		began := time.Now()
		if err := t.reopen(); err != nil {
			return err
		}
		reopen.add(time.Since(began))
	}
	if err := t.close(); err != nil {
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
		if n < 10_000 {
			return fmt.Errorf("context %s has only %d events", t.name, n)
		}
		export = append(export, float64(n)/time.Since(began).Seconds())
	}
	r.report.add("reopen_ms_10000_events", "ms", reopen)
	r.report.add("export_events_per_second", "events/s", export)
	return nil
}
