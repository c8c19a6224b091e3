package metrics

import (
	"maps"
	"sync"
	"sync/atomic"
)

// maxCached is the maximum number of values in a [Cache].
const maxCached = 1000

// Cache is a bounded set of values by key. It is safe for concurrent use, and finding a value takes no lock.
type Cache[K comparable, V any] struct {
	mu     sync.Mutex              // guards replacements of values
	values atomic.Pointer[map[K]V] // a stored map is only replaced, never changed; nil: none
}

// Find returns the value of a key.
func (c *Cache[K, V]) Find(key K) (value V, ok bool) {
	if values := c.values.Load(); values != nil {
		value, ok = (*values)[key]
	}
	return value, ok
}

// Add makes a value, adds it and returns it. If another goroutine has added one for the key in the meantime, it
// returns that one; if the cache is full, it returns uncached.
func (c *Cache[K, V]) Add(key K, uncached V, made func() V) V {
	c.mu.Lock()
	defer c.mu.Unlock()
	if earlier, ok := c.Find(key); ok {
		return earlier
	}
	values := map[K]V{}
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
