package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAQuantileIsASample(t *testing.T) {
	s := samples{5, 1, 4, 2, 3}
	require.Equal(t, 3.0, s.quantile(0.5))
	require.Equal(t, 5.0, s.quantile(0.95))
	require.Equal(t, 1.0, s.quantile(0.1))
	require.Zero(t, samples{}.quantile(0.5))
}

func TestAReportShowsRatiosAndBounds(t *testing.T) {
	for name, test := range map[string]struct {
		stock        bool
		milliseconds float64
		want         string
	}{
		"met":               {false, 22.5, "22.5 22.5 ms 1 2.25 met: p50 <= 22.5 (10 + 1.25 x p50 of bare_signal_to_request_ms)"},
		"missed":            {false, 22.6, "22.6 22.6 ms 1 2.26 MISSED: p50 <= 22.5 (10 + 1.25 x p50 of bare_signal_to_request_ms)"},
		"on a stock server": {true, 36, "36 36 ms 1 3.60 MISSED: p50 <= 35"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReport(test.stock)
			r.add("signal_to_request_ms", "ms", samples{test.milliseconds})
			r.add("bare_signal_to_request_ms", "ms", samples{10})
			r.add("interrupt_to_first_chunk_ms", "ms", nil)
			var out strings.Builder
			require.NoError(t, r.print(&out))
			rows := map[string]string{}
			for line := range strings.Lines(out.String()) {
				row, rest, _ := strings.Cut(line, " ")
				rows[row] = strings.Join(strings.Fields(rest), " ")
			}
			require.Equal(t, test.want, rows["signal_to_request_ms"])
			require.Equal(t, "10 10 ms 1", rows["bare_signal_to_request_ms"])
		})
	}
}

func TestARatioComparesPairs(t *testing.T) {
	r := newReport(false)
	r.addRatio("turns_per_second_50_of_bare", samples{9, 20, 24, 70}, samples{10, 25, 40, 100})
	r.judge()
	require.Equal(t, &metric{
		Name: "turns_per_second_50_of_bare", P50: 0.7, P95: 0.9, Unit: "x", N: 4,
		Bounds: []string{"MISSED: p50 >= 0.85"}, Note: "quartiles 0.60 to 0.80",
	}, r.find("turns_per_second_50_of_bare"))
}

func TestAReportIsWrittenWithItsBounds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bench.json")
	r := newReport(false)
	r.add("delta_50_ms", "ms", samples{3, 5})
	require.NoError(t, r.print(&strings.Builder{}))
	require.NoError(t, r.write(path))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	var read report
	require.NoError(t, json.Unmarshal(data, &read))
	require.Equal(t, []*metric{{Name: "delta_50_ms", P50: 3, P95: 5, Unit: "ms", N: 2, Bounds: []string{"MISSED: p95 <= 4"}}}, read.Metrics)
}
