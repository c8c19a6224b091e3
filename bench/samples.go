package main

import (
	"math"
	"slices"
	"time"
)

// samples are measurements of one metric, in its unit.
type samples []float64

// add adds durations, in milliseconds.
func (s *samples) add(durations ...time.Duration) {
	for _, d := range durations {
		*s = append(*s, float64(d)/float64(time.Millisecond))
	}
}

// quantile is the smallest sample that at least the given share of them does
// not exceed; 0 without samples.
func (s samples) quantile(share float64) float64 {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	return sorted[max(0, int(math.Ceil(share*float64(len(sorted))))-1)]
}
