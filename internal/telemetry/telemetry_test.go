package telemetry_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	tracecollector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/seed-9ed7edd4/chronicle/internal/exit"
	"github.com/seed-9ed7edd4/chronicle/internal/metrics"
	"github.com/seed-9ed7edd4/chronicle/internal/telemetry"
)

func environment(values map[string]string) func(string) string {
	return func(name string) string { return values[name] }
}

func TestNothingStartsUnlessAsked(t *testing.T) {
	for name, environ := range map[string]map[string]string{
		"nothing set":  {},
		"SDK disabled": {"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"},
		"no exporters": {"OTEL_METRICS_EXPORTER": "none", "OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			exported, err := telemetry.Start(context.Background(), telemetry.Options{Getenv: environment(environ)})
			require.NoError(t, err)
			require.Nil(t, exported.Meters())
			require.Nil(t, exported.TemporalMetrics())
			require.Nil(t, exported.Tracers())
			require.Empty(t, exported.Address())
			require.NoError(t, exported.Close())
		})
	}
}

func TestInvalidSettingsAreExplained(t *testing.T) {
	for want, o := range map[string]telemetry.Options{
		`chronicle.toml: worker.metrics 256.0.0.1:1: `: {
			Listen: "256.0.0.1:1", ListenLabel: "chronicle.toml: worker.metrics", Getenv: environment(nil),
		},
		`OTEL_METRICS_EXPORTER "prometheus": want otlp or none`: {Getenv: environment(map[string]string{
			"OTEL_METRICS_EXPORTER": "prometheus",
		})},
		`OTEL_TRACES_EXPORTER "zipkin": want otlp or none`: {Getenv: environment(map[string]string{
			"OTEL_TRACES_EXPORTER": "zipkin",
		})},
		`OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT "yes": want true`: {Getenv: environment(map[string]string{
			"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "yes",
		})},
		`OTEL_EXPORTER_OTLP_PROTOCOL "grpc": want http/protobuf`: {Getenv: environment(map[string]string{
			"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
		})},
		`OTEL_EXPORTER_OTLP_TRACES_PROTOCOL "grpc": want http/protobuf`: {Getenv: environment(map[string]string{
			"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4317", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc",
		})},
	} {
		_, err := telemetry.Start(context.Background(), o)
		require.ErrorContains(t, err, want)
		require.Equal(t, o.Listen == "", errors.As(err, new(exit.UsageError)))
	}
}

func TestPrometheusScrapesTheInstruments(t *testing.T) {
	exported, err := telemetry.Start(context.Background(), telemetry.Options{
		Service: "test", Listen: "127.0.0.1:0", Getenv: environment(nil),
	})
	require.NoError(t, err)
	defer exported.Close()
	metrics.New(exported.Meters()).Requests.Add(1, "openai", "gpt-4o", "completed")
	exported.TemporalMetrics().Counter("temporal_request").Inc(1)

	body := scrape(t, exported)
	require.Contains(t, body, `chronicle_requests_total{model="gpt-4o",outcome="completed",provider="openai"} 1`)
	require.Contains(t, body, "temporal_request_total 1")
	require.Contains(t, body, "go_goroutines")

	require.NoError(t, exported.Close())
	_, err = http.Get("http://" + exported.Address() + "/metrics")
	require.Error(t, err, "Close closes the endpoint")
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

func TestNoLabelOfTemporalHasTheIDOfAProcess(t *testing.T) {
	exported, err := telemetry.Start(context.Background(), telemetry.Options{Listen: "127.0.0.1:0", Getenv: environment(nil)})
	require.NoError(t, err)
	defer exported.Close()
	for _, process := range []string{"0b8f4c6a-1d73-4952-8c1e-57d1e0a2c49b", "8f36a1c2-59e0-4d7b-b2f4-3c6d9e8a7b10"} {
		handler := exported.TemporalMetrics().WithTags(map[string]string{"namespace": "default"})
		handler.WithTags(map[string]string{"task_queue": "commands/" + process}).Counter("temporal_request").Inc(1)
	}
	exported.TemporalMetrics().WithTags(map[string]string{"task_queue": "team/contexts"}).Counter("temporal_request").Inc(1)
	body := scrape(t, exported)
	require.Contains(t, body, `temporal_request_total{namespace="default",task_queue="commands/PROCESS"} 2`)
	require.Contains(t, body, `temporal_request_total{task_queue="team/contexts"} 1`)
}

func TestLatenciesOfTemporalHaveTheBoundsOfOthers(t *testing.T) {
	exported, err := telemetry.Start(context.Background(), telemetry.Options{
		Service: "test", Listen: "127.0.0.1:0", Getenv: environment(nil),
	})
	require.NoError(t, err)
	defer exported.Close()
	metrics.New(exported.Meters()).Duration.Observe(.02, "openai", "gpt-4o", "completed")
	exported.TemporalMetrics().Timer("temporal_request_latency").Record(20 * time.Millisecond)

	response, err := http.Get("http://" + exported.Address() + "/metrics")
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	bounds := func(metric string) (found []string) {
		for _, match := range regexp.MustCompile(metric+`_bucket\{.*le="([^"]+)"`).FindAllStringSubmatch(string(body), -1) {
			found = append(found, match[1])
		}
		return found
	}
	require.Contains(t, bounds("temporal_request_latency_seconds"), "0.025")
	require.Equal(t, bounds("chronicle_request_duration_seconds"), bounds("temporal_request_latency_seconds"))
}

func TestCloseExportsTheLastMetricsByOTLP(t *testing.T) {
	exports := make(chan *collector.ExportMetricsServiceRequest, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || !strings.HasSuffix(r.URL.Path, "/v1/metrics") {
			t.Errorf("unexpected request %s: %v", r.URL, err)
			return
		}
		request := &collector.ExportMetricsServiceRequest{}
		if err := proto.Unmarshal(body, request); err != nil {
			t.Error(err)
		}
		exports <- request
	}))
	defer server.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL) // the exporter reads the environment of the process
	exported, err := telemetry.Start(context.Background(), telemetry.Options{
		Service: "test", Getenv: environment(map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": server.URL}),
	})
	require.NoError(t, err)
	require.Empty(t, exported.Address())
	metrics.New(exported.Meters()).Continuations.Add(1)
	exported.TemporalMetrics().Counter("temporal_request").Inc(3)
	exported.TemporalMetrics().Gauge("temporal_num_pollers").Update(2)
	require.NoError(t, exported.Close())
	export := (<-exports).String()
	for _, want := range []string{"chronicle_continuations", "temporal_request", "as_int:3", "temporal_num_pollers", "as_double:2"} {
		require.Contains(t, export, want)
	}
}

func TestCloseExportsTheLastSpansByOTLP(t *testing.T) {
	exports := make(chan *tracecollector.ExportTraceServiceRequest, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || !strings.HasSuffix(r.URL.Path, "/v1/traces") {
			t.Errorf("unexpected request %s: %v", r.URL, err)
			return
		}
		request := &tracecollector.ExportTraceServiceRequest{}
		if err := proto.Unmarshal(body, request); err != nil {
			t.Error(err)
		}
		exports <- request
	}))
	defer server.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", server.URL+"/v1/traces") // the exporter reads the environment of the process
	exported, err := telemetry.Start(context.Background(), telemetry.Options{
		Service: "test", Getenv: environment(map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": server.URL}),
	})
	require.NoError(t, err)
	require.Nil(t, exported.Meters(), "only traces are asked for")
	_, span := exported.Tracers().Tracer("test").Start(context.Background(), "send")
	span.End()
	require.NoError(t, exported.Close())
	got := (<-exports).String()
	require.Contains(t, got, `name:"send"`)
	require.Contains(t, got, `string_value:"test"`)
}

func TestTheSamplerIsThatOfTheEnvironment(t *testing.T) {
	t.Setenv("OTEL_TRACES_SAMPLER", "always_off")
	exported, err := telemetry.Start(context.Background(), telemetry.Options{Getenv: environment(nil), TraceIDs: true})
	require.NoError(t, err)
	defer exported.Close()
	_, span := exported.Tracers().Tracer("test").Start(context.Background(), "send")
	require.True(t, span.SpanContext().IsValid())
	require.False(t, span.SpanContext().IsSampled())
}

func TestContentIsTracedIfTheEnvironmentAsks(t *testing.T) {
	for value, want := range map[string]bool{"": false, "false": false, "NO_CONTENT": false, "true": true, "span_only": true} {
		exported, err := telemetry.Start(context.Background(), telemetry.Options{
			Getenv: environment(map[string]string{"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": value}),
		})
		require.NoError(t, err)
		require.Equal(t, want, exported.TracesContent(), value)
	}
}
