package telemetry

import (
	"slices"
	"strconv"
	"sync"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/opentelemetry"
)

// temporalHandler caches its handlers and instruments. The Temporal SDK asks for them in each call to the
// server, and making one sorts and hashes its tags.
type temporalHandler struct {
	base     opentelemetry.MetricsHandler // for timers, and for the attributes
	observed *observed
	tagged   cache[client.MetricsHandler]
	counters cache[client.MetricsCounter]
	gauges   cache[client.MetricsGauge]
	timers   cache[client.MetricsTimer]
}

func (h *temporalHandler) WithTags(tags map[string]string) client.MetricsHandler {
	var space [256]byte
	key := appendTags(space[:0], tags)
	if handler, ok := h.tagged.find(key); ok {
		return handler
	}
	tagged := h.base.WithTags(bounded(tags)).(opentelemetry.MetricsHandler)
	return h.tagged.add(key, &temporalHandler{base: tagged, observed: h.observed})
}

func (h *temporalHandler) Counter(name string) client.MetricsCounter {
	if counter, ok := h.counters.find([]byte(name)); ok {
		return counter
	}
	return h.counters.add([]byte(name), h.observed.counter(name, h.base.GetAttributes()))
}

func (h *temporalHandler) Gauge(name string) client.MetricsGauge {
	if gauge, ok := h.gauges.find([]byte(name)); ok {
		return gauge
	}
	return h.gauges.add([]byte(name), h.observed.gauge(name, h.base.GetAttributes()))
}

func (h *temporalHandler) Timer(name string) client.MetricsTimer {
	if timer, ok := h.timers.find([]byte(name)); ok {
		return timer
	}
	return h.timers.add([]byte(name), h.base.Timer(name))
}

// appendTags appends an encoding that is the same for equal tags only.
func appendTags(key []byte, tags map[string]string) []byte {
	var space [8]string
	names := space[:0]
	for name := range tags {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for _, text := range [...]string{name, tags[name]} {
			key = strconv.AppendInt(key, int64(len(text)), 10)
			key = append(append(key, ':'), text...)
		}
	}
	return key
}

// maxCached is the maximum number of values in a [cache]. The tags of the SDK have few values: operations, types, task queues.
const maxCached = 1000

// cache is a bounded set of values by key. It is safe for concurrent use.
type cache[T any] struct {
	mu     sync.RWMutex
	values map[string]T
}

func (c *cache[T]) find(key []byte) (value T, ok bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	value, ok = c.values[string(key)]
	return value, ok
}

// add adds a value and returns it. If another goroutine has added one for the key in the meantime, it
// returns that one.
func (c *cache[T]) add(key []byte, value T) T {
	c.mu.Lock()
	defer c.mu.Unlock()
	if earlier, ok := c.values[string(key)]; ok {
		return earlier
	}
	if c.values == nil {
		c.values = map[string]T{}
	}
	if len(c.values) < maxCached {
		c.values[string(key)] = value
	}
	return value
}
