package metrics

import (
	"context"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
)

// Definition describes an instrument. The exporter for Prometheus appends the unit to the name, and "_total" to that of
// a counter.
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
	labels     labels
	instrument metric.Float64Counter
}

// Add adds an amount of 0 or more.
func (c *Counter) Add(amount float64, values ...string) {
	if with := c.labels.with(values); amount > 0 {
		c.instrument.Add(context.Background(), amount, with)
	}
}

// Gauge is a sum that grows and shrinks.
type Gauge struct {
	labels     labels
	instrument metric.Float64UpDownCounter
}

// Add adds an amount, which may be negative.
func (g *Gauge) Add(amount float64, values ...string) {
	g.instrument.Add(context.Background(), amount, g.labels.with(values))
}

// Histogram is a distribution.
type Histogram struct {
	labels     labels
	instrument metric.Float64Histogram
}

// Observe records a value.
func (h *Histogram) Observe(value float64, values ...string) {
	h.instrument.Record(context.Background(), value, h.labels.with(values))
}

// labels are the names of the labels of an instrument.
type labels []string

func (l labels) with(values []string) metric.MeasurementOption {
	if len(values) != len(l) {
		panic("metrics: got the values " + strings.Join(values, ", ") + " for the labels " + strings.Join(l, ", "))
	}
	attributes := make([]attribute.KeyValue, len(values))
	for i, value := range values {
		attributes[i] = attribute.String(l[i], value)
	}
	return metric.WithAttributeSet(attribute.NewSet(attributes...))
}

// Reading is a number that is read in the background.
type Reading struct {
	instrument metric.Float64ObservableGauge
	meter      metric.Meter
}

// Observe makes each export start read in the background, unless the previous read is still running, and
// report the newest result, until stop is called. After an error, the metric has no value. An export must
// not wait for read: the export holds a lock of OpenTelemetry, and read needs that lock if it creates an
// instrument, as a request to Temporal can.
func (r *Reading) Observe(read func(context.Context) (float64, error)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var (
		mu               sync.Mutex // guards the variables below
		isReading, known bool
		value            float64
		reads            sync.WaitGroup
	)
	readOnce := func() {
		v, err := read(ctx)
		mu.Lock()
		defer mu.Unlock()
		value, known, isReading = v, err == nil, false
	}
	registration := must(r.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		mu.Lock()
		defer mu.Unlock()
		if known {
			o.ObserveFloat64(r.instrument, value)
		}
		if !isReading {
			isReading = true
			reads.Go(readOnce)
		}
		return nil
	}, r.instrument))
	return func() {
		_ = registration.Unregister() // that of the OpenTelemetry SDK never fails
		cancel()
		reads.Wait()
	}
}

// scope is the OpenTelemetry instrumentation scope.
const scope = "github.com/seed-9ed7edd4/chronicle"

type builder struct {
	meter       metric.Meter
	definitions []Definition
}

// must panics if OpenTelemetry rejects a definition, as any test with a provider would show.
func must[T any](instrument T, err error) T {
	if err != nil {
		panic(err)
	}
	return instrument
}

// define keeps a definition.
func (b *builder) define(d Definition, k kind) Definition {
	d.kind = k
	b.definitions = append(b.definitions, d)
	return d
}

func (b *builder) counter(d Definition) Counter {
	d = b.define(d, counter)
	return Counter{d.Labels, must(b.meter.Float64Counter(d.Name, metric.WithUnit(d.Unit), metric.WithDescription(d.Description)))}
}

func (b *builder) gauge(d Definition) Gauge {
	d = b.define(d, gauge)
	return Gauge{d.Labels, must(b.meter.Float64UpDownCounter(d.Name, metric.WithUnit(d.Unit), metric.WithDescription(d.Description)))}
}

func (b *builder) reading(d Definition) Reading {
	d = b.define(d, gauge)
	return Reading{must(b.meter.Float64ObservableGauge(d.Name, metric.WithUnit(d.Unit), metric.WithDescription(d.Description))), b.meter}
}

func (b *builder) histogram(d Definition) Histogram {
	d = b.define(d, histogram)
	return Histogram{d.Labels, must(b.meter.Float64Histogram(d.Name, metric.WithUnit(d.Unit), metric.WithDescription(d.Description),
		metric.WithExplicitBucketBoundaries(d.Buckets...)))}
}

// New returns the instruments of a provider. Nil: they record nothing. The provider never releases them, so a program
// should call New only when it starts.
func New(provider metric.MeterProvider) *Metrics {
	if provider == nil {
		provider = noop.NewMeterProvider()
	}
	b := &builder{meter: provider.Meter(scope)}
	m := define(b)
	m.definitions = b.definitions
	return m
}

// Definitions returns the definitions of all instruments, in the order of the documentation.
func (m *Metrics) Definitions() []Definition { return m.definitions }
