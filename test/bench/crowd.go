package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/seed-9ed7edd4/chronicle/test/rig"
)

// side is one of the two that crowd compares.
type side struct {
	name   string // prefix of metrics
	talker func(name string) *talker
	worker int // process id
	rate   samples
	signal samples
	delta  samples
	cpu    map[string]*samples // ms per turn, by process
}

// crowd alternates rounds of 50 bare loops and of 50 contexts that talk concurrently from their first message on.
// The second round of a pair tends to be slower, so their order alternates, too.
func crowd(r *runner) error {
	const contexts = 50
	turns := r.times(10)
	order := []*side{
		{name: "bare_", talker: r.bareLoop, worker: r.Bare.PID()},
		{name: "", talker: r.context, worker: r.worker.PID()},
	}
	bare, ours := order[0], order[1]
	for round := range r.times(4) / 2 * 2 {
		for _, s := range order {
			if err := s.talk(r, contexts, turns, round); err != nil {
				return err
			}
		}
		slices.Reverse(order)
	}
	for _, s := range []*side{ours, bare} {
		r.report.add(s.name+"turns_per_second_50", "turns/s", s.rate)
		r.report.add(s.name+"signal_to_request_50_ms", "ms", s.signal)
	}
	r.report.add("delta_50_saturated_ms", "ms", ours.delta)
	// On one machine, their sum bounds the turns per second. The clients send, and follow the contexts.
	for _, process := range []string{"server", "worker", "clients"} {
		for _, s := range []*side{ours, bare} {
			if used := s.cpu[process]; used != nil {
				r.report.add(fmt.Sprintf("%s%s_cpu_per_turn_50_ms", s.name, process), "ms", *used)
			}
		}
	}
	return nil
}

func (s *side) talk(r *runner, contexts, turns, round int) error {
	processes := map[string]int{"worker": s.worker, "clients": os.Getpid()}
	if pid, err := r.ServerPID(); err == nil {
		processes["server"] = pid
	}
	before, err := cpuOf(processes)
	if err != nil {
		return err
	}
	done, took, err := talkAtOnce(contexts, turns, message, func(i int) *talker {
		return s.talker(fmt.Sprintf("%scrowd-%d-%d", s.name, round, i))
	})
	if err != nil {
		return err
	}
	after, err := cpuOf(processes)
	if s.cpu == nil {
		s.cpu = map[string]*samples{}
	}
	for process := range processes {
		if s.cpu[process] == nil {
			s.cpu[process] = &samples{}
		}
		s.cpu[process].add((after[process] - before[process]) / time.Duration(len(done)))
	}
	s.rate = append(s.rate, float64(len(done))/took.Seconds())
	for _, turn := range done {
		s.signal.add(turn.toRequest)
		s.delta.add(turn.delays...)
	}
	return err
}

func cpuOf(processes map[string]int) (map[string]time.Duration, error) {
	used := map[string]time.Duration{}
	var errs []error
	for name, pid := range processes {
		var err error
		used[name], err = rig.CPU(pid)
		errs = append(errs, err)
	}
	return used, errors.Join(errs...)
}

// streams has 50 contexts stream long answers concurrently, then 50 direct clients. It evaluates the middle of the
// answers, when no turn starts or ends; crowd measures turns.
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
		for i := range answers {
			r.Ask(long(fmt.Sprintf("direct-%d", i)))
		}
		for i := range answers {
			read, err := r.await(rig.Ended, long(fmt.Sprintf("direct-%d", i)).Key)
			if err != nil {
				return err
			}
			direct.add(middle(read.Delays)...)
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
