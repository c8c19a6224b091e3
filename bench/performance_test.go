package main

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event/eventtest/golden"
)

// document lists the metrics in docs/performance.md.
var document = []struct {
	heading string
	rows    []struct{ metric, text string }
}{
	{"Latency", []struct{ metric, text string }{
		{"signal_to_request_ms", "message to model request"},
		{"untuned_signal_to_request_ms", "the same on a stock Temporal server"},
		{"delta_ms", "token from model to subscriber"},
		{"viewer_delta_ms", "token from model to a viewer of the gateway"},
		{"viewers_1000_delta_ms", "the same with 1,000 viewers"},
		{"turn_ms", "whole turn"},
		{"interrupt_to_abort_ms", "new input to abort of the running request"},
		{"interrupt_to_first_chunk_ms", "new input to the first token of the new answer"},
		{"worker_death_to_request_ms", "death of a worker to the new request"},
	}},
	{"Load and length", []struct{ metric, text string }{
		{"turns_per_second_50", "turns of 50 contexts at once"},
		{"signal_to_request_50_ms", "message to model request, 50 contexts at once"},
		{"delta_50_ms", "token to subscriber, 50 answers at once"},
		{"server_cpu_per_turn_50_ms", "server CPU per turn"},
		{"history_events_per_turn", "history per turn"},
		{"history_bytes_per_turn_10", "size of the history per turn, at turn 10"},
		{"history_bytes_per_turn_4990", "size of the history per turn, at turn 4,990"},
		{"signal_to_request_turn_5000_ms", "message to model request, at turn 5,000"},
		{"reduce_ns_per_event_100k", "fold of one event, in 100,000 events"},
		{"replay_ms_1000_turns", "turn on a new worker, after 5,000 turns"},
		{"reopen_ms_10000_events", "opening a context of 10,000 events"},
		{"opening_ms_2000_segments_folder", "opening 2,000 segments of the archive, in a folder"},
		{"opening_ms_2000_segments_50ms_reads", "opening 2,000 segments, 50 ms per read"},
		{"export_events_per_second", "export of a log"},
		{"fork_ms_10000_events", "fork at event 10,000"},
	}},
	{"Tool calls", []struct{ metric, text string }{
		{"tool_history_events_first_10_calls", "history per call, calls 1 to 10"},
		{"tool_history_events_last_10_calls", "history per call, calls 91 to 100"},
		{"tool_history_bytes_first_10_calls", "size of the history per call, calls 1 to 10"},
		{"tool_history_bytes_last_10_calls", "size of the history per call, calls 91 to 100"},
		{"tool_request_bytes_last_10_calls", "model request, calls 91 to 100"},
		{"tool_step_first_10_calls_ms", "call to next model request, calls 1 to 10"},
		{"tool_step_last_10_calls_ms", "call to next model request, calls 91 to 100"},
		{"untuned_tool_step_last_10_calls_ms", "the same on a stock Temporal server, calls 91 to 100"},
		{"naive_untuned_tool_calls_until_the_server_ends_it", "calls until a stock server ended the reference"},
	}},
	{"Memory", []struct{ metric, text string }{
		{"worker_rss_500_mb", "worker, 500 contexts"},
		{"worker_rss_1000_cached_1mb_mb", "worker, 1,000 contexts of 1 MB in its cache"},
		{"gateway_rss_1000_mb", "gateway, 1,000 viewers"},
	}},
}

var metricsAlone = []struct{ metric, text string }{
	{"metrics_cpu_per_turn_us", "CPU for metrics per turn"},
	{"metrics_cpu_percent", "the same as a share of the CPU of worker and gateway per turn"},
	{"metrics_profile_samples", "samples of the profile in metrics"},
}

// TestPerformanceIsThatOfTheBaseline compares docs/performance.md with baseline.json and telemetry.json.
func TestPerformanceIsThatOfTheBaseline(t *testing.T) {
	const file, first, last = "../docs/performance.md", "<!-- begin: make golden -->\n", "<!-- end: make golden -->\n"
	baseline, err := readReport("baseline.json")
	require.NoError(t, err)
	var b strings.Builder
	fmt.Fprintf(&b, "Measured on %s with %s. Temporal's dev server ran on the same machine.\n", baseline.Date, baseline.Machine)
	for _, table := range document {
		fmt.Fprintf(&b, "\n## %s\n\n| measurement | p50 | p95 | reference, p50 |\n|---|---|---|---|\n", table.heading)
		for _, row := range table.rows {
			m, ok := baseline.Metrics[row.metric]
			require.True(t, ok, row.metric)
			reference := ""
			if r, ok := baseline.Metrics[references[row.metric]]; ok {
				reference = quantity(r.P50, r.Unit)
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", row.text, quantity(m.P50, m.Unit), quantity(m.P95, m.Unit), reference)
		}
	}
	telemetry, err := readReport("telemetry.json")
	require.NoError(t, err)
	fmt.Fprintf(&b, "\n## Metrics without traces\n\nMeasured on %s with %s.\n\n| measurement | value |\n|---|---|\n", telemetry.Date, telemetry.Machine)
	for _, row := range metricsAlone {
		m, ok := telemetry.Metrics[row.metric]
		require.True(t, ok, row.metric)
		fmt.Fprintf(&b, "| %s | %s |\n", row.text, quantity(m.P50, m.Unit))
	}
	b.WriteString("\n## Metrics and traces\n\nFrom the same run.\n\n| measurement | off | on | ratio | 95% interval | target |\n|---|---|---|---|---|---|\n")
	for _, row := range telemetryRows {
		c, ok := telemetry.Telemetry[row.name]
		require.True(t, ok, row.name)
		bound, outcome, _ := strings.Cut(row.verdict(c), "\t")
		if bound != "" {
			bound += ", " + strings.ToLower(outcome)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %.3f | %.3f to %.3f | %s |\n", row.text, quantity(c.Off, c.Unit), quantity(c.On, c.Unit), c.Ratio, c.Low, c.High, bound)
	}
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(content), first)
	require.True(t, ok, first)
	_, after, ok := strings.Cut(rest, last)
	require.True(t, ok, last)
	golden.File(t, file, before+first+b.String()+last+after)
}

// quantity formats a value with its unit.
func quantity(f float64, unit string) string {
	value := number(f)
	if f >= 1000 {
		value = fmt.Sprintf("%d,%03d", int(f)/1000, int(f)%1000)
	} else if f == math.Trunc(f) {
		value = fmt.Sprint(int(f))
	}
	return value + " " + unit
}
