package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/seed-9ed7edd4/chronicle/test/rig"
)

// side is one of the two that crowd compares. The samples are of rounds.
type side struct {
	name    string // prefix of metrics
	talkers []*talker
	worker  int // process id
	turns   int // so far, of each talker
	rate    samples
	signal  samples             // of turns
	delta   samples             // of deltas
	cpu     map[string]*samples // ms per turn, by process
}

// crowd alternates short rounds of 50 bare loops and of 50 contexts that talk concurrently, and compares the rounds of a
// pair, since the speed of a shared machine changes within seconds. The second round of a pair tends to be slower, so
// their order alternates, too. The first turns, which open the contexts and fill caches, are not measured.
func crowd(r *runner) error {
	const contexts, warmUp, turns = 50, 2, 3
	bare, ours := &side{name: "bare_", worker: r.Bare.PID()}, &side{worker: r.worker.PID()}
	for i := range contexts {
		bare.talkers = append(bare.talkers, r.bareLoop(fmt.Sprintf("bare_crowd-%d", i)))
		ours.talkers = append(ours.talkers, r.context(fmt.Sprintf("crowd-%d", i)))
	}
	order := []*side{bare, ours}
	for _, s := range order {
		if _, _, err := s.talk(warmUp); err != nil {
			return err
		}
	}
	for range 2 * r.times(10) {
		for _, s := range order {
			if err := s.measure(r, turns); err != nil {
				return err
			}
		}
		slices.Reverse(order)
	}
	r.report.add("turns_per_second_50", "turns/s", ours.rate)
	r.report.add("bare_turns_per_second_50", "turns/s", bare.rate)
	r.report.addRatio("turns_per_second_50_of_bare", ours.rate, bare.rate)
	r.report.add("signal_to_request_50_ms", "ms", ours.signal)
	r.report.add("bare_signal_to_request_50_ms", "ms", bare.signal)
	r.report.add("delta_50_saturated_ms", "ms", ours.delta)
	// On one machine, their sum bounds the turns per second. The clients send, and follow the contexts.
	for _, process := range []string{"server", "worker", "clients", "nats"} {
		name := process + "_cpu_per_turn_50"
		if used := ours.cpu[process]; used != nil {
			r.report.add(name+"_ms", "ms", *used)
			if of := bare.cpu[process]; of != nil {
				r.report.add("bare_"+name+"_ms", "ms", *of)
				r.report.addRatio(name+"_of_bare", *used, *of)
			}
		}
	}
	return nil
}

func (s *side) talk(turns int) ([]turn, time.Duration, error) {
	say := func(key string) rig.Message { return message(fmt.Sprintf("%s-%d", key, s.turns)) }
	s.turns += turns
	return talkAtOnce(len(s.talkers), turns, say, func(i int) *talker { return s.talkers[i] })
}

func (s *side) measure(r *runner, turns int) error {
	processes := map[string]int{"worker": s.worker, "clients": os.Getpid()}
	if pid, err := r.ServerPID(); err == nil {
		processes["server"] = pid
	}
	if s.worker != r.Bare.PID() {
		processes["nats"] = r.NATSPID()
	}
	before, err := cpuOf(processes)
	if err != nil {
		return err
	}
	done, took, err := s.talk(turns)
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
