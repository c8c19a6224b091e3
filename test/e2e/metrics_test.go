package e2e

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/telemetry"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

func TestMetricsCountWhatAContextDoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t,
		llmtest.Error(500, "server_error", "down"),
		llmtest.Answer("Here", " I", " am.").Usage(12, 3),
		llmtest.Answer("One", " two").HoldAfter(1, llmtest.NewGate()),
	)
	exported := exportMetrics(t)
	w.on.meters = exported.Meters()
	w.worker()
	c := w.open("measured")
	w.say(c, "Are you there?", event.New(event.SetRetryConfig{MaxRetries: 1, InitialDelayMs: 1}))
	turn := w.ask(c, "Count")
	turn.underWay()
	require.NoError(t, c.Interrupt(w.ctx))
	turn.rest()

	body := scrape(t, exported)
	for _, want := range []string{
		`chronicle_requests_total{model="scripted",outcome="completed",provider="openai"} 1`,
		`chronicle_requests_total{model="scripted",outcome="failed",provider="openai"} 1`,
		`chronicle_requests_total{model="scripted",outcome="interrupted",provider="openai"} 1`,
		`chronicle_failures_total{kind="unavailable",model="scripted",provider="openai"} 1`,
		`chronicle_retries_total{model="scripted",provider="openai"} 1`,
		`chronicle_interruptions_total{reason="cancelled"} 1`,
		`chronicle_first_token_seconds_count{model="scripted",provider="openai"} 2`,
		`chronicle_abort_seconds_count 1`,
		`chronicle_deltas_total 4`,
		`chronicle_requests_running 0`,
	} {
		require.Contains(t, body, want+"\n")
	}
}

func scrape(t *testing.T, exported *telemetry.Telemetry) string {
	t.Helper()
	response, err := http.Get("http://" + exported.Address() + "/metrics")
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return string(body)
}

func exportMetrics(t *testing.T) *telemetry.Telemetry {
	t.Helper()
	exported, err := telemetry.Start(t.Context(), telemetry.Options{
		Service: "test", Listen: "127.0.0.1:0", Getenv: func(string) string { return "" },
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = exported.Close() })
	return exported
}

func TestAContextThatWaitsForAnApprovalIsListedAndMeasured(t *testing.T) {
	t.Parallel()
	p := newProbe(t, echoed)
	w := newWorld(t, llmtest.Calls(p.call("probe", "a")), llmtest.Answer("Done."))
	exported := exportMetrics(t)
	queue := w.queue + "'s"
	w.client = client.New(client.Options{Temporal: w.temporal, Stream: w.stream, Archive: w.archive, TaskQueue: queue})
	conn := w.connection()
	conn.Meters, conn.TaskQueue = exported.Meters(), queue
	w.workerOn(conn, w.workerOptions())
	c := w.open("waits")
	w.requireApproval(c, time.Hour)
	turn := w.ask(c, "Pay")
	turn.until(isTag(event.TagApprovalRequested))
	awaitMetric := func(line string) {
		require.Eventually(t, func() bool { return strings.Contains(scrape(t, exported), line+"\n") }, testTimeout, 20*time.Millisecond, line)
	}
	awaitMetric("chronicle_approvals_waiting 1")
	w.awaitListed(c, wire.StatusWaiting)
	state, err := c.State(w.ctx)
	require.NoError(t, err)
	require.Equal(t, wire.StatusAnswering, state.Status)

	w.send(c, event.New(event.ApprovalDecided{ToolCallID: "call_a", Decision: event.Approve}))
	require.Equal(t, event.TagLLMRequestCompleted, turn.rest().Tag())
	awaitMetric("chronicle_approvals_waiting 0")
	w.awaitListed(c, wire.StatusIdle)
	w.replay(c, "approval-listed")
}
