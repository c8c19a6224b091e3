// Package telemetry exports the metrics and traces of a program: metrics to Prometheus, which scrapes
// an HTTP endpoint, and both by OTLP to the collector that the standard OTEL_ environment variables
// name (https://opentelemetry.io/docs/specs/otel/protocol/exporter/).
package telemetry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/exemplar"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/opentelemetry"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
	"github.com/seed-9ed7edd4/chronicle/internal/metrics"
)

// Options configure [Start].
type Options struct {
	Service, Version string // service.name, unless OTEL_SERVICE_NAME is set, and service.version
	Listen           string // HOST:PORT of the Prometheus endpoint /metrics; empty: none
	ListenLabel      string // the name of the setting Listen in errors, such as --metrics
	Getenv           func(string) string
	// TraceIDs gives operations trace ids even if the environment names no exporter of spans. The
	// programs that this one calls then use the same ids for the spans that they export.
	TraceIDs bool
	// OnError is called for failed exports, with secrets removed. Nil: they are ignored.
	OnError func(error)
}

// Telemetry is a running exporter.
type Telemetry struct {
	provider *sdkmetric.MeterProvider // nil: no metrics are exported
	tracers  *sdktrace.TracerProvider // nil: there are no traces
	content  bool                     // see TracesContent
	server   *http.Server             // nil: no Prometheus endpoint
	listener net.Listener
}

const (
	shutdownTimeout = 5 * time.Second // for the last export
	headerTimeout   = 10 * time.Second
)

// Start starts the exporters that the options and the environment name. Without any, it starts
// nothing, and [Telemetry.Meters] and, unless TraceIDs is set, [Telemetry.Tracers] return nil. An invalid value of
// the environment is an [exit.UsageError].
func Start(ctx context.Context, o Options) (_ *Telemetry, err error) {
	t := &Telemetry{}
	defer func() {
		if err != nil {
			_ = t.Close() // err says more
		}
	}()
	if t.content, err = tracesContent(o.Getenv); err != nil {
		return nil, err
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(o.report))
	readers, err := t.readers(ctx, o)
	if err != nil {
		return nil, err
	}
	spans, err := exporters(ctx, o)
	if err != nil {
		return nil, err
	}
	if len(readers) == 0 && len(spans) == 0 && !o.TraceIDs {
		return t, nil
	}
	about, err := resource.New(ctx, resource.WithAttributes(
		attribute.String("service.name", o.Service), attribute.String("service.version", o.Version)),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, usagef("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	if len(readers) > 0 {
		t.provider = sdkmetric.NewMeterProvider(append(readers, sdkmetric.WithResource(about), sdkmetric.WithView(temporalLatencies),
			// Exemplars would need the context of a span, and no instrument is called with one.
			sdkmetric.WithExemplarFilter(exemplar.AlwaysOffFilter))...)
	}
	if len(spans) > 0 || o.TraceIDs {
		t.tracers = sdktrace.NewTracerProvider(append(spans, sdktrace.WithResource(about))...)
	}
	if t.server != nil {
		go func() { _ = t.server.Serve(t.listener) }() // it ends with Close
	}
	return t, nil
}

const temporalScope = "temporal-sdk-go"

// temporalLatencies replaces the default bounds of the OpenTelemetry SDK, 5 to 10,000, which suit
// milliseconds.
var temporalLatencies = sdkmetric.NewView(
	sdkmetric.Instrument{Kind: sdkmetric.InstrumentKindHistogram, Unit: "s", Scope: instrumentation.Scope{Name: temporalScope}},
	sdkmetric.Stream{Aggregation: sdkmetric.AggregationExplicitBucketHistogram{Boundaries: metrics.Seconds}})

func (o Options) report(err error) {
	if o.OnError != nil {
		o.OnError(errors.New(event.Redact(err.Error(), maxError)))
	}
}

const maxError = 500 // bytes

func (t *Telemetry) readers(ctx context.Context, o Options) (readers []sdkmetric.Option, err error) {
	if o.Listen != "" {
		reader, err := t.listen(ctx, o)
		if err != nil {
			return nil, err
		}
		readers = append(readers, sdkmetric.WithReader(reader))
	}
	isExported, err := exports("METRICS", o.Getenv)
	if !isExported || err != nil {
		return readers, err
	}
	exporter, err := otlpmetrichttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("export metrics by OTLP: %w (check the OTEL_EXPORTER_OTLP_ variables)", err)
	}
	return append(readers, sdkmetric.WithReader(sdkmetric.NewPeriodicReader(exporter))), nil
}

// exporters returns the exporter of spans, if any. The SDK reads OTEL_TRACES_SAMPLER and the OTEL_BSP_
// and OTEL_SPAN_ variables.
func exporters(ctx context.Context, o Options) ([]sdktrace.TracerProviderOption, error) {
	isExported, err := exports("TRACES", o.Getenv)
	if !isExported || err != nil {
		return nil, err
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("export traces by OTLP: %w (check the OTEL_EXPORTER_OTLP_ variables)", err)
	}
	return []sdktrace.TracerProviderOption{sdktrace.WithBatcher(exporter)}, nil
}

func (t *Telemetry) listen(ctx context.Context, o Options) (sdkmetric.Reader, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w (choose a free HOST:PORT of this machine)", o.ListenLabel, o.Listen, err)
	}
	t.listener = listener
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	t.server = &http.Server{Handler: mux, ReadHeaderTimeout: headerTimeout}
	return otelprometheus.New(otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo())
}

// exports reports whether the environment asks for METRICS or TRACES by OTLP.
func exports(signal string, getenv func(string) string) (bool, error) {
	if getenv("OTEL_SDK_DISABLED") == "true" {
		return false, nil
	}
	variable := "OTEL_" + signal + "_EXPORTER"
	hint := map[string]string{"METRICS": " (Prometheus scrapes the address of --metrics)"}[signal]
	switch exporter := getenv(variable); exporter {
	case "none":
		return false, nil
	case "", "otlp":
	default:
		return false, usagef("%s %q: want otlp or none%s", variable, exporter, hint)
	}
	endpoint := cmp.Or(getenv("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT"), getenv("OTEL_EXPORTER_OTLP_ENDPOINT"))
	if endpoint == "" && getenv(variable) == "" {
		return false, nil
	}
	for _, variable := range []string{"OTEL_EXPORTER_OTLP_" + signal + "_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		switch protocol := getenv(variable); protocol {
		case "":
		case "http/protobuf":
			return true, nil
		default:
			return false, usagef("%s %q: want http/protobuf, usually port 4318 of a collector", variable, protocol)
		}
	}
	return true, nil
}

func usagef(format string, args ...any) error {
	return exit.UsageError{Err: fmt.Errorf(format, args...)}
}

// tracesContent reports whether the environment asks for the content of messages in spans.
func tracesContent(getenv func(string) string) (bool, error) {
	const variable = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
	switch value := strings.ToLower(getenv(variable)); value {
	case "true", "span_only", "span_and_event":
		return true, nil
	case "", "false", "no_content":
		return false, nil
	default:
		return false, usagef("%s %q: want true, span_only, span_and_event, no_content or false", variable, value)
	}
}

// Meters returns the provider of instruments; nil: nothing is exported.
func (t *Telemetry) Meters() metric.MeterProvider {
	if t.provider == nil {
		return nil
	}
	return t.provider
}

// Tracers returns the provider of tracers; nil: there are no traces.
func (t *Telemetry) Tracers() trace.TracerProvider {
	if t.tracers == nil {
		return nil
	}
	return t.tracers
}

// TracesContent reports whether spans contain messages, answers, and arguments and results of tools.
func (t *Telemetry) TracesContent() bool { return t.content }

// TemporalMetrics exports the metrics of the Temporal SDK; nil: nothing is exported.
func (t *Telemetry) TemporalMetrics() client.MetricsHandler {
	if t.provider == nil {
		return nil
	}
	return temporalHandler{opentelemetry.NewMetricsHandler(opentelemetry.MetricsHandlerOptions{
		Meter: t.provider.Meter(temporalScope), UseMonotonicCounters: true,
		OnError: func(error) {}, // of one instrument, which then records nothing
	})}
}

// Address returns the address of the Prometheus endpoint; empty: none.
func (t *Telemetry) Address() string {
	if t.listener == nil {
		return ""
	}
	return t.listener.Addr().String()
}

// Close exports the last metrics and spans by OTLP and closes the endpoint.
func (t *Telemetry) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	var errs []error
	if t.provider != nil {
		errs = append(errs, t.provider.Shutdown(ctx))
	}
	if t.tracers != nil {
		errs = append(errs, t.tracers.Shutdown(ctx))
	}
	if t.server != nil {
		errs = append(errs, t.server.Close())
	}
	if t.listener != nil {
		_ = t.listener.Close() // the server may have closed it already
	}
	return errors.Join(errs...)
}
