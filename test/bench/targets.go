package main

import (
	"fmt"
	"slices"
)

// references are the metrics to which others are compared.
var references = map[string]string{
	"signal_to_request_ms":           "bare_signal_to_request_ms",
	"delta_ms":                       "direct_delta_ms",
	"delta_50_ms":                    "direct_delta_50_ms",
	"delta_50_saturated_ms":          "direct_delta_50_ms",
	"viewer_delta_ms":                "direct_delta_ms",
	"viewers_1000_delta_ms":          "viewer_delta_ms",
	"viewers_1000_http2_delta_ms":    "viewers_1000_delta_ms",
	"turn_ms":                        "bare_turn_ms",
	"interrupt_to_first_chunk_ms":    "bare_signal_to_request_ms",
	"signal_to_request_50_ms":        "bare_signal_to_request_50_ms",
	"history_bytes_per_turn_300":     "history_bytes_per_turn_10",
	"history_bytes_per_turn_4990":    "history_bytes_per_turn_10",
	"history_bytes_10s_turn":         "history_bytes_short_turn",
	"signal_to_request_turn_5000_ms": "signal_to_request_turn_10_ms",
}

// target is a bound of a metric on a tuned server: fixed, in the unit of the metric, plus factor times the same
// or another quantile of another metric, if named.
type target struct {
	metric string
	at     quantile
	// atLeast is set if higher is better.
	atLeast bool
	fixed   float64
	factor  float64
	of      string
	ofAt    quantile
	// stock bounds a stock server instead, always both.
	stock, always bool
}

type quantile string

const (
	p50 quantile = "p50"
	p95 quantile = "p95"
)

func (q quantile) of(m *metric) float64 {
	if q == p95 {
		return m.P95
	}
	return m.P50
}

var targets = slices.Concat(protocolTargets(), []target{
	{metric: "signal_to_request_ms", at: p50, fixed: 10, factor: 1.25, of: "bare_signal_to_request_ms", ofAt: p50},
	{metric: "signal_to_request_ms", at: p50, fixed: 10 + 25, stock: true},
	{metric: "delta_ms", at: p50, fixed: 0.2, factor: 1, of: "direct_delta_ms", ofAt: p50},
	{metric: "delta_ms", at: p95, fixed: 1, factor: 1, of: "direct_delta_ms", ofAt: p95},
	{metric: "delta_50_ms", at: p95, fixed: 4},
	{metric: "viewers_1000_delta_ms", at: p95, fixed: 20},
	{metric: "gateway_heap_1000_growth_mb", at: p50, fixed: 20},
	{metric: "viewers_1000_http2_delta_ms", at: p95, fixed: 20},
	{metric: "gateway_heap_1000_http2_growth_mb", at: p50, fixed: 20},
	{metric: "recorded_to_found_ms", at: p95, fixed: 1000},
	{metric: "index_mb_per_mb", at: p50, fixed: 3},
	{metric: "interrupt_to_abort_ms", at: p50, fixed: 15},
	{metric: "interrupt_to_first_chunk_ms", at: p50, fixed: 10, factor: 2.2, of: "bare_signal_to_request_ms", ofAt: p50},
	{metric: "turns_per_second_50_of_bare", at: p50, atLeast: true, fixed: 0.85},
	{metric: "signal_to_request_50_ms", at: p95, factor: 5, of: "signal_to_request_50_ms", ofAt: p50},
	{metric: "server_cpu_per_turn_50_of_bare", at: p50, fixed: 1.25},
	{metric: "worker_idle_cpu_20s_ms", at: p50, fixed: 60},
	{metric: "worker_rss_500_mb", at: p95, fixed: 400},
	{metric: "worker_rss_500_growth_mb", at: p50, fixed: 20},
	{metric: "worker_rss_1000_cached_1mb_mb", at: p50, fixed: 1500},
	{metric: "worker_death_to_request_ms", at: p95, fixed: 4000},
	// The bounds of actions are for a worker whose heartbeats are rare, see the scenario.
	{metric: "actions_short_turn", at: p50, fixed: 5, always: true},
	{metric: "actions_10s_turn", at: p50, fixed: 6, always: true},
	{metric: "history_events_short_turn", at: p50, fixed: 13, always: true},
	{metric: "history_events_10s_turn", at: p50, fixed: 13, always: true},
	{metric: "history_bytes_10s_turn", at: p50, fixed: 3200, always: true},
	{metric: "history_events_per_turn", at: p95, fixed: 17},
	{metric: "history_bytes_per_turn_10", at: p50, fixed: 4096},
	{metric: "history_bytes_per_turn_300", at: p50, fixed: 4096},
	{metric: "history_bytes_per_turn_300", at: p50, factor: 1.05, of: "history_bytes_per_turn_10", ofAt: p50},
	{metric: "history_bytes_per_turn_4990", at: p50, factor: 1.05, of: "history_bytes_per_turn_10", ofAt: p50},
	{metric: "tool_history_events_last_10_calls", at: p50, fixed: 14},
	{metric: "tool_history_bytes_last_10_calls", at: p50, factor: 1.05, of: "tool_history_bytes_first_10_calls", ofAt: p50},
	{metric: "replay_ms_1000_turns", at: p95, fixed: 1000},
	// Each request renders all messages: about 1 µs for each of the 10,000.
	{metric: "signal_to_request_turn_5000_ms", at: p50, fixed: 20, factor: 1.1, of: "signal_to_request_turn_10_ms", ofAt: p50},
	{metric: "reopen_ms_10000_events", at: p95, fixed: 300},
	{metric: "export_events_per_second", at: p50, atLeast: true, fixed: 50_000},
})

// protocolTargets bounds what a protocol adds to the gateway's own stream.
func protocolTargets() (targets []target) {
	for _, p := range protocols {
		targets = append(targets, target{metric: p.name + "_1000_delta_ms", at: p95, fixed: 20})
		if p != protocols[0] {
			targets = append(targets,
				target{metric: p.name + "_first_token_added_ms", at: p50, fixed: 1},
				target{metric: p.name + "_delta_added_ms", at: p50, fixed: 0.2})
		}
	}
	return targets
}

// judge describes the bound and whether the metric meets it; "" if the other metric is nil but needed.
func (t target) judge(m, of *metric) string {
	bound, formula := t.fixed, ""
	if t.of != "" {
		if of == nil {
			return ""
		}
		bound += t.factor * t.ofAt.of(of)
		if t.fixed != 0 {
			formula = fmt.Sprintf("%v + ", t.fixed)
		}
		formula = fmt.Sprintf(" (%s%v x %s of %s)", formula, t.factor, t.ofAt, t.of)
	}
	sign, isMet := "<=", t.at.of(m) <= bound
	if t.atLeast {
		sign, isMet = ">=", t.at.of(m) >= bound
	}
	verdict := "met"
	if !isMet {
		verdict = "MISSED"
	}
	return fmt.Sprintf("%s: %s %s %s%s", verdict, t.at, sign, number(bound), formula)
}
