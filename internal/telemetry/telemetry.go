// Package telemetry exports the metrics of a program: to Prometheus, which scrapes an HTTP endpoint,
// and by OTLP to the collector that the standard OTEL_ environment variables name
// (https://opentelemetry.io/docs/specs/otel/protocol/exporter/). Both read the same instruments.
package telemetry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/opentelemetry"
)

// Options configure [Start].
type Options struct {
	Service, Version string // service.name, unless OTEL_SERVICE_NAME is set, and service.version
	Listen           string // HOST:PORT of the Prometheus endpoint /metrics; empty: none
	Getenv           func(string) string
}

// Telemetry is a running exporter.
type Telemetry struct {
	provider *sdkmetric.MeterProvider // nil: nothing is exported
	server   *http.Server             // nil: no Prometheus endpoint
	listener net.Listener
}

const (
	shutdownTimeout = 5 * time.Second // for the last export
	headerTimeout   = 10 * time.Second
)

// Start starts the exporters that the options and the environment name. Without any, it starts
// nothing, and [Telemetry.Meters] returns nil.
func Start(ctx context.Context, o Options) (_ *Telemetry, err error) {
	t := &Telemetry{}
	defer func() {
		if err != nil {
			_ = t.Close() // err says more
		}
	}()
	var readers []sdkmetric.Option
	if o.Listen != "" {
		reader, err := t.listen(ctx, o.Listen)
		if err != nil {
			return nil, err
		}
		readers = append(readers, sdkmetric.WithReader(reader))
	}
	push, err := exportsMetrics(o.Getenv)
	if err != nil {
		return nil, err
	}
	if push {
		exporter, err := otlpmetrichttp.New(ctx)
		if err != nil {
			return nil, fmt.Errorf("export metrics by OTLP: %w (check the OTEL_EXPORTER_OTLP_ variables)", err)
		}
		readers = append(readers, sdkmetric.WithReader(sdkmetric.NewPeriodicReader(exporter)))
	}
	if len(readers) == 0 {
		return t, nil
	}
	about, err := resource.New(ctx, resource.WithAttributes(
		attribute.String("service.name", o.Service), attribute.String("service.version", o.Version)),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	t.provider = sdkmetric.NewMeterProvider(append(readers, sdkmetric.WithResource(about))...)
	if t.server != nil {
		go func() { _ = t.server.Serve(t.listener) }() // it ends with Close
	}
	return t, nil
}

func (t *Telemetry) listen(ctx context.Context, address string) (sdkmetric.Reader, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--metrics %s: %w (choose a free HOST:PORT of this machine)", address, err)
	}
	t.listener = listener
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	t.server = &http.Server{Handler: mux, ReadHeaderTimeout: headerTimeout}
	return otelprometheus.New(otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo())
}

// exportsMetrics reports whether the environment asks for metrics by OTLP.
func exportsMetrics(getenv func(string) string) (bool, error) {
	if getenv("OTEL_SDK_DISABLED") == "true" {
		return false, nil
	}
	switch exporter := getenv("OTEL_METRICS_EXPORTER"); exporter {
	case "none":
		return false, nil
	case "", "otlp":
	default:
		return false, fmt.Errorf("OTEL_METRICS_EXPORTER %q: want otlp or none (Prometheus scrapes the address of --metrics)", exporter)
	}
	endpoint := cmp.Or(getenv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"), getenv("OTEL_EXPORTER_OTLP_ENDPOINT"))
	if endpoint == "" && getenv("OTEL_METRICS_EXPORTER") == "" {
		return false, nil
	}
	protocol := cmp.Or(getenv("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL"), getenv("OTEL_EXPORTER_OTLP_PROTOCOL"), "http/protobuf")
	if protocol != "http/protobuf" {
		return false, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL %q: want http/protobuf, usually port 4318 of a collector", protocol)
	}
	return true, nil
}

// Meters returns the provider of instruments; nil: nothing is exported.
func (t *Telemetry) Meters() metric.MeterProvider {
	if t.provider == nil {
		return nil
	}
	return t.provider
}

// TemporalMetrics exports the metrics of the Temporal SDK; nil: nothing is exported.
func (t *Telemetry) TemporalMetrics() client.MetricsHandler {
	if t.provider == nil {
		return nil
	}
	return opentelemetry.NewMetricsHandler(opentelemetry.MetricsHandlerOptions{
		Meter:                t.provider.Meter("temporal-sdk-go"),
		UseMonotonicCounters: true,
		OnError:              func(error) {}, // of one instrument, which then records nothing
	})
}

// Address returns the address of the Prometheus endpoint; empty: none.
func (t *Telemetry) Address() string {
	if t.listener == nil {
		return ""
	}
	return t.listener.Addr().String()
}

// Close exports the last metrics by OTLP and closes the endpoint.
func (t *Telemetry) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	var errs []error
	if t.provider != nil {
		errs = append(errs, t.provider.Shutdown(ctx))
	}
	if t.server != nil {
		errs = append(errs, t.server.Close())
	}
	if t.listener != nil {
		_ = t.listener.Close() // again, unless Serve did not run
	}
	return errors.Join(errs...)
}
