package e2e

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/telemetry"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

func TestMetricsCountWhatAContextDoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t,
		llmtest.Error(500, "server_error", "down"),
		llmtest.Answer("Here", " I", " am.").Usage(12, 3),
		llmtest.Answer("One", " two").HoldAfter(1, llmtest.NewGate()),
	)
	exported, err := telemetry.Start(w.ctx, telemetry.Options{
		Service: "test", Listen: "127.0.0.1:0", Getenv: func(string) string { return "" },
	})
	require.NoError(t, err)
	defer exported.Close()
	w.worker(func(o *contexts.Options) { o.Meters = exported.Meters() })
	c := w.open("measured")
	w.say(c, "Are you there?", event.New(event.SetRetryConfig{MaxRetries: 1, InitialDelayMs: 1}))
	turn := w.ask(c, "Count")
	turn.underWay()
	require.NoError(t, c.Interrupt(w.ctx))
	turn.rest()

	response, err := http.Get("http://" + exported.Address() + "/metrics")
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
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
		require.Contains(t, string(body), want+"\n")
	}
}
