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

// labels finds the series of label values.
type labels struct {
	keys    []string
	names   *bounds
	series  func(metric.MeasurementOption) Series // nil: the instrument records nothing
	batches *Batches

	mu   sync.RWMutex // guards kept
	kept map[string]Series
}

// maxKept bounds the series with batches. An instrument with more series passes the observations of the others on at
// once.
const maxKept = 1000

func (l *labels) observe(value float64, of []string) {
	if len(of) != len(l.keys) {
		panic("metrics: got the values " + strings.Join(of, ", ") + " for the labels " + strings.Join(l.keys, ", "))
	}
	if l.series == nil {
		return
	}
	s, isKept := l.find(of)
	s.Observe(value)
	if !isKept {
		s.Flush()
	}
}

func (l *labels) find(values []string) (s Series, isKept bool) {
	var space [256]byte
	key := space[:0]
	for _, value := range values {
		key = append(append(key, value...), 0)
	}
	l.mu.RLock()
	s, isKept = l.kept[string(key)]
	l.mu.RUnlock()
	if isKept {
		return s, true
	}
	attributes := make([]attribute.KeyValue, len(values))
	for i, value := range values {
		attributes[i] = attribute.String(l.keys[i], l.names.bound(l.keys[i], value))
	}
	s = l.series(metric.WithAttributeSet(attribute.NewSet(attributes...)))
	l.mu.Lock()
	defer l.mu.Unlock()
	if earlier, ok := l.kept[string(key)]; ok {
		return earlier, true
	}
	if len(l.kept) == maxKept {
		return s, false
	}
	if l.kept == nil {
		l.kept = map[string]Series{}
	}
	l.kept[string(key)] = s
	l.batches.Keep(s)
	return s, true
}

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
