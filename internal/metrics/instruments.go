package metrics

import "github.com/seed-9ed7edd4/chronicle/event"

// Metrics are the instruments of a process.
type Metrics struct {
	definitions []Definition

	Requests, Failures, Retries, Fallbacks, Interruptions, Recovered Counter
	Tokens, Cost                                                     Counter
	Running                                                          Gauge
	Debounce, FirstToken, TokenGap, Duration, Abort                  Histogram

	ToolCalls, HookCalls, BudgetsExceeded, TooLong, SnapshotMisses Counter
	ToolDuration, HookDuration                                     Histogram
	ApprovalsWaiting                                               Reading

	Quirks                              Counter
	Deltas, DeltasSent, DeltasCoalesced Counter

	Continuations               Counter
	HistoryEvents, HistoryBytes Histogram
	ArchiveLag, ArchiveDelay    Histogram
	StoreOperations, StoreBytes Counter
	StoreDuration               Histogram

	Streams      Gauge
	HTTPRequests Counter
}

// Use adds the usage of an attempt.
func (m *Metrics) Use(providerID, model string, u event.Usage) {
	m.Tokens.Add(float64(u.InputTokens), providerID, model, "input")
	m.Tokens.Add(float64(u.CachedTokens), providerID, model, "cached")
	m.Tokens.Add(float64(u.OutputTokens), providerID, model, "output")
	m.Tokens.Add(float64(u.ReasoningTokens), providerID, model, "reasoning")
	if u.CostMicros != nil {
		m.Cost.Add(float64(*u.CostMicros)/1e6, providerID, model)
	}
}

// Seconds are the bounds of histograms of durations.
var Seconds = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 25, 50, 100}

// Bounds of other histograms.
var (
	bytes  = []float64{1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 21, 1 << 22, 1 << 23, 1 << 24, 1 << 25}
	lags   = []float64{.1, 1, 10, 60, 600, 3600, 86400} // seconds
	counts = []float64{16, 64, 256, 1024, 2048, 4096, 6144, 8192, 16384, 32768}
)

func define(b *builder) *Metrics {
	model := []string{"provider", "model"}
	return &Metrics{
		Requests: b.counter(Definition{
			Name: "chronicle_requests", Description: "Attempts sent to a provider, by how they ended.",
			Labels: []string{"provider", "model", "outcome"},
		}),
		Failures: b.counter(Definition{
			Name: "chronicle_failures", Description: "Failed attempts, by the kind of the failure.",
			Labels: []string{"provider", "model", "kind"},
		}),
		Retries:   b.counter(Definition{Name: "chronicle_retries", Description: "Attempts that followed a failed one.", Labels: model}),
		Fallbacks: b.counter(Definition{Name: "chronicle_fallbacks", Description: "First attempts of a fallback provider.", Labels: model}),
		Interruptions: b.counter(Definition{
			Name: "chronicle_interruptions", Description: "Answers that were stopped, by the reason.", Labels: []string{"reason"},
		}),
		Recovered: b.counter(Definition{
			Name: "chronicle_recovered_answers", Description: "Answers of attempts after the death of a worker.", Labels: model,
		}),
		Tokens: b.counter(Definition{
			Name: "chronicle_tokens", Labels: []string{"provider", "model", "kind"},
			Description: "Tokens by kind: input, cached (part of input), output, reasoning (part of output).",
		}),
		Cost:    b.counter(Definition{Name: "chronicle_cost_usd", Description: "Cost by the price table, in US dollars.", Labels: model}),
		Running: b.gauge(Definition{Name: "chronicle_requests_running", Description: "Attempts that run in this process, including their debounce."}),
		Debounce: b.histogram(Definition{
			Name: "chronicle_debounce", Unit: "s", Description: "Time from the newest input to the end of the quiet period.", Buckets: Seconds,
		}),
		FirstToken: b.histogram(Definition{
			Name: "chronicle_first_token", Unit: "s", Description: "Time from sending a request to the first delta of the answer.", Labels: model, Buckets: Seconds,
		}),
		TokenGap: b.histogram(Definition{
			Name: "chronicle_token_gap", Unit: "s", Description: "Time between two deltas of an answer.", Labels: model, Buckets: Seconds,
		}),
		Duration: b.histogram(Definition{
			Name: "chronicle_request_duration", Unit: "s", Description: "Time from sending a request to the end of its answer.",
			Labels: []string{"provider", "model", "outcome"}, Buckets: Seconds,
		}),
		Abort: b.histogram(Definition{
			Name: "chronicle_abort", Unit: "s", Description: "Time from a stop message to the end of the stream of the provider.", Buckets: Seconds,
		}),
		ToolCalls: b.counter(Definition{
			Name: "chronicle_tool_calls", Description: "Executed tool calls: ok, error (returned to the model) or failed.", Labels: []string{"tool", "outcome"},
		}),
		ToolDuration: b.histogram(Definition{
			Name: "chronicle_tool_call_duration", Unit: "s", Description: "Duration of executed tool calls.", Labels: []string{"tool"}, Buckets: Seconds,
		}),
		ApprovalsWaiting: b.reading(Definition{
			Name: "chronicle_approvals_waiting", Description: "Contexts of the task queue in which a call waits for an approval or a client; each worker reports all.",
		}),
		HookCalls: b.counter(Definition{
			Name: "chronicle_hook_calls", Description: "Calls of hooks: passed, changed, refused or failed.", Labels: []string{"hook", "stage", "outcome"},
		}),
		HookDuration: b.histogram(Definition{
			Name: "chronicle_hook_call_duration", Unit: "s", Description: "Duration of calls of hooks.", Labels: []string{"hook", "stage"}, Buckets: Seconds,
		}),
		BudgetsExceeded: b.counter(Definition{
			Name: "chronicle_budgets_exceeded", Description: "Attempts that a budget stopped: of the context, or of the label.", Labels: []string{"budget"},
		}),
		TooLong: b.counter(Definition{
			Name: "chronicle_requests_too_long", Description: "Attempts whose conversation exceeds the context window, as counted or as rejected by the provider.", Labels: model,
		}),
		SnapshotMisses: b.counter(Definition{
			Name: "chronicle_snapshot_misses", Description: "Attempts whose workflow runs in another process, so their session was queried.",
		}),
		Quirks: b.counter(Definition{
			Name: "chronicle_quirks", Description: "Deviations of model servers and MCP servers that were worked around.", Labels: []string{"kind"},
		}),
		Deltas: b.counter(Definition{Name: "chronicle_deltas", Description: "Deltas received from providers."}),
		DeltasSent: b.counter(Definition{
			Name: "chronicle_deltas_sent", Description: "Updates with deltas that the gateway sent, counted for each viewer.",
		}),
		DeltasCoalesced: b.counter(Definition{
			Name: "chronicle_deltas_coalesced", Description: "Deltas that were merged into a later update because the viewer or the gateway was slow.",
		}),
		Continuations: b.counter(Definition{Name: "chronicle_continuations", Description: "Runs that continued as new."}),
		HistoryEvents: b.histogram(Definition{
			Name: "chronicle_history_events", Description: "History events of a run that continues as new.", Buckets: counts,
		}),
		HistoryBytes: b.histogram(Definition{
			Name: "chronicle_history_bytes", Description: "History size of a run that continues as new.", Unit: "By", Buckets: bytes,
		}),
		ArchiveLag: b.histogram(Definition{
			Name: "chronicle_archive_lag_events", Description: "Events that are not yet archived when a run continues as new.", Buckets: counts,
		}),
		ArchiveDelay: b.histogram(Definition{
			Name: "chronicle_archive_lag", Unit: "s", Description: "Time since the archive last had all events, when a run continues as new.", Buckets: lags,
		}),
		StoreOperations: b.counter(Definition{
			Name: "chronicle_store_operations", Description: "Operations of the blob store: ok, missing (no such blob), exists (already written) or failed.", Labels: []string{"operation", "outcome"},
		}),
		StoreBytes: b.counter(Definition{
			Name: "chronicle_store", Unit: "By", Description: "Bytes read from and written to the blob store.", Labels: []string{"operation"},
		}),
		StoreDuration: b.histogram(Definition{
			Name: "chronicle_store_duration", Unit: "s", Description: "Latency of the blob store.", Labels: []string{"operation"}, Buckets: Seconds,
		}),
		Streams: b.gauge(Definition{Name: "chronicle_streams_open", Description: "Open streams of viewers of the gateway."}),
		HTTPRequests: b.counter(Definition{
			Name: "chronicle_http_requests", Description: "Requests to the gateway.", Labels: []string{"route", "status"},
		}),
	}
}
