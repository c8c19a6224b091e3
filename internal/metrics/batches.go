package metrics

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel/metric"
)

// Batches collects the observations of series until the next export. An instrument of OpenTelemetry takes about a
// microsecond for an observation, but ten times as long if the CPU caches hold other data, as they do between two
// tokens of an answer. In a batch, only the first observation is that slow.
type Batches struct {
	mu   sync.Mutex // guards kept
	kept []Series
}

// maxBatch bounds the values in a batch of a histogram. A full batch is passed on at once.
const maxBatch = 32

// NewBatches returns batches for the instruments of a meter. Each export of the meter begins by passing them on.
func NewBatches(meter metric.Meter) (*Batches, error) {
	// Each export calls the callbacks first. A callback needs an instrument. This one never has a value, so it is not
	// exported.
	instrument, err := meter.Int64ObservableGauge("chronicle_batches")
	if err != nil {
		return nil, err
	}
	b := &Batches{}
	_, err = meter.RegisterCallback(func(context.Context, metric.Observer) error {
		b.flush()
		return nil
	}, instrument)
	return b, err
}

// Keep registers a series, so that each export passes its batch on.
func (b *Batches) Keep(s Series) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kept = append(b.kept, s)
}

func (b *Batches) flush() {
	b.mu.Lock()
	kept := b.kept
	b.mu.Unlock()
	for _, s := range kept {
		s.Flush()
	}
}

// Series collects the observations of one instrument with the same label values. It is safe for concurrent use.
type Series interface {
	Observe(value float64)
	// Flush passes the batch on. A registered series is also flushed by each export.
	Flush()
}

// Sum returns the series of a counter or of an up-down counter. It passes on the sum of its observations.
func Sum(add func(amount float64)) Series {
	return &single{pass: add, merge: func(sum, amount float64) float64 { return sum + amount }}
}

// Last returns the series of a gauge. It passes on the last observation.
func Last(update func(value float64)) Series {
	return &single{pass: update, merge: func(_, value float64) float64 { return value }}
}

// single merges the observations of a batch into one value.
type single struct {
	pass  func(float64)
	merge func(held, value float64) float64

	mu    sync.Mutex // guards the fields below
	held  float64    // 0 in an empty batch
	isNew bool
}

func (s *single) Observe(value float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held, s.isNew = s.merge(s.held, value), true
}

func (s *single) Flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isNew {
		s.pass(s.held)
		s.held, s.isNew = 0, false
	}
}

// Values returns the series of a histogram. It passes on all observations.
func Values(record func(value float64)) Series {
	return &values{record: record, held: make([]float64, 0, maxBatch)}
}

type values struct {
	record func(float64)

	mu   sync.Mutex // guards held
	held []float64
}

func (v *values) Observe(value float64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.held = append(v.held, value)
	if len(v.held) == maxBatch {
		v.pass()
	}
}

func (v *values) Flush() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.pass()
}

func (v *values) pass() {
	for _, value := range v.held {
		v.record(value)
	}
	v.held = v.held[:0]
}
