package telemetry

import (
	"slices"
	"strconv"
	"sync"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/seed-9ed7edd4/chronicle/internal/metrics"
)

// temporalHandler caches its handlers and instruments, and collects observations in batches. The Temporal SDK asks
// for handlers and instruments in each call to the server, and making one sorts and hashes its tags.
type temporalHandler struct {
	base     client.MetricsHandler
	batches  *metrics.Batches // nil: observations are passed on at once
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
	base := h.base.WithTags(bounded(tags))
	if h.batches == nil {
		return base
	}
	return h.tagged.add(key, base, func() client.MetricsHandler { return &temporalHandler{base: base, batches: h.batches} })
}

func (h *temporalHandler) Counter(name string) client.MetricsCounter {
	if counter, ok := h.counters.find([]byte(name)); ok {
		return counter
	}
	base := h.base.Counter(name)
	return h.counters.add([]byte(name), base, func() client.MetricsCounter {
		return counter{h.keep(metrics.Sum(func(amount float64) { base.Inc(int64(amount)) }))}
	})
}

func (h *temporalHandler) Gauge(name string) client.MetricsGauge {
	if gauge, ok := h.gauges.find([]byte(name)); ok {
		return gauge
	}
	base := h.base.Gauge(name)
	return h.gauges.add([]byte(name), base, func() client.MetricsGauge { return gauge{h.keep(metrics.Last(base.Update))} })
}

func (h *temporalHandler) Timer(name string) client.MetricsTimer {
	if timer, ok := h.timers.find([]byte(name)); ok {
		return timer
	}
	base := h.base.Timer(name)
	return h.timers.add([]byte(name), base, func() client.MetricsTimer {
		return timer{h.keep(metrics.Values(func(nanoseconds float64) { base.Record(time.Duration(nanoseconds)) }))}
	})
}

func (h *temporalHandler) keep(s metrics.Series) metrics.Series {
	h.batches.Keep(s)
	return s
}

type counter struct{ metrics.Series }

func (c counter) Inc(n int64) { c.Observe(float64(n)) }

type gauge struct{ metrics.Series }

func (g gauge) Update(value float64) { g.Observe(value) }

type timer struct{ metrics.Series }

func (t timer) Record(d time.Duration) { t.Observe(float64(d)) }

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

// add makes a value, adds it and returns it. If another goroutine has added one for the key in the meantime, it
// returns that one; if the cache is full, it returns uncached.
func (c *cache[T]) add(key []byte, uncached T, made func() T) T {
	c.mu.Lock()
	defer c.mu.Unlock()
	if earlier, ok := c.values[string(key)]; ok {
		return earlier
	}
	if len(c.values) == maxCached {
		return uncached
	}
	if c.values == nil {
		c.values = map[string]T{}
	}
	value := made()
	c.values[string(key)] = value
	return value
}
