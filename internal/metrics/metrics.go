package metrics

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
)

// Definition describes an instrument. Prometheus appends the unit, and "_total" to counters.
type Definition struct {
	Name, Unit, Description string // Unit: "s", "By", or empty for a number
	Labels                  []string
	Buckets                 []float64 // upper bounds of a histogram
	kind                    kind
}

type kind int

const (
	counter kind = iota
	gauge
	histogram
)

// PrometheusName returns the name that Prometheus reads; that of a histogram without "_bucket".
func (d Definition) PrometheusName() string {
	name := d.Name
	if unit, ok := map[string]string{"s": "_seconds", "By": "_bytes"}[d.Unit]; ok && !strings.HasSuffix(name, unit) {
		name += unit
	}
	if d.kind == counter {
		name += "_total"
	}
	return name
}

// Counter is a sum that only grows.
type Counter struct {
	instrument metric.Float64Counter
	labels     *labels
}

// Add adds an amount of 0 or more.
func (c *Counter) Add(amount float64, values ...string) {
	if amount > 0 {
		c.instrument.Add(context.Background(), amount, c.labels.of(values))
	}
}

// Gauge is a sum that grows and shrinks.
type Gauge struct {
	instrument metric.Float64UpDownCounter
	labels     *labels
}

// Add adds an amount, which may be negative.
func (g *Gauge) Add(amount float64, values ...string) {
	g.instrument.Add(context.Background(), amount, g.labels.of(values))
}

// Histogram is a distribution.
type Histogram struct {
	instrument metric.Float64Histogram
	labels     *labels
}

// Observe records a value.
func (h *Histogram) Observe(value float64, values ...string) {
	h.instrument.Record(context.Background(), value, h.labels.of(values))
}

// Reading is a number that is read at each export.
type Reading struct {
	instrument metric.Float64ObservableGauge
	meter      metric.Meter
}

// Observe lets each export call read until stop is called. While read returns an error, the metric has
// no value.
func (r *Reading) Observe(read func(context.Context) (float64, error)) (stop func()) {
	registration := must(r.meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		if value, err := read(ctx); err == nil {
			o.ObserveFloat64(r.instrument, value)
		}
		return nil // OpenTelemetry would print an error at each export
	}, r.instrument))
	return func() { _ = registration.Unregister() } // it fails only in other implementations
}

// scope is the OpenTelemetry instrumentation scope.
const scope = "github.com/seed-9ed7edd4/chronicle"

type builder struct {
	meter       metric.Meter
	names       *bounds
	definitions []Definition
}

func (b *builder) labels(d Definition, k kind) *labels {
	d.kind = k
	b.definitions = append(b.definitions, d)
	return &labels{keys: d.Labels, names: b.names}
}

// must panics if OpenTelemetry rejects a definition. TestOpenTelemetryAcceptsTheDefinitions excludes that.
func must[T any](instrument T, err error) T {
	if err != nil {
		panic(err)
	}
	return instrument
}

func (b *builder) counter(d Definition) Counter {
	return Counter{must(b.meter.Float64Counter(d.Name, metric.WithUnit(d.Unit), metric.WithDescription(d.Description))), b.labels(d, counter)}
}

func (b *builder) gauge(d Definition) Gauge {
	return Gauge{must(b.meter.Float64UpDownCounter(d.Name, metric.WithUnit(d.Unit), metric.WithDescription(d.Description))), b.labels(d, gauge)}
}

func (b *builder) reading(d Definition) Reading {
	b.labels(d, gauge)
	return Reading{must(b.meter.Float64ObservableGauge(d.Name, metric.WithUnit(d.Unit), metric.WithDescription(d.Description))), b.meter}
}

func (b *builder) histogram(d Definition) Histogram {
	return Histogram{must(b.meter.Float64Histogram(d.Name, metric.WithUnit(d.Unit), metric.WithDescription(d.Description),
		metric.WithExplicitBucketBoundaries(d.Buckets...))), b.labels(d, histogram)}
}

// New returns the instruments of a provider. Nil: they record nothing.
func New(provider metric.MeterProvider) *Metrics {
	if provider == nil {
		provider = noop.NewMeterProvider()
	}
	b := &builder{meter: provider.Meter(scope), names: &bounds{seen: map[string]map[string]bool{}}}
	m := define(b)
	m.definitions = b.definitions
	return m
}

// Definitions returns the definitions of all instruments, in the order of the documentation.
func (m *Metrics) Definitions() []Definition { return m.definitions }
