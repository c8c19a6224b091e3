package metrics

import (
	"slices"
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

// labels converts values to attributes, which it caches.
type labels struct {
	keys  []string
	names *bounds
	sets  sync.Map // of metric.MeasurementOption, by the joined values
}

func (l *labels) of(values []string) metric.MeasurementOption {
	if len(values) != len(l.keys) {
		panic("metrics: got the values " + strings.Join(values, ", ") + " for the labels " + strings.Join(l.keys, ", "))
	}
	bounded := slices.Clone(values)
	for i, key := range l.keys {
		bounded[i] = l.names.bound(key, values[i])
	}
	key := strings.Join(bounded, "\x00")
	if option, ok := l.sets.Load(key); ok {
		return option.(metric.MeasurementOption)
	}
	attributes := make([]attribute.KeyValue, len(bounded))
	for i, value := range bounded {
		attributes[i] = attribute.String(l.keys[i], value)
	}
	option := metric.WithAttributeSet(attribute.NewSet(attributes...))
	l.sets.Store(key, option)
	return option
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
