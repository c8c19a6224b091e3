package telemetry

import (
	"hash/maphash"
	"maps"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/seed-9ed7edd4/chronicle/internal/metrics"
)

// temporalHandler caches its handlers and instruments, and collects observations in batches. The Temporal SDK asks
// for handlers and instruments in each call to the server, and making one sorts and hashes its tags.
type temporalHandler struct {
	base     client.MetricsHandler
	batches  *metrics.Batches
	tagged   cache[tagsKey, client.MetricsHandler]
	counters cache[string, client.MetricsCounter]
	gauges   cache[string, client.MetricsGauge]
	timers   cache[string, client.MetricsTimer]
}

func (h *temporalHandler) WithTags(tags map[string]string) client.MetricsHandler {
	key := keyOf(tags)
	if handler, ok := h.tagged.find(key); ok {
		return handler
	}
	base := h.base.WithTags(bounded(tags))
	return h.tagged.add(key, base, func() client.MetricsHandler { return &temporalHandler{base: base, batches: h.batches} })
}

func (h *temporalHandler) Counter(name string) client.MetricsCounter {
	if counter, ok := h.counters.find(name); ok {
		return counter
	}
	base := h.base.Counter(name)
	return h.counters.add(name, base, func() client.MetricsCounter {
		return counter{h.keep(metrics.Sum(func(amount float64) { base.Inc(int64(amount)) }))}
	})
}

func (h *temporalHandler) Gauge(name string) client.MetricsGauge {
	if gauge, ok := h.gauges.find(name); ok {
		return gauge
	}
	base := h.base.Gauge(name)
	return h.gauges.add(name, base, func() client.MetricsGauge { return gauge{h.keep(metrics.Last(base.Update))} })
}

func (h *temporalHandler) Timer(name string) client.MetricsTimer {
	if timer, ok := h.timers.find(name); ok {
		return timer
	}
	base := h.base.Timer(name)
	return h.timers.add(name, base, func() client.MetricsTimer {
		return timer{h.keep(metrics.Values(func(nanoseconds float64) { base.Record(time.Duration(nanoseconds)) }))}
	})
}

func (h *temporalHandler) keep(s metrics.Series) metrics.Series {
	h.batches.Keep(s)
	return s
}

type counter struct{ metrics.Series }

func (c counter) Inc(n int64) {
	if n > 0 {
		c.Observe(float64(n))
	}
}

type gauge struct{ metrics.Series }

func (g gauge) Update(value float64) { g.Observe(value) }

type timer struct{ metrics.Series }

func (t timer) Record(d time.Duration) { t.Observe(float64(d)) }

// tagsKey is a hash of tags that does not depend on their order. Its two parts have different seeds, so that a
// collision of both is practically impossible.
type tagsKey [2]uint64

var tagsSeeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

func keyOf(tags map[string]string) (key tagsKey) {
	for name, value := range tags {
		for i, seed := range tagsSeeds {
			hash := maphash.String(seed, name)
			key[i] += hash * (bits.RotateLeft64(hash^maphash.String(seed, value), 32) | 1)
		}
	}
	return key
}

// maxCached is the maximum number of values in a [cache]. The tags of the SDK have few values: operations, types, task queues.
const maxCached = 1000

// cache is a bounded set of values by key. It is safe for concurrent use.
type cache[K comparable, T any] struct {
	mu     sync.Mutex              // guards replacements of values
	values atomic.Pointer[map[K]T] // a stored map is only replaced, never changed; nil: none
}

func (c *cache[K, T]) find(key K) (value T, ok bool) {
	if values := c.values.Load(); values != nil {
		value, ok = (*values)[key]
	}
	return value, ok
}

// add makes a value, adds it and returns it. If another goroutine has added one for the key in the meantime, it
// returns that one; if the cache is full, it returns uncached.
func (c *cache[K, T]) add(key K, uncached T, made func() T) T {
	c.mu.Lock()
	defer c.mu.Unlock()
	if earlier, ok := c.find(key); ok {
		return earlier
	}
	values := map[K]T{}
	if earlier := c.values.Load(); earlier != nil {
		if len(*earlier) == maxCached {
			return uncached
		}
		values = maps.Clone(*earlier)
	}
	value := made()
	values[key] = value
	c.values.Store(&values)
	return value
}
