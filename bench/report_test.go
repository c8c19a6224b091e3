package main

import (
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

func TestTargetsReferToMeasuredMetrics(t *testing.T) {
	metrics := map[string]metric{"bare_signal_to_request_ms": {P50: 10}, "signal_to_request_ms": {P50: 22.5}}
	row, ok := targets[0].row(metrics)
	require.True(t, ok)
	require.Contains(t, row, "<= 22.5 = 10 + 1.25 x p50 of bare_signal_to_request_ms\tmet")
	metrics["signal_to_request_ms"] = metric{P50: 22.6}
	row, _ = targets[0].row(metrics)
	require.Contains(t, row, "MISSED")
	_, ok = targets[2].row(metrics)
	require.False(t, ok, "what was not measured has no row")
}

func TestAReportShowsTheChangeAgainstTheBaseline(t *testing.T) {
	path := filepath.Join(t.TempDir(), "baseline.json")
	before := newReport()
	before.add("turn_ms", "ms", samples{100})
	before.add("bare_turn_ms", "ms", samples{80})
	require.NoError(t, before.write(path))
	now := newReport()
	now.add("turn_ms", "ms", samples{300})
	now.add("bare_turn_ms", "ms", samples{160})
	now.add("delta_ms", "ms", samples{1})
	var out strings.Builder
	require.NoError(t, now.print(&out, path))
	require.Contains(t, out.String(), "since "+before.Date)
	lines := map[string][]string{}
	for line := range strings.Lines(out.String()) {
		if fields := strings.Fields(line); len(fields) > 0 {
			lines[fields[0]] = fields[1:]
		}
	}
	require.Equal(t, []string{"300", "300", "ms", "1", "+200", "%", "1.88", "+50", "%"}, lines["turn_ms"])
	require.Equal(t, []string{"160", "160", "ms", "1", "+100", "%"}, lines["bare_turn_ms"])
	require.Equal(t, []string{"1.00", "1.00", "ms", "1"}, lines["delta_ms"])
}
