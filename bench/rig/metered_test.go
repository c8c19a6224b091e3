package rig

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/internal/metrics"
	"github.com/seed-9ed7edd4/chronicle/internal/telemetry"
)

func TestARecordingRepeatsTheCalls(t *testing.T) {
	exported, err := telemetry.Start(t.Context(), telemetry.Options{Service: "test", Listen: "127.0.0.1:0", Getenv: func(string) string { return "" }})
	require.NoError(t, err)
	defer exported.Close()
	m := &Metered{tape: &tape{}}
	handler := tapedHandler{tape: m.tape, real: exported.TemporalMetrics()}
	own := metrics.New(&tapedMeters{tape: m.tape, real: metrics.New(exported.Meters())})
	call := func() {
		handler.WithTags(map[string]string{"a": "1"}).Counter("calls").Inc(2)
		own.Retries.Add(1, "openai", "scripted")
	}
	call() // not recorded
	m.Record()
	call()
	calls, err := m.EndRecording()
	require.NoError(t, err)
	require.Equal(t, 4, calls, "the tags, the counter, and an increment of each counter")
	_, err = m.Repeat()
	require.NoError(t, err)

	response, err := http.Get("http://" + exported.Address() + "/metrics")
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Contains(t, string(body), `calls_total{a="1"} 6`+"\n", "the Temporal SDK's calls are forwarded, too")
	require.Contains(t, string(body), `chronicle_requests_total{model="scripted",outcome="completed",provider="openai"} 1`+"\n")
}
