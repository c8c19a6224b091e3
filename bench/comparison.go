package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// comparison compares a statistic between rounds with and without metrics and traces.
type comparison struct {
	Off float64 `json:"off"` // of all rounds
	On  float64 `json:"on"`
	// Ratio is On / Off, or that of compareRounds. Low and High are its 95 % confidence interval.
	Ratio  float64 `json:"ratio"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Unit   string  `json:"unit"`
	Rounds int     `json:"rounds"` // of each kind
}

// compare compares a statistic of the samples of all rounds.
func compare(unit string, off, on []samples, statistic func(samples) float64) comparison {
	c := comparison{Unit: unit, Rounds: len(off), Off: statistic(slices.Concat(off...)), On: statistic(slices.Concat(on...))}
	c.Ratio = c.On / c.Off
	c.Low, c.High = interval(len(off), func(pairs []int) float64 {
		var someOff, someOn samples
		for _, pair := range pairs {
			someOff, someOn = append(someOff, off[pair]...), append(someOn, on[pair]...)
		}
		return statistic(someOn) / statistic(someOff)
	})
	return c
}

// compareRounds compares the means of the rounds. The order of the two sides alternates from pair to pair.
// Therefore, compareRounds adds up two successive pairs before it divides On by Off. The result is the median of
// these ratios. Neither bursts of other load nor a slow change of all rounds affect it much.
func compareRounds(unit string, off, on []samples) comparison {
	var offs, ons, ratios samples
	for i := range off {
		offs, ons = append(offs, off[i].mean()), append(ons, on[i].mean())
		if i%2 == 1 {
			ratios = append(ratios, (ons[i-1]+ons[i])/(offs[i-1]+offs[i]))
		}
	}
	c := comparison{Unit: unit, Rounds: len(off), Off: offs.p50(), On: ons.p50(), Ratio: ratios.p50()}
	c.Low, c.High = interval(len(ratios), func(some []int) float64 {
		var resampled samples
		for _, i := range some {
			resampled = append(resampled, ratios[i])
		}
		return resampled.p50()
	})
	return c
}

const resamples = 2000

// interval returns the 95 % confidence interval of a ratio by a paired bootstrap: it calls ratio with random indexes
// of pairs. A pair is a round without and a round with telemetry, measured at about the same time. In
// [compareRounds], each index stands for two successive pairs. Whole pairs are resampled because the samples of a
// round depend on each other.
func interval(pairs int, ratio func(some []int) float64) (low, high float64) {
	random := rand.New(rand.NewPCG(1, 2)) // the same interval for the same samples
	ratios, some := make(samples, resamples), make([]int, pairs)
	for i := range ratios {
		for k := range some {
			some[k] = random.IntN(pairs)
		}
		ratios[i] = ratio(some)
	}
	return ratios.quantile(0.025), ratios.quantile(0.975)
}

func (s samples) mean() float64 {
	sum := 0.0
	for _, each := range s {
		sum += each
	}
	return sum / float64(len(s))
}

func (s samples) p50() float64 { return s.quantile(0.5) }
func (s samples) p95() float64 { return s.quantile(0.95) }

// maxTelemetryCost is the share by which metrics and traces may worsen a measurement.
const maxTelemetryCost = 0.03

// telemetryRow is a row of the report and of docs/performance.md.
type telemetryRow struct {
	name, text string
	// atMost and atLeast are bounds of the ratio; 0: none.
	atMost, atLeast float64
}

func (t telemetryRow) verdict(c comparison) string {
	bound, met := "", false
	switch {
	case t.atMost != 0:
		bound, met = fmt.Sprintf("<= %.2f", t.atMost), c.Ratio <= t.atMost
	case t.atLeast != 0:
		bound, met = fmt.Sprintf(">= %.2f", t.atLeast), c.Ratio >= t.atLeast
	default:
		return "\t"
	}
	if met {
		return bound + "\tmet"
	}
	return bound + "\tMISSED"
}

var telemetryRows = []telemetryRow{
	{"turns_per_second_50", "turns of 50 contexts at once", 0, 1 - maxTelemetryCost},
	{"signal_to_request_p50_ms", "message to model request, p50", 1 + maxTelemetryCost, 0},
	{"signal_to_request_p95_ms", "message to model request, p95", 1 + maxTelemetryCost, 0},
	{"delta_p50_ms", "token from model to a client of the gateway, p50", 1 + maxTelemetryCost, 0},
	{"delta_p95_ms", "token from model to a client of the gateway, p95", 1 + maxTelemetryCost, 0},
	{"worker_cpu_per_turn_50_ms", "CPU of the worker per turn, 50 contexts at once", 0, 0},
	{"gateway_cpu_per_turn_50_ms", "CPU of the gateway per turn, 50 contexts at once", 0, 0},
}
