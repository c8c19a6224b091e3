package main

import (
	"fmt"
	"time"

	"github.com/seed-9ed7edd4/chronicle/test/rig"
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
		asked := message(fmt.Sprintf("direct-%d", i))
		r.Ask(asked)
		read, err := r.await(rig.Ended, asked.Key)
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

// interrupt sends a second message at a varying time during the answer to the first.
func interrupt(r *runner) error {
	context := r.context("interrupted")
	var toAbort, toFirst samples
	for i := range r.times(100) + warmUp {
		first, second := fmt.Sprintf("first-%d", i), fmt.Sprintf("second-%d", i)
		if _, err := context.say(message(first)); err != nil {
			return err
		}
		if _, err := r.await(rig.Requested, first); err != nil {
			return err
		}
		// From 2 to 62 ms of the answer's 95 ms.
		time.Sleep(time.Duration(2+i*13%61) * time.Millisecond)
		sent, err := context.say(message(second))
		if err != nil {
			return err
		}
		ended, err := r.await(rig.Ended, second)
		if err != nil {
			return err
		}
		aborted, ok := r.Observations.Find(rig.Aborted, first)
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

// failover kills the worker that streams an answer while another one waits, and measures the time until the model
// receives the request again.
func failover(r *runner) error {
	var delays samples
	for i := range r.times(10) {
		t := r.context(fmt.Sprintf("failover-%d", i))
		m := rig.Message{Key: t.name, Tokens: 1000, Every: 50 * time.Millisecond}
		if _, err := t.say(m); err != nil {
			return err
		}
		if _, err := r.await(rig.Requested, m.Key); err != nil {
			return err
		}
		other, err := r.StartWorker(r.ctx)
		if err != nil {
			return err
		}
		died := time.Now()
		r.worker.Kill()
		r.worker = other
		again, err := r.await(rig.Requested, rig.RepeatKey(m.Key, 2))
		if err != nil {
			return err
		}
		delays.add(again.At.Sub(died))
		opened, err := r.Contexts.Open(t.name)
		if err == nil {
			err = opened.Interrupt(r.ctx)
		}
		if err == nil {
			_, err = r.await(rig.Ended, m.Key)
		}
		if err != nil {
			return err
		}
	}
	r.report.add("worker_death_to_request_ms", "ms", delays)
	return nil
}
