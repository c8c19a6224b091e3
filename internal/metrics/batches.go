package metrics

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel/metric"
)

// Batches collects the observations of series until the next export. An instrument of OpenTelemetry takes about a
// microsecond for an observation, but ten times as long if the caches of the processor hold other data, as they do between
// two tokens of an answer. In a batch, only the first observation is that slow.
type Batches struct {
	mu   sync.Mutex // guards kept
	kept []Series
}

// maxBatch bounds the values in a batch of a histogram. A full batch is passed on at once.
const maxBatch = 32

// NewBatches passes the batches on when an export of the meter begins.
func NewBatches(meter metric.Meter) (*Batches, error) {
	b := &Batches{}
	// Each export calls the callbacks first. The instrument never has a value, so it is not exported.
	_, err := meter.Int64ObservableGauge("chronicle_batches", metric.WithInt64Callback(func(context.Context, metric.Int64Observer) error {
		b.flush()
		return nil
	}))
	return b, err
}

// Keep passes the batches of a series on at each export. Without it, [Series.Flush] does.
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

// Series has the observations of an instrument with the same labels. It is safe for concurrent use.
type Series interface {
	Observe(value float64)
	// Flush passes the batch on.
	Flush()
}

// Sum returns the series of a counter, or of a gauge that is a sum. It passes on the sum of its observations.
func Sum(add func(amount float64)) Series { return &sum{add: add} }

type sum struct {
	add func(float64)

	mu     sync.Mutex // guards amount
	amount float64
}

func (s *sum) Observe(amount float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.amount += amount
}

func (s *sum) Flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.amount != 0 {
		s.add(s.amount)
		s.amount = 0
	}
}

// Last returns the series of a gauge. It passes on the last observation.
func Last(update func(value float64)) Series { return &last{update: update} }

type last struct {
	update func(float64)

	mu    sync.Mutex // guards the fields below
	value float64
	isNew bool
}

func (l *last) Observe(value float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.value, l.isNew = value, true
}

func (l *last) Flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isNew {
		l.update(l.value)
		l.isNew = false
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
