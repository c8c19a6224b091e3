package metrics

import (
	"context"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
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
	instrument metric.Float64Counter // nil: records nothing
}

// Add adds an amount of 0 or more.
func (c *Counter) Add(amount float64, values ...string) {
	c.labels.check(values)
	if c.instrument != nil && amount > 0 {
		c.instrument.Add(context.Background(), amount, c.labels.with(values))
	}
}

// Gauge is a sum that grows and shrinks.
type Gauge struct {
	labels     labels
	instrument metric.Float64UpDownCounter // nil: records nothing
}

// Add adds an amount, which may be negative.
func (g *Gauge) Add(amount float64, values ...string) {
	g.labels.check(values)
	if g.instrument != nil {
		g.instrument.Add(context.Background(), amount, g.labels.with(values))
	}
}

// Histogram is a distribution.
type Histogram struct {
	labels     labels
	instrument metric.Float64Histogram // nil: records nothing
}

// Observe records a value.
func (h *Histogram) Observe(value float64, values ...string) {
	h.labels.check(values)
	if h.instrument != nil {
		h.instrument.Record(context.Background(), value, h.labels.with(values))
	}
}

// labels are the names of the labels of an instrument.
type labels []string

func (l labels) check(values []string) {
	if len(values) != len(l) {
		panic("metrics: got the values " + strings.Join(values, ", ") + " for the labels " + strings.Join(l, ", "))
	}
}

func (l labels) with(values []string) metric.MeasurementOption {
	attributes := make([]attribute.KeyValue, len(values))
	for i, value := range values {
		attributes[i] = attribute.String(l[i], value)
	}
	return metric.WithAttributeSet(attribute.NewSet(attributes...))
}

// Reading is a number that is read in the background.
type Reading struct {
	instrument metric.Float64ObservableGauge
	meter      metric.Meter // nil: reads nothing
}

// Observe makes each export start read in the background, unless the previous read is still running, and
// report the newest result, until stop is called. After an error, the metric has no value. An export must
// not wait for read: the export holds a lock of OpenTelemetry, and read needs that lock if it creates an
// instrument, as a request to Temporal can.
func (r *Reading) Observe(read func(context.Context) (float64, error)) (stop func()) {
	if r.meter == nil {
		return func() {}
	}
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
	meter       metric.Meter // nil: instruments record nothing
	definitions []Definition
}

func (b *builder) define(d Definition, k kind) {
	d.kind = k
	b.definitions = append(b.definitions, d)
}

// must panics if OpenTelemetry rejects a definition. TestOpenTelemetryAcceptsTheDefinitions ensures that it does not.
func must[T any](instrument T, err error) T {
	if err != nil {
		panic(err)
	}
	return instrument
}

func (b *builder) counter(d Definition) Counter {
	b.define(d, counter)
	c := Counter{labels: d.Labels}
	if b.meter != nil {
		c.instrument = must(b.meter.Float64Counter(d.Name, metric.WithUnit(d.Unit), metric.WithDescription(d.Description)))
	}
	return c
}

func (b *builder) gauge(d Definition) Gauge {
	b.define(d, gauge)
	g := Gauge{labels: d.Labels}
	if b.meter != nil {
		g.instrument = must(b.meter.Float64UpDownCounter(d.Name, metric.WithUnit(d.Unit), metric.WithDescription(d.Description)))
	}
	return g
}

func (b *builder) reading(d Definition) Reading {
	b.define(d, gauge)
	r := Reading{meter: b.meter}
	if b.meter != nil {
		r.instrument = must(b.meter.Float64ObservableGauge(d.Name, metric.WithUnit(d.Unit), metric.WithDescription(d.Description)))
	}
	return r
}

func (b *builder) histogram(d Definition) Histogram {
	b.define(d, histogram)
	h := Histogram{labels: d.Labels}
	if b.meter != nil {
		h.instrument = must(b.meter.Float64Histogram(d.Name, metric.WithUnit(d.Unit), metric.WithDescription(d.Description),
			metric.WithExplicitBucketBoundaries(d.Buckets...)))
	}
	return h
}

// New returns the instruments of a provider. Nil: they record nothing. The provider never releases them, so a program
// should call New only when it starts.
func New(provider metric.MeterProvider) *Metrics {
	b := &builder{}
	if provider != nil {
		b.meter = provider.Meter(scope)
	}
	m := define(b)
	m.definitions = b.definitions
	return m
}

// Definitions returns the definitions of all instruments, in the order of the documentation.
func (m *Metrics) Definitions() []Definition { return m.definitions }
