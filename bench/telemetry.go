package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/seed-9ed7edd4/chronicle/bench/rig"
)

// scrapeInterval is that in deploy/prometheus.
const scrapeInterval = 15 * time.Second

// side is a system with or without metrics and traces, and what was measured on it, by round. Steps
// run in pairs, one on each side. A step is a round or a part of one.
type side struct {
	*rig.System
	r       *runner
	name    string
	before  func(n int) error // prepares step n
	step    func(n int) error
	scraped time.Time
	took    time.Duration // of the previous step; 0: none
	turns   int
	tokens  int
	missing int // of tokens

	signal, delta, rate, workerCPU, gatewayCPU []samples
}

func (s *side) talker(name string) *talker {
	return &talker{ctx: s.r.ctx, observations: s.r.rig.Observations, name: name + "-" + s.name, on: s.System}
}

// telemetry alternates turns or rounds between a worker and a gateway that serve metrics and export traces, and
// a worker and a gateway that do neither. All clients use the gateways.
func telemetry(r *runner) error {
	collector, err := rig.StartCollector()
	if err != nil {
		return err
	}
	defer collector.Stop()
	off, err := r.startSide("off", nil)
	if err != nil {
		return err
	}
	on, err := r.startSide("on", collector)
	if err != nil {
		return errors.Join(err, off.Stop())
	}
	err = alternate(off, on, r.times(latencyRounds)*turnsPerRound, latencies)
	if err == nil {
		err = alternate(off, on, r.times(throughputRounds), throughput)
	}
	if err := errors.Join(err, off.Stop(), on.Stop()); err != nil {
		return err
	}
	for _, s := range []*side{off, on} {
		// The end of an answer replaces tokens that a client has not received yet.
		if s.missing*100 > s.tokens {
			return fmt.Errorf("clients received %d tokens of %d with telemetry %s, less than 99 %% (repeat on an idle machine)",
				s.tokens-s.missing, s.tokens, s.name)
		}
	}
	spans, err := collector.Spans()
	if err != nil {
		return err
	}
	if spans < minSpans*on.turns {
		return fmt.Errorf("the collector has %d spans of %d turns (want at least %d for each)", spans, on.turns, minSpans)
	}
	r.report.add("telemetry_spans_per_turn", "spans", samples{float64(spans) / float64(on.turns)})
	r.report.compare("turns_per_second_50", compareRounds("turns/s", off.rate, on.rate))
	r.report.compare("signal_to_request_p50_ms", compare("ms", off.signal, on.signal, samples.p50))
	r.report.compare("signal_to_request_p95_ms", compare("ms", off.signal, on.signal, samples.p95))
	r.report.compare("delta_p50_ms", compare("ms", off.delta, on.delta, samples.p50))
	r.report.compare("delta_p95_ms", compare("ms", off.delta, on.delta, samples.p95))
	r.report.compare("worker_cpu_per_turn_50_ms", compare("ms", off.workerCPU, on.workerCPU, samples.mean))
	r.report.compare("gateway_cpu_per_turn_50_ms", compare("ms", off.gatewayCPU, on.gatewayCPU, samples.mean))
	return r.metricsAlone(slices.Concat(off.workerCPU...).mean() + slices.Concat(off.gatewayCPU...).mean())
}

// metricsAlone measures what metrics cost without traces, as a share of the CPU (ms) that a worker and a gateway
// use per turn without metrics. The cost is too small for a comparison of two systems, so it comes from a CPU profile.
func (r *runner) metricsAlone(cpu float64) (err error) {
	system, err := r.rig.StartMetered(r.ctx, "telemetry-metered")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, system.Stop()) }()
	const contexts, turns = 50, 2
	talkers := make([]*talker, contexts)
	for i := range talkers {
		talkers[i] = &talker{ctx: r.ctx, observations: r.rig.Observations, name: fmt.Sprintf("telemetry-%d-metered", i), on: system}
	}
	talk := func(round, turns int) error {
		say := func(key string) rig.Message { return message(fmt.Sprintf("%s-%d", key, round)) }
		_, _, err := talkAtOnce(contexts, turns, say, func(i int) *talker { return talkers[i] })
		return err
	}
	if err := talk(-1, 1); err != nil {
		return err
	}
	rounds := r.times(metricsRounds)
	if err := system.Scrape(r.ctx); err != nil { // so that the profile does not include the observations of the warm-up
		return err
	}
	scraped := time.Now()
	used, samplesOfMetrics, err := system.MetricsCPU(func() error {
		for round := range rounds {
			if err := talk(round, turns); err != nil {
				return err
			}
			if time.Since(scraped) < scrapeInterval {
				continue
			}
			scraped = time.Now()
			if err := system.Scrape(r.ctx); err != nil {
				return err
			}
		}
		return system.Scrape(r.ctx)
	})
	if err != nil {
		return err
	}
	if samplesOfMetrics == 0 {
		return errors.New("the CPU profile has no sample in functions of metrics")
	}
	cost := float64(used) / float64(time.Millisecond) / float64(contexts*turns*rounds)
	r.report.add("metrics_profile_samples", "samples", samples{float64(samplesOfMetrics)})
	r.report.add("metrics_cpu_per_turn_us", "us", samples{cost * 1000})
	r.report.add("metrics_cpu_percent", "%", samples{cost / cpu * 100})
	return nil
}

// minSpans of a turn: the request to the gateway, the update, the activity and the model call.
const minSpans = 4

func (r *runner) startSide(name string, collector *rig.Collector) (*side, error) {
	system, err := r.rig.StartSystem(r.ctx, "telemetry-"+name, collector)
	return &side{System: system, r: r, name: name}, err
}

// alternate runs pairs of steps. The order within a pair alternates, too. Prepare sets before and step of each side.
func alternate(off, on *side, pairs int, prepare func(*side)) error {
	order := []*side{off, on}
	for _, s := range order {
		prepare(s)
		s.took = 0
	}
	for n := range pairs {
		for _, s := range order {
			if err := s.before(n); err != nil {
				return err
			}
			began, scraped := time.Now(), s.scrapeIfDue()
			err := s.step(n)
			s.took = time.Since(began)
			if err := errors.Join(err, <-scraped); err != nil {
				return err
			}
		}
		slices.Reverse(order)
	}
	return nil
}

// scrapeIfDue reads the metrics at a random time of the next step, because the scrapes of Prometheus are independent
// of the messages. The time is within three quarters of the duration of the previous step, so that the next step
// contains the whole scrape. The channel receives the error of the scrape, or nil.
func (s *side) scrapeIfDue() <-chan error {
	ended := make(chan error, 1)
	if s.took == 0 || time.Since(s.scraped) < scrapeInterval {
		ended <- nil
		return ended
	}
	s.scraped = time.Now()
	time.AfterFunc(rand.N(s.took*3/4), func() { ended <- s.Scrape(s.r.ctx) })
	return ended
}

const (
	latencyRounds    = 360
	turnsPerRound    = 12 // of latencies
	throughputRounds = 220
	metricsRounds    = 120
)

// latencies measures turns one after the other. A step is one turn, so that bursts of other load affect both sides.
// Most answers have one token, because the time to the request needs more samples than the delays of tokens, and such
// a turn takes a third of the time.
func latencies(s *side) {
	const long, each = 4, 25 * turnsPerRound // long answers of a round, and turns of a context
	var talker *talker
	s.before = func(n int) error {
		if n%turnsPerRound == long {
			s.took = 0 // this turn is shorter than the previous one
		}
		if n%each != 0 {
			return nil
		}
		talker = s.talker(fmt.Sprintf("telemetry-alone-%d", n))
		for i := range warmUp {
			if _, err := talker.turn(message(fmt.Sprintf("%s-warm-%d", talker.name, i))); err != nil {
				return err
			}
		}
		return nil
	}
	s.step = func(n int) error {
		inRound := n % turnsPerRound
		if inRound == 0 {
			s.signal, s.delta = append(s.signal, nil), append(s.delta, nil)
		}
		m := message(fmt.Sprintf("%s-%d", talker.name, n))
		if inRound >= long {
			m.Tokens = 1
		}
		done, err := talker.turn(m)
		if err != nil {
			return err
		}
		s.turns++
		last := len(s.signal) - 1
		s.signal[last].add(done.toRequest)
		if m.Tokens > 1 {
			s.missing += m.Tokens - len(done.delays)
			s.tokens += m.Tokens
			s.delta[last].add(done.delays...)
		}
		return nil
	}
}

// throughput has 50 contexts talk concurrently.
func throughput(s *side) {
	const contexts, turns, each = 50, 2, 80 // each: rounds of a context
	talkers := make([]*talker, contexts)
	talk := func(round, turns int) (float64, error) {
		say := func(key string) rig.Message { return message(fmt.Sprintf("%s-%d", key, round)) }
		done, took, err := talkAtOnce(contexts, turns, say, func(i int) *talker { return talkers[i] })
		s.turns += len(done)
		return float64(len(done)) / took.Seconds(), err
	}
	s.before = func(n int) error {
		if n%each != 0 {
			return nil
		}
		for i := range talkers {
			talkers[i] = s.talker(fmt.Sprintf("telemetry-%d-%d", n, i))
		}
		_, err := talk(-1, 1)
		return err
	}
	s.step = func(n int) error {
		workerBefore, gatewayBefore, err := s.CPU()
		if err != nil {
			return err
		}
		rate, err := talk(n, turns)
		if err != nil {
			return err
		}
		workerAfter, gatewayAfter, err := s.CPU()
		perTurn := func(used time.Duration) samples {
			return samples{float64(used) / float64(time.Millisecond) / (contexts * turns)}
		}
		s.rate = append(s.rate, samples{rate})
		s.workerCPU = append(s.workerCPU, perTurn(workerAfter-workerBefore))
		s.gatewayCPU = append(s.gatewayCPU, perTurn(gatewayAfter-gatewayBefore))
		return err
	}
}
