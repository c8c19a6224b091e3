package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAComparisonHasTheRatioOfTheStatistic(t *testing.T) {
	off := []samples{{10, 20, 30}, {10, 20, 40}}
	on := []samples{{11, 22, 33}, {11, 22, 44}}
	c := compare("ms", off, on, samples.p95)
	require.Equal(t, 40.0, c.Off)
	require.Equal(t, 44.0, c.On)
	require.Equal(t, 2, c.Rounds)
	for _, ratio := range []float64{c.Ratio, c.Low, c.High} {
		require.InDelta(t, 1.1, ratio, 1e-9, "each pair has the same ratio")
	}
	require.Equal(t, c, compare("ms", off, on, samples.p95), "the interval is reproducible")
}

func TestBurstsOfOtherLoadDoNotChangeTheRatioOfRounds(t *testing.T) {
	var off, on []samples
	for i := range 42 {
		first, second := float64(100-i), float64(100-i)*0.9 // all rounds become slower, and the second of a pair is
		pair := [][2]float64{{first, second * 0.98}, {second, first * 0.98}}[i%2]
		off, on = append(off, samples{pair[0]}), append(on, samples{pair[1]})
	}
	on[3], off[7], on[8], on[12], on[20], on[30] = samples{20}, samples{30}, samples{50}, samples{10}, samples{10}, samples{10}
	c := compareRounds("turns/s", off, on)
	require.Equal(t, 42, c.Rounds)
	for _, ratio := range []float64{c.Ratio, c.Low, c.High} {
		require.InDelta(t, 0.98, ratio, 0.005)
	}
	require.Less(t, compare("turns/s", off, on, samples.mean).Ratio, 0.95)
}

func TestTheIntervalOfAComparisonCoversPairsThatDiffer(t *testing.T) {
	var off, on []samples
	for i := range 20 {
		off = append(off, samples{100})
		on = append(on, samples{float64(90 + i)})
	}
	c := compare("turns/s", off, on, samples.mean)
	require.InDelta(t, 0.995, c.Ratio, 1e-9)
	require.Greater(t, c.Low, 0.96)
	require.Less(t, c.Low, c.Ratio)
	require.Greater(t, c.High, c.Ratio)
	require.Less(t, c.High, 1.03)
}

func TestAReportShowsWhichComparisonsMissTheirBound(t *testing.T) {
	r := newReport()
	r.compare("turns_per_second_50", comparison{Off: 100, On: 96, Ratio: 0.96, Low: 0.95, High: 0.97, Unit: "turns/s", Rounds: 10})
	r.compare("delta_p50_ms", comparison{Off: 1, On: 1.02, Ratio: 1.02, Low: 1, High: 1.04, Unit: "ms", Rounds: 40})
	r.compare("worker_cpu_per_turn_50_ms", comparison{Off: 4, On: 5, Ratio: 1.25, Low: 1.2, High: 1.3, Unit: "ms", Rounds: 10})
	var out strings.Builder
	require.NoError(t, r.print(&out, ""))
	rows := map[string]string{}
	for line := range strings.Lines(out.String()) {
		name, rest, _ := strings.Cut(line, " ")
		rows[name] = strings.Join(strings.Fields(rest), " ")
	}
	require.Equal(t, "100 96.0 turns/s 10 0.960 0.950 to 0.970 >= 0.97 MISSED", rows["turns_per_second_50"])
	require.Equal(t, "1.00 1.02 ms 40 1.020 1.000 to 1.040 <= 1.03 met", rows["delta_p50_ms"])
	require.Equal(t, "4.00 5.00 ms 10 1.250 1.200 to 1.300", rows["worker_cpu_per_turn_50_ms"])
}
