package telemetry

import (
	"context"
	"math"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// observed holds counters and gauges that an export reads. Setting one is an atomic operation. A synchronous
// instrument of OpenTelemetry looks up its attributes each time, which takes a hundred times longer.
type observed struct {
	meter    metric.Meter
	counters families[counter]
	gauges   families[gauge]
}

// counter is a sum. It is exported when it is above 0.
type counter struct{ sum atomic.Int64 }

func (c *counter) Inc(n int64) { c.sum.Add(n) }

// gauge is exported when it has been set.
type gauge struct {
	bits  atomic.Uint64 // of a float64
	isSet atomic.Bool
}

func (g *gauge) Update(value float64) {
	g.bits.Store(math.Float64bits(value))
	g.isSet.Store(true)
}

func (o *observed) counter(name string, attributes attribute.Set) *counter {
	return o.counters.named(name, func(f *family[counter]) {
		// An error means that the name is invalid. The counter still counts, but may not be exported.
		_, _ = o.meter.Int64ObservableCounter(name, metric.WithInt64Callback(func(_ context.Context, to metric.Int64Observer) error {
			f.each(func(c *counter, attributes metric.MeasurementOption) {
				if sum := c.sum.Load(); sum > 0 {
					to.Observe(sum, attributes)
				}
			})
			return nil
		}))
	}).member(attributes)
}

func (o *observed) gauge(name string, attributes attribute.Set) *gauge {
	return o.gauges.named(name, func(f *family[gauge]) {
		_, _ = o.meter.Float64ObservableGauge(name, metric.WithFloat64Callback(func(_ context.Context, to metric.Float64Observer) error {
			f.each(func(g *gauge, attributes metric.MeasurementOption) {
				if g.isSet.Load() {
					to.Observe(math.Float64frombits(g.bits.Load()), attributes)
				}
			})
			return nil
		}))
	}).member(attributes)
}

// families are the counters or the gauges, by name.
type families[T any] struct {
	mu     sync.Mutex
	byName map[string]*family[T]
}

// named calls register for a new family.
func (fs *families[T]) named(name string, register func(*family[T])) *family[T] {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f := fs.byName[name]
	if f == nil {
		f = &family[T]{members: map[attribute.Distinct]member[T]{}}
		if fs.byName == nil {
			fs.byName = map[string]*family[T]{}
		}
		fs.byName[name] = f
		register(f)
	}
	return f
}

// family holds the counters or gauges of one name, by their attributes.
type family[T any] struct {
	mu      sync.Mutex
	members map[attribute.Distinct]member[T]
}

type member[T any] struct {
	value      *T
	attributes metric.MeasurementOption
}

// maxMembers is the cardinality limit of the OpenTelemetry SDK, 2,000, without its overflow series. Further
// members are not exported.
const maxMembers = 1999

func (f *family[T]) member(attributes attribute.Set) *T {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := attributes.Equivalent()
	found, ok := f.members[key]
	if !ok {
		found = member[T]{new(T), metric.WithAttributeSet(attributes)}
		if len(f.members) < maxMembers {
			f.members[key] = found
		}
	}
	return found.value
}

func (f *family[T]) each(visit func(*T, metric.MeasurementOption)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.members {
		visit(m.value, m.attributes)
	}
}
