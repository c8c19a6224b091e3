package metrics

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"

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

	mu   sync.Mutex                        // guards replacements of kept
	kept atomic.Pointer[map[string]Series] // a stored map is only replaced, never changed; nil: none
}

// maxKept bounds the series with batches. An instrument with more series passes the observations of the others on at
// once.
const maxKept = 1000

func (l *labels) check(values []string) {
	if len(values) != len(l.keys) {
		panic("metrics: got the values " + strings.Join(values, ", ") + " for the labels " + strings.Join(l.keys, ", "))
	}
}

// of returns the series of the values.
func (l *labels) of(values []string) Series {
	l.check(values)
	if l.series == nil {
		return discarded{}
	}
	var space [256]byte
	key := space[:0]
	for _, value := range values {
		key = append(append(key, value...), 0)
	}
	if kept := l.kept.Load(); kept != nil {
		if s, ok := (*kept)[string(key)]; ok {
			return s
		}
	}
	attributes := make([]attribute.KeyValue, len(values))
	for i, value := range values {
		attributes[i] = attribute.String(l.keys[i], l.names.bound(l.keys[i], value))
	}
	return l.keep(string(key), l.series(metric.WithAttributeSet(attribute.NewSet(attributes...))))
}

func (l *labels) keep(key string, s Series) Series {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := map[string]Series{}
	if earlier := l.kept.Load(); earlier != nil {
		if s, ok := (*earlier)[key]; ok {
			return s
		}
		if len(*earlier) == maxKept {
			return direct{s}
		}
		kept = maps.Clone(*earlier)
	}
	kept[key] = s
	l.batches.Keep(s)
	l.kept.Store(&kept)
	return s
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
