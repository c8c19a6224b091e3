package telemetry_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/internal/telemetry"
)

func TestTemporalMetricsKeepTheirTagsApart(t *testing.T) {
	exported, err := telemetry.Start(t.Context(), telemetry.Options{Service: "test", Listen: "127.0.0.1:0", Getenv: environment(nil)})
	require.NoError(t, err)
	defer exported.Close()
	handler := exported.TemporalMetrics()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 3 {
				handler.WithTags(map[string]string{"a": "1", "b": "2"}).Counter("calls").Inc(1)
				handler.WithTags(map[string]string{"b": "2"}).WithTags(map[string]string{"a": "1"}).Counter("calls").Inc(1)
				handler.WithTags(map[string]string{"a": "1:b", "b": "2"}).Counter("calls").Inc(1)
				handler.WithTags(map[string]string{"a": "2", "b": "1"}).Counter("calls").Inc(1)
				handler.WithTags(map[string]string{"a": "1"}).Timer("latency").Record(time.Second)
				handler.Counter("calls").Inc(1)
			}
			handler.Gauge("slots").Update(7)
		})
	}
	all.Wait()
	for i := range 1100 { // more than are cached
		handler.WithTags(map[string]string{"i": fmt.Sprint(i)}).Gauge("many").Update(1)
	}
	for i := range 2100 { // more than OpenTelemetry exports
		handler.WithTags(map[string]string{"i": fmt.Sprint(i)}).Counter("crowd").Inc(1)
	}
	response, err := http.Get("http://" + exported.Address() + "/metrics")
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	for _, want := range []string{
		"calls_total 12\n", `calls_total{a="1",b="2"} 24` + "\n", `calls_total{a="1:b",b="2"} 12` + "\n", `calls_total{a="2",b="1"} 12` + "\n",
		`latency_seconds_count{a="1"} 12` + "\n", "slots 7\n", `many{i="1099"} 1` + "\n",
		`crowd_total{otel_metric_overflow="true"} 101` + "\n",
	} {
		require.Contains(t, string(body), want)
	}
	require.Equal(t, 2000, strings.Count(string(body), "\ncrowd_total{"), "the overflow included")
}

// The SDK asks for a handler and for instruments in each call to the server.
func TestCachedTemporalMetricsAllocateNothing(t *testing.T) {
	exported, err := telemetry.Start(t.Context(), telemetry.Options{Service: "test", Listen: "127.0.0.1:0", Getenv: environment(nil)})
	require.NoError(t, err)
	defer exported.Close()
	handler := exported.TemporalMetrics()
	tags := map[string]string{"operation": "RespondWorkflowTaskCompleted", "namespace": "default"}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		tagged := handler.WithTags(tags)
		tagged.Counter("temporal_request").Inc(1)
		tagged.Timer("temporal_request_latency")
		tagged.Gauge("temporal_worker_task_slots_available").Update(1)
	}))
}
