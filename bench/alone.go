package main

import (
	"fmt"
	"time"

	"github.com/seed-9ed7edd4/chronicle/bench/rig"
)

// warmUp is how many turns are excluded, while connections are opened and caches fill.
const warmUp = 5

// signalAlone alternates turns between a context, a bare loop and a direct client.
func signalAlone(r *runner) error {
	context, bare := r.context("alone"), r.bareLoop("bare-alone")
	var signal, bareSignal, delta, direct, whole, bareWhole samples
	for i := range r.times(150) + warmUp {
		ours, err := context.turn(message(fmt.Sprintf("alone-%d", i)))
		if err != nil {
			return err
		}
		theirs, err := bare.turn(message(fmt.Sprintf("bare-alone-%d", i)))
		if err != nil {
			return err
		}
		key := fmt.Sprintf("direct-%d", i)
		if err := r.rig.Direct.Send(message(key)); err != nil {
			return err
		}
		read, err := r.rig.Observations.Await(r.ctx, rig.Ended, key)
		if err != nil {
			return err
		}
		if i < warmUp {
			continue
		}
		signal.add(ours.toRequest)
		bareSignal.add(theirs.toRequest)
		whole.add(ours.toEnd)
		bareWhole.add(theirs.toEnd)
		delta.add(ours.delays...)
		direct.add(read.Delays...)
	}
	r.report.add("signal_to_request_ms", "ms", signal)
	r.report.add("bare_signal_to_request_ms", "ms", bareSignal)
	r.report.add("delta_ms", "ms", delta)
	r.report.add("direct_delta_ms", "ms", direct)
	r.report.add("turn_ms", "ms", whole)
	r.report.add("bare_turn_ms", "ms", bareWhole)
	return nil
}

// signalUntuned alternates turns between a context and a bare loop.
func signalUntuned(r *runner) error {
	context, bare := r.context("untuned"), r.bareLoop("bare-untuned")
	var signal, bareSignal samples
	for i := range r.times(50) + warmUp {
		ours, err := context.turn(message(fmt.Sprintf("untuned-%d", i)))
		if err != nil {
			return err
		}
		theirs, err := bare.turn(message(fmt.Sprintf("bare-untuned-%d", i)))
		if err != nil {
			return err
		}
		if i >= warmUp {
			signal.add(ours.toRequest)
			bareSignal.add(theirs.toRequest)
		}
	}
	r.report.add("untuned_signal_to_request_ms", "ms", signal)
	r.report.add("bare_untuned_signal_to_request_ms", "ms", bareSignal)
	return nil
}

// interrupt sends a second message at a varying time during the answer to the first.
func interrupt(r *runner) error {
	context := r.context("interrupted")
	var toAbort, toFirst samples
	for i := range r.times(100) + warmUp {
		first, second := fmt.Sprintf("first-%d", i), fmt.Sprintf("second-%d", i)
		if _, err := context.say(message(first)); err != nil {
			return err
		}
		if _, err := context.await(rig.Requested, first); err != nil {
			return err
		}
		// From 2 to 62 ms of the answer's 95 ms.
		time.Sleep(time.Duration(2+i*13%61) * time.Millisecond)
		sent, err := context.say(message(second))
		if err != nil {
			return err
		}
		ended, err := context.await(rig.Ended, second)
		if err != nil {
			return err
		}
		aborted, ok := r.rig.Observations.Find(rig.Aborted, first)
		if i < warmUp || !ok || aborted.At.Before(sent) {
			continue // the answer completed first
		}
		toAbort.add(aborted.At.Sub(sent))
		toFirst.add(ended.First.Sub(sent))
	}
	r.report.add("interrupt_to_abort_ms", "ms", toAbort)
	r.report.add("interrupt_to_first_chunk_ms", "ms", toFirst)
	return nil
}
