package telemetry

import (
	"hash/maphash"
	"math/bits"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/seed-9ed7edd4/chronicle/internal/metrics"
)

// temporalHandler caches its handlers and instruments, and collects observations in batches. The Temporal SDK asks
// for handlers and instruments in each call to the server, and making one sorts and hashes its tags. The tags have few
// values: operations, types, task queues.
type temporalHandler struct {
	base     client.MetricsHandler
	batches  *metrics.Batches
	tagged   metrics.Cache[tagsKey, client.MetricsHandler]
	counters metrics.Cache[string, client.MetricsCounter]
	gauges   metrics.Cache[string, client.MetricsGauge]
	timers   metrics.Cache[string, client.MetricsTimer]
}

func (h *temporalHandler) WithTags(tags map[string]string) client.MetricsHandler {
	key := keyOf(tags)
	if handler, ok := h.tagged.Find(key); ok {
		return handler
	}
	base := h.base.WithTags(bounded(tags))
	return h.tagged.Add(key, base, func() client.MetricsHandler { return &temporalHandler{base: base, batches: h.batches} })
}

func (h *temporalHandler) Counter(name string) client.MetricsCounter {
	if counter, ok := h.counters.Find(name); ok {
		return counter
	}
	base := h.base.Counter(name)
	return h.counters.Add(name, base, func() client.MetricsCounter {
		return counter{h.keep(metrics.Sum(func(amount float64) { base.Inc(int64(amount)) }))}
	})
}

func (h *temporalHandler) Gauge(name string) client.MetricsGauge {
	if gauge, ok := h.gauges.Find(name); ok {
		return gauge
	}
	base := h.base.Gauge(name)
	return h.gauges.Add(name, base, func() client.MetricsGauge { return gauge{h.keep(metrics.Last(base.Update))} })
}

func (h *temporalHandler) Timer(name string) client.MetricsTimer {
	if timer, ok := h.timers.Find(name); ok {
		return timer
	}
	base := h.base.Timer(name)
	return h.timers.Add(name, base, func() client.MetricsTimer {
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
