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

// labels converts values to attributes.
type labels struct {
	keys  []string
	names *bounds

	mu   sync.RWMutex // guards kept
	kept map[string]*options
}

// options are the attributes of an observation, for both kinds of instruments.
type options struct {
	add    []metric.AddOption
	record []metric.RecordOption
}

// maxKept bounds the combinations of values whose options are cached.
const maxKept = 1000

func (l *labels) check(values []string) {
	if len(values) != len(l.keys) {
		panic("metrics: got the values " + strings.Join(values, ", ") + " for the labels " + strings.Join(l.keys, ", "))
	}
}

func (l *labels) of(values []string) *options {
	var space [256]byte
	key := space[:0]
	for _, value := range values {
		key = append(append(key, value...), 0)
	}
	l.mu.RLock()
	found := l.kept[string(key)]
	l.mu.RUnlock()
	if found != nil {
		return found
	}
	attributes := make([]attribute.KeyValue, len(values))
	for i, value := range values {
		attributes[i] = attribute.String(l.keys[i], l.names.bound(l.keys[i], value))
	}
	set := metric.WithAttributeSet(attribute.NewSet(attributes...))
	made := &options{add: []metric.AddOption{set}, record: []metric.RecordOption{set}}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.kept) < maxKept {
		if l.kept == nil {
			l.kept = map[string]*options{}
		}
		l.kept[string(key)] = made
	}
	return made
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
