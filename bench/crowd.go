package main

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seed-9ed7edd4/chronicle/bench/rig"
)

// crowd alternates rounds of 50 bare loops and of 50 contexts that talk concurrently from their
// first message on.
func crowd(r *runner) error {
	const contexts = 50
	rounds, turns := 3, r.times(10)
	if r.quick {
		rounds = 1
	}
	var rate, bareRate, signal, bareSignal, delta, server, bareServer samples
	for round := range rounds {
		started, _ := r.rig.ServerCPU()
		bare, took, err := talkAtOnce(contexts, turns, message, func(i int) *talker {
			return r.bareLoop(fmt.Sprintf("bare-crowd-%d-%d", round, i))
		})
		if err != nil {
			return err
		}
		bareRate = append(bareRate, float64(len(bare))/took.Seconds())
		between, _ := r.rig.ServerCPU()
		ours, took, err := talkAtOnce(contexts, turns, message, func(i int) *talker {
			return r.context(fmt.Sprintf("crowd-%d-%d", round, i))
		})
		if err != nil {
			return err
		}
		rate = append(rate, float64(len(ours))/took.Seconds())
		if ended, ok := r.rig.ServerCPU(); ok {
			bareServer.add((between - started) / time.Duration(len(bare)))
			server.add((ended - between) / time.Duration(len(ours)))
		}
		for i := range ours {
			signal.add(ours[i].toRequest)
			bareSignal.add(bare[i].toRequest)
			delta.add(ours[i].delays...)
		}
	}
	r.report.add("turns_per_second_50", "turns/s", rate)
	r.report.add("bare_turns_per_second_50", "turns/s", bareRate)
	r.report.add("signal_to_request_50_ms", "ms", signal)
	r.report.add("bare_signal_to_request_50_ms", "ms", bareSignal)
	r.report.add("delta_50_saturated_ms", "ms", delta)
	// On one machine, the CPU time of the server bounds the turns per second.
	r.report.add("server_cpu_per_turn_50_ms", "ms", server)
	r.report.add("bare_server_cpu_per_turn_50_ms", "ms", bareServer)
	return nil
}

// streams has 50 contexts stream long answers concurrently, then 50 direct clients. It
// evaluates the middle of the answers, when no turn starts or ends; crowd measures turns.
func streams(r *runner) error {
	const answers, length = 50, 600
	talkers := make([]*talker, answers)
	for i := range talkers {
		talkers[i] = r.context(fmt.Sprintf("stream-%d", i))
		if _, err := talkers[i].turn(message(fmt.Sprintf("begin-stream-%d", i))); err != nil {
			return err
		}
	}
	var ours, direct samples
	for round := range r.times(3) {
		long := func(key string) rig.Message {
			return rig.Message{Key: fmt.Sprintf("%s-%d", key, round), Tokens: length, Every: every}
		}
		said, _, err := talkAtOnce(answers, 1, long, func(i int) *talker { return talkers[i] })
		if err != nil {
			return err
		}
		for _, turn := range said {
			ours.add(middle(turn.delays)...)
		}
		read, err := r.readAtOnce(answers, long)
		if err != nil {
			return err
		}
		for _, delays := range read {
			direct.add(middle(delays)...)
		}
	}
	r.report.add("delta_50_ms", "ms", ours)
	r.report.add("direct_delta_50_ms", "ms", direct)
	return nil
}

func middle(delays []time.Duration) []time.Duration {
	third := len(delays) / 3
	return delays[third : len(delays)-third]
}

// readAtOnce has n direct clients read an answer each and returns their token delays.
func (r *runner) readAtOnce(n int, say func(key string) rig.Message) ([][]time.Duration, error) {
	ask := func(i int) rig.Message { return say(fmt.Sprintf("direct-%d", i)) }
	for i := range n {
		if err := r.rig.Direct.Send(ask(i)); err != nil {
			return nil, err
		}
	}
	read := make([][]time.Duration, n)
	for i := range n {
		ended, err := r.rig.Observations.Await(r.ctx, rig.Ended, ask(i).Key)
		if err != nil {
			return nil, err
		}
		read[i] = ended.Delays
	}
	return read, nil
}

// Each message has its own key.
func talkAtOnce(n, turns int, say func(key string) rig.Message, talker func(i int) *talker) ([]turn, time.Duration, error) {
	began := time.Now()
	var wg sync.WaitGroup
	out := make([][]turn, n)
	errs := make(chan error, n)
	for i := range n {
		wg.Go(func() {
			t := talker(i)
			for j := range turns {
				done, err := t.turn(say(fmt.Sprintf("%s-%d", t.name, j)))
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
	return slices.Concat(out...), took, <-errs
}

// memory has 500 contexts talk concurrently in three rounds on a new worker. It also checks
// that all turns complete.
func memory(r *runner) error {
	contexts := r.times(500)
	if err := r.replaceWorker(); err != nil {
		return err
	}
	talkers := make([]*talker, contexts)
	for i := range talkers {
		talkers[i] = r.context(fmt.Sprintf("many-%d", i))
	}
	var peak, after samples
	for round := range 3 {
		stop := make(chan struct{})
		highest := make(chan float64, 1)
		go func() { highest <- peakMemory(r.worker, stop) }()
		say := func(key string) rig.Message { return message(fmt.Sprintf("%s-%d", key, round)) }
		_, _, err := talkAtOnce(contexts, 1, say, func(i int) *talker { return talkers[i] })
		close(stop)
		peak = append(peak, <-highest)
		after = append(after, memoryOf(r.worker))
		if err != nil {
			return err
		}
	}
	r.report.add("worker_rss_500_mb", "MB", peak)
	// The growth from the first round to the last.
	r.report.add("worker_rss_500_growth_mb", "MB", samples{after[len(after)-1] - after[0]})
	return nil
}

func (r *runner) replaceWorker(args ...string) error {
	if err := r.worker.Stop(); err != nil {
		return err
	}
	var err error
	r.worker, err = r.rig.StartWorker(r.ctx, rig.WorkerOptions{Args: args})
	return err
}

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

// memoryOf returns a worker's memory in MB; 0 if it has exited. Its turns then fail.
func memoryOf(w *rig.Worker) float64 {
	bytes, _ := w.RSS()
	return float64(bytes) / 1e6
}
