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
