package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/seed-9ed7edd4/chronicle/bench/rig"
)

// crowd has 50 contexts talk at once, from their first message on, and 50 bare
// loops before and after.
func crowd(l *lab) error {
	const contexts = 50
	rounds, turns := 3, l.times(10)
	if l.quick {
		rounds = 1
	}
	var rate, bareRate, signal, bareSignal, delta, server, bareServer samples
	for round := range rounds {
		started, _ := l.rig.ServerCPU()
		bare, took, err := talkAtOnce(contexts, turns, func(i int) *talker {
			return l.bareLoop(fmt.Sprintf("bare-crowd-%d-%d", round, i))
		})
		if err != nil {
			return err
		}
		bareRate = append(bareRate, float64(len(bare))/took.Seconds())
		between, _ := l.rig.ServerCPU()
		ours, took, err := talkAtOnce(contexts, turns, func(i int) *talker {
			return l.context(fmt.Sprintf("crowd-%d-%d", round, i))
		})
		if err != nil {
			return err
		}
		rate = append(rate, float64(len(ours))/took.Seconds())
		if ended, ok := l.rig.ServerCPU(); ok {
			bareServer.add((between - started) / time.Duration(len(bare)))
			server.add((ended - between) / time.Duration(len(ours)))
		}
		for i := range ours {
			signal.add(ours[i].toRequest)
			bareSignal.add(bare[i].toRequest)
			delta.add(ours[i].delays...)
		}
	}
	l.report.add("turns_per_second_50", "turns/s", rate)
	l.report.add("bare_turns_per_second_50", "turns/s", bareRate)
	l.report.add("signal_to_request_50_ms", "ms", signal)
	l.report.add("bare_signal_to_request_50_ms", "ms", bareSignal)
	l.report.add("delta_50_saturated_ms", "ms", delta)
	// What bounds the turns per second where all share a machine.
	l.report.add("server_cpu_per_turn_50_ms", "ms", server)
	l.report.add("bare_server_cpu_per_turn_50_ms", "ms", bareServer)
	return nil
}

// streams has 50 contexts stream a long answer at the same time, and then 50
// direct clients. What is counted is the middle of the answers, when no turn
// begins or ends: turns that do, as fast as they can, are in crowd.
func streams(l *lab) error {
	const answers, length = 50, 600
	from, to := length/3, 2*length/3
	long := func(key string) rig.Message { return rig.Message{Key: key, Tokens: length, Every: every} }
	talkers := make([]*talker, answers)
	for i := range talkers {
		talkers[i] = l.context(fmt.Sprintf("stream-%d", i))
		if _, err := talkers[i].turn(message(fmt.Sprintf("begin-stream-%d", i))); err != nil {
			return err
		}
	}
	var ours, direct samples
	for round := range l.times(3) {
		delays := make(chan []time.Duration, answers)
		errs := make(chan error, answers)
		for i, t := range talkers {
			go func() {
				said, err := t.turn(long(fmt.Sprintf("stream-%d-%d", i, round)))
				delays <- said.delays
				errs <- err
			}()
		}
		for range talkers {
			if err := <-errs; err != nil {
				return err
			}
			ours.add((<-delays)[from:to]...)
		}
		for i := range talkers {
			if err := l.rig.Direct.Send(long(fmt.Sprintf("direct-stream-%d-%d", i, round))); err != nil {
				return err
			}
		}
		for i := range talkers {
			read, err := l.rig.Notes.Await(l.ctx, rig.Ended, fmt.Sprintf("direct-stream-%d-%d", i, round))
			if err != nil {
				return err
			}
			direct.add(read.Delays[from:to]...)
		}
	}
	l.report.add("delta_50_ms", "ms", ours)
	l.report.add("direct_delta_50_ms", "ms", direct)
	return nil
}

// talkAtOnce has n talkers take turns of their own, each one turn after the
// other.
func talkAtOnce(n, turns int, talker func(i int) *talker) ([]turn, time.Duration, error) {
	began := time.Now()
	var wg sync.WaitGroup
	out := make([][]turn, n)
	errs := make(chan error, n)
	for i := range n {
		wg.Go(func() {
			t := talker(i)
			for j := range turns {
				done, err := t.turn(message(fmt.Sprintf("%s-%d", t.name, j)))
				if err != nil {
					errs <- err
					return
				}
				out[i] = append(out[i], done)
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	close(errs)
	var all []turn
	for _, turns := range out {
		all = append(all, turns...)
	}
	return all, took, <-errs
}

// memory has 500 contexts talk at once, three times over, on a worker of their
// own. That all turns come to their end is checked, too.
func memory(l *lab) error {
	contexts := l.times(500)
	if err := l.replaceWorker(); err != nil {
		return err
	}
	talkers := make([]*talker, contexts)
	for i := range talkers {
		talkers[i] = l.context(fmt.Sprintf("many-%d", i))
	}
	var peak, after samples
	for round := range 3 {
		stop := make(chan struct{})
		highest := make(chan float64, 1)
		go func() { highest <- peakMemory(l.worker, stop) }()
		var wg sync.WaitGroup
		errs := make(chan error, contexts)
		for i, t := range talkers {
			wg.Go(func() {
				if _, err := t.turn(message(fmt.Sprintf("many-%d-%d", round, i))); err != nil {
					errs <- err
				}
			})
		}
		wg.Wait()
		close(stop)
		peak = append(peak, <-highest)
		after = append(after, memoryOf(l.worker))
		close(errs)
		if err := <-errs; err != nil {
			return err
		}
	}
	l.report.add("worker_rss_500_mb", "MB", peak)
	// How much more after the last round than after the first one.
	l.report.add("worker_rss_500_growth_mb", "MB", samples{after[len(after)-1] - after[0]})
	return nil
}

// replaceWorker stops the worker and starts another.
func (l *lab) replaceWorker() error {
	if err := l.worker.Stop(); err != nil {
		return err
	}
	var err error
	l.worker, err = l.rig.StartWorker(l.ctx, rig.WorkerOptions{})
	return err
}

// peakMemory is the most memory that a worker has until stop is closed.
func peakMemory(w *rig.Worker, stop <-chan struct{}) float64 {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	peak := 0.0
	for {
		peak = max(peak, memoryOf(w))
		select {
		case <-stop:
			return peak
		case <-ticker.C:
		}
	}
}

// memoryOf is a worker's memory in MB; 0 when it is gone, which its turns tell.
func memoryOf(w *rig.Worker) float64 {
	bytes, _ := w.RSS()
	return float64(bytes) / 1e6
}
