package e2e

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

// The URL of the gateway of the topology, and the base URL at which its workers reach a model;
// `make e2e-postgres` sets them.
const (
	gatewayVariable = "CHRONICLE_E2E_GATEWAY"
	modelVariable   = "CHRONICLE_E2E_MODEL"
)

// deployed talks to a context through the running gateway. A running worker answers.
type deployed struct {
	*browser
	view *view
}

// requireTopology skips a test unless the variables of the topology are set.
func requireTopology(t *testing.T, variables ...string) {
	t.Helper()
	for _, variable := range variables {
		if os.Getenv(variable) == "" {
			t.Skipf("test of the running topology, %s is not set; run by make e2e-postgres", variable)
		}
	}
}

// newDeployedWorld is newWorld with the scripted model where the workers of the topology may connect.
func newDeployedWorld(t *testing.T, steps ...llmtest.Step) *world {
	t.Helper()
	base, err := url.Parse(os.Getenv(modelVariable))
	require.NoError(t, err)
	return newWorldOn(t, environment{model: base.Host}, steps...)
}

// deployed opens a new context whose provider is the scripted model.
func (w *world) deployed(name string, before ...event.Event) deployed {
	w.t.Helper()
	server := os.Getenv(gatewayVariable)
	w.client = client.New(client.Options{Temporal: w.temporal, Stream: w.stream, Archive: w.archive, TaskQueue: wire.TaskQueue})
	d := deployed{browser: &browser{w: w, url: server + "/contexts/" + w.open(name).Name()}}
	d.send(append([]event.Event{event.New(event.SetProviderConfig{ProviderID: "scripted", Model: "scripted", BaseURL: w.model.URL})}, before...)...)
	d.view = d.browser.view("", nil)
	return d
}

func (d deployed) send(events ...event.Event) {
	d.w.t.Helper()
	body, err := json.Marshal(events)
	require.NoError(d.w.t, err)
	status, answer := d.post(string(body), rand.Text())
	require.Equal(d.w.t, http.StatusAccepted, status, answer)
}

func TestTheRunningGatewayStreamsAnAnswer(t *testing.T) {
	requireTopology(t, gatewayVariable, modelVariable)
	gate := llmtest.NewGate()
	w := newDeployedWorld(t, llmtest.Answer("Once upon", " a time").HoldAfter(1, gate))
	d := w.deployed("deployed")
	d.say("Tell me a story", "one")
	d.view.until("Once upon")
	gate.Open()
	d.view.until(" a time")
	d.view.until("token_usage_info")
	status, log := d.do(http.MethodGet, d.url+"/events", "")
	require.Equal(t, http.StatusOK, status, log)
	require.Contains(t, log, "Once upon a time")
}

// seldom are the metrics that need more than a short conversation. TestDashboardAndAlertsUseMetricsThatMove_Alone
// covers them on the dev server.
var seldom = map[string]string{
	"chronicle_archive_lag_events_bucket":         "a continuation",
	"chronicle_archive_lag_seconds_bucket":        "a continuation",
	"chronicle_continuations_total":               "a continuation",
	"chronicle_history_bytes_bucket":              "a continuation",
	"chronicle_history_events_bucket":             "a continuation",
	"chronicle_cost_usd_total":                    "a price",
	"chronicle_deltas_coalesced_total":            "a slow viewer",
	"chronicle_hook_call_duration_seconds_bucket": "a hook",
	"chronicle_hook_calls_total":                  "a hook",
	"chronicle_quirks_total":                      "a server that deviates",
	"chronicle_recovered_answers_total":           "the death of a worker",
	"chronicle_requests_too_long_total":           "a long conversation",
	"chronicle_snapshot_misses_total":             "a worker that did not run the workflow",
}

func TestPrometheusHasTheMetricsOfAConversation(t *testing.T) {
	requireTopology(t, gatewayVariable, prometheusVariable, modelVariable)
	down := llmtest.Error(500, "server_error", "down")
	w := newDeployedWorld(t,
		down, down, llmtest.Answer("Here", " I am.").Usage(12, 3).Cached(4),
		llmtest.Calls(llmtest.Call{ID: "call_a", Name: "search_log", Arguments: `{"query":"story"}`}), llmtest.Answer("Found", " it."),
		llmtest.Answer("One", " two").HoldAfter(1, llmtest.NewGate()),
	)
	d := w.deployed("scraped", event.New(event.SetRetryConfig{MaxRetries: 1, InitialDelayMs: 1}),
		event.New(event.SetProviderConfig{ProviderID: "spare", Model: "other", BaseURL: w.model.URL, AsFallback: true}),
		event.New(event.SetTools{Tools: event.ToolList{{Pattern: "search_log"}}}))
	d.say("Are you there?", "one")
	d.view.until(" I am.")
	d.say("Look", "two")
	d.view.until(" it.")
	d.say("Count", "three")
	d.view.until("One")
	status, answer := d.do(http.MethodPost, d.url+"/interrupt", "")
	require.Equal(t, http.StatusAccepted, status, answer)
	d.view.until(`"partial":true`)
	d.send(event.New(event.BudgetSet{Tokens: new(int64(1))}), event.New(event.UserMessage{Content: "More?"}))

	queries := readQueries(t)
	for where, expr := range queries {
		for _, name := range metricsIn(expr) {
			if !strings.HasPrefix(name, "chronicle_") || seldom[name] != "" {
				continue
			}
			require.Eventually(t, func() bool {
				found := askPrometheus[struct{ Result []json.RawMessage }](t, "query", url.Values{"query": {name}})
				return len(found.Result) > 0
			}, testTimeout, 100*time.Millisecond, "%s: Prometheus has no %s", where, name)
		}
	}
}
