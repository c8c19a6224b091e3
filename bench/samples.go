package main

import (
	"math"
	"slices"
	"time"
)

// samples are the measurements of one metric, in its unit.
type samples []float64

func (s *samples) add(durations ...time.Duration) {
	for _, d := range durations {
		*s = append(*s, float64(d)/float64(time.Millisecond))
	}
}

// quantile returns the smallest sample that is at least as large as the given share of them; 0
// without samples.
func (s samples) quantile(share float64) float64 {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	return sorted[max(0, int(math.Ceil(share*float64(len(sorted))))-1)]
}
