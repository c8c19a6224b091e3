package main

import "fmt"

var references = map[string]string{
	"signal_to_request_ms":                      "bare_signal_to_request_ms",
	"untuned_signal_to_request_ms":              "bare_untuned_signal_to_request_ms",
	"delta_ms":                                  "direct_delta_ms",
	"delta_50_ms":                               "direct_delta_50_ms",
	"delta_50_saturated_ms":                     "direct_delta_50_ms",
	"viewer_delta_ms":                           "direct_delta_ms",
	"viewers_1000_delta_ms":                     "viewer_delta_ms",
	"turn_ms":                                   "bare_turn_ms",
	"interrupt_to_first_chunk_ms":               "bare_signal_to_request_ms",
	"turns_per_second_50":                       "bare_turns_per_second_50",
	"signal_to_request_50_ms":                   "bare_signal_to_request_50_ms",
	"server_cpu_per_turn_50_ms":                 "bare_server_cpu_per_turn_50_ms",
	"history_bytes_per_turn_300":                "history_bytes_per_turn_10",
	"history_bytes_per_turn_4990":               "history_bytes_per_turn_10",
	"signal_to_request_turn_5000_ms":            "signal_to_request_turn_10_ms",
	"tool_history_bytes_first_10_calls":         "naive_untuned_tool_history_bytes_first_10_calls",
	"tool_history_bytes_last_10_calls":          "naive_untuned_tool_history_bytes_last_10_calls",
	"untuned_tool_history_bytes_first_10_calls": "naive_untuned_tool_history_bytes_first_10_calls",
	"untuned_tool_history_bytes_last_10_calls":  "naive_untuned_tool_history_bytes_last_10_calls",
	"untuned_tool_step_first_10_calls_ms":       "naive_untuned_tool_step_first_10_calls_ms",
	"untuned_tool_step_last_10_calls_ms":        "naive_untuned_tool_step_last_10_calls_ms",
	"reduce_ns_per_event_100k":                  "reduce_ns_per_event_1k",
	"fork_ms_10000_events":                      "fork_ms_100_events",
}

type target struct {
	metric string
	at     quantile
	// atLeast is set if higher is better.
	atLeast bool
	// The bound, in the unit of the metric: fixed, plus factor times a quantile of another
	// metric, if named.
	fixed  float64
	factor float64
	of     string
	ofAt   quantile
}

type quantile string

const (
	p50 quantile = "p50"
	p95 quantile = "p95"
)

func (q quantile) of(m metric) float64 {
	if q == p95 {
		return m.P95
	}
	return m.P50
}

var targets = []target{
	{metric: "signal_to_request_ms", at: p50, fixed: 10, factor: 1.25, of: "bare_signal_to_request_ms", ofAt: p50},
	{metric: "untuned_signal_to_request_ms", at: p50, fixed: 10 + 25},
	{metric: "delta_ms", at: p50, fixed: 0.2, factor: 1, of: "direct_delta_ms", ofAt: p50},
	{metric: "delta_ms", at: p95, fixed: 1, factor: 1, of: "direct_delta_ms", ofAt: p95},
	{metric: "delta_50_ms", at: p95, fixed: 4},
	{metric: "viewers_1000_delta_ms", at: p95, fixed: 20},
	{metric: "gateway_rss_1000_growth_mb", at: p50, fixed: 20},
	{metric: "interrupt_to_abort_ms", at: p50, fixed: 15},
	{metric: "interrupt_to_first_chunk_ms", at: p50, fixed: 10, factor: 2.2, of: "bare_signal_to_request_ms", ofAt: p50},
	{metric: "turns_per_second_50", at: p50, atLeast: true, factor: 0.75, of: "bare_turns_per_second_50", ofAt: p50},
	{metric: "signal_to_request_50_ms", at: p95, factor: 5, of: "signal_to_request_50_ms", ofAt: p50},
	{metric: "worker_rss_500_mb", at: p95, fixed: 400},
	{metric: "worker_rss_500_growth_mb", at: p50, fixed: 20},
	{metric: "worker_rss_1000_cached_1mb_mb", at: p50, fixed: 1500},
	{metric: "worker_death_to_request_ms", at: p95, fixed: 4000},
	// 2,000 segments at two reads of 50 ms take 200 s one after the other.
	{metric: "opening_ms_2000_segments_50ms_reads", at: p95, fixed: 10_000},
	{metric: "history_events_per_turn", at: p95, fixed: 17},
	{metric: "history_bytes_per_turn_10", at: p50, fixed: 4096},
	{metric: "history_bytes_per_turn_300", at: p50, fixed: 4096},
	{metric: "history_bytes_per_turn_300", at: p50, factor: 1.05, of: "history_bytes_per_turn_10", ofAt: p50},
	{metric: "tool_history_events_last_10_calls", at: p50, fixed: 14},
	{metric: "tool_history_bytes_last_10_calls", at: p50, factor: 1.05, of: "tool_history_bytes_first_10_calls", ofAt: p50},
	// Folding is linear: an event costs the same in a long log, except for CPU cache effects.
	{metric: "reduce_ns_per_event_100k", at: p50, factor: 2, of: "reduce_ns_per_event_1k", ofAt: p50},
	{metric: "replay_ms_1000_turns", at: p95, fixed: 1000},
	{metric: "history_bytes_per_turn_4990", at: p50, factor: 1.05, of: "history_bytes_per_turn_10", ofAt: p50},
	// Each request renders all messages: about 1 µs for each of the 10,000.
	{metric: "signal_to_request_turn_5000_ms", at: p50, fixed: 20, factor: 1.1, of: "signal_to_request_turn_10_ms", ofAt: p50},
	{metric: "reopen_ms_10000_events", at: p95, fixed: 300},
	{metric: "metrics_cpu_percent", at: p50, fixed: 1},
	{metric: "export_events_per_second", at: p50, atLeast: true, fixed: 50_000},
}

func (t target) row(metrics map[string]metric) (row string, ok bool) {
	m, ok := metrics[t.metric]
	bound, reference := t.fixed, metric{}
	if ok && t.of != "" {
		reference, ok = metrics[t.of]
		bound += t.factor * t.ofAt.of(reference)
	}
	if !ok {
		return "", false
	}
	sign, met := "<=", t.at.of(m) <= bound
	if t.atLeast {
		sign, met = ">=", t.at.of(m) >= bound
	}
	verdict := "met"
	if !met {
		verdict = "MISSED"
	}
	return fmt.Sprintf("%s\t%s\t%s\t%s %s%s\t%s", t.metric, number(t.at.of(m)), t.at, sign, number(bound), t.formula(), verdict), true
}

func (t target) formula() string {
	if t.of == "" {
		return ""
	}
	fixed := ""
	if t.fixed != 0 {
		fixed = fmt.Sprintf("%v + ", t.fixed)
	}
	return fmt.Sprintf(" = %s%v x %s of %s", fixed, t.factor, t.ofAt, t.of)
}
