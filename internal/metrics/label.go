package metrics

import (
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// MaxNames bounds the distinct values of a label. Other replaces further ones.
const (
	MaxNames = 100
	Other    = "other"
)

const maxLabels = 3 // of an instrument

// labels finds the series of label values.
type labels struct {
	keys    []string
	names   *bounds
	series  func(metric.MeasurementOption) Series // nil: the instrument records nothing
	batches *Batches
	cache   Cache[[maxLabels]string, Series]
}

func (l *labels) check(values []string) {
	if len(values) != len(l.keys) {
		panic("metrics: got the values " + strings.Join(values, ", ") + " for the labels " + strings.Join(l.keys, ", "))
	}
}

// of returns the series of the values. Observations of series that no longer fit into the cache are not
// batched: each is passed on at once.
func (l *labels) of(values []string) Series {
	l.check(values)
	if l.series == nil {
		return discarded{}
	}
	var key [maxLabels]string
	copy(key[:], values)
	if s, ok := l.cache.Find(key); ok {
		return s
	}
	attributes := make([]attribute.KeyValue, len(values))
	for i, value := range values {
		attributes[i] = attribute.String(l.keys[i], l.names.bound(l.keys[i], value))
	}
	s := l.series(metric.WithAttributeSet(attribute.NewSet(attributes...)))
	return l.cache.Add(key, direct{s}, func() Series {
		l.batches.Keep(s)
		return s
	})
}

// direct passes each observation on at once.
type direct struct{ Series }

func (d direct) Observe(value float64) {
	d.Series.Observe(value)
	d.Flush()
}

type discarded struct{}

func (discarded) Observe(float64) {}

func (discarded) Flush() {}

// bounds limits the values of each label, over all instruments.
type bounds struct {
	mu   sync.RWMutex
	seen map[string]map[string]bool
}

func (b *bounds) bound(key, value string) string {
	b.mu.RLock()
	seen, isFull := b.seen[key][value], len(b.seen[key]) >= MaxNames
	b.mu.RUnlock()
	switch {
	case seen:
		return value
	case isFull:
		return Other
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.seen[key] == nil {
		b.seen[key] = map[string]bool{}
	}
	if len(b.seen[key]) >= MaxNames && !b.seen[key][value] {
		return Other
	}
	b.seen[key][value] = true
	return value
}
