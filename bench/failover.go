package main

import (
	"fmt"
	"time"

	"github.com/seed-9ed7edd4/chronicle/bench/rig"
)

// failover kills the worker that streams an answer while another one waits, and measures the
// time until the model receives the request again.
func failover(r *runner) error {
	var delays samples
	for i := range r.times(10) {
		name := fmt.Sprintf("failover-%d", i)
		t := r.context(name)
		m := rig.Message{Key: name, Tokens: 1000, Every: 50 * time.Millisecond}
		if _, err := t.say(m); err != nil {
			return err
		}
		if _, err := t.await(rig.Requested, m.Key); err != nil {
			return err
		}
		other, err := r.rig.StartWorker(r.ctx, rig.WorkerOptions{})
		if err != nil {
			return err
		}
		died := time.Now()
		r.worker.Kill()
		r.worker = other
		again, err := t.await(rig.Requested, rig.RepeatKey(m.Key, 2))
		if err != nil {
			return err
		}
		delays.add(again.At.Sub(died))
		opened, err := r.rig.Contexts.Open(name)
		if err == nil {
			err = opened.Interrupt(r.ctx)
		}
		if err == nil {
			_, err = t.await(rig.Ended, m.Key)
		}
		if err != nil {
			return err
		}
	}
	r.report.add("worker_death_to_request_ms", "ms", delays)
	return nil
}
