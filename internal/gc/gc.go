// Package gc makes garbage collections of small heaps less frequent.
//
// By default the Go runtime collects when the heap has doubled. For a worker with 50 busy contexts,
// which have about 20 MiB of live objects, [Relax] saves 6 % of the processor time. Large heaps are mostly text, which
// the collector does not scan, so they are collected earlier.
package gc

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// MinGrowth is the minimum number of bytes by which the heap of a program grows between two collections
// after [Relax].
const MinGrowth = 64 << 20

const (
	defaultPercent = 100 // of GOGC
	// minPercent is the growth of large heaps. With 1,000 cached contexts of 1 MB it saves a third of the memory.
	minPercent = 25
)

// Relax lets the heap grow by at least [MinGrowth] between two collections. It has no effect if the
// environment sets GOGC. The runtime still collects earlier if the program reaches GOMEMLIMIT.
func Relax(getenv func(string) string) {
	if getenv("GOGC") == "" {
		adjustAfterGC(adjust(defaultPercent))
	}
}

// adjustAfterGC adjusts the percentage after each collection. The finalizer of an unreachable object
// runs once after the next collection.
func adjustAfterGC(percent int) {
	type sentinel struct{ _ *byte }
	runtime.SetFinalizer(&sentinel{}, func(*sentinel) { adjustAfterGC(adjust(percent)) })
}

// adjust sets the percentage for the live heap of the last collection, unless it is nearly the current
// one: setting it stops the program for some microseconds.
func adjust(current int) int {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	percent := percentOf(sample[0].Value.Uint64())
	if difference := percent - current; -current < 10*difference && 10*difference < current {
		return current
	}
	debug.SetGCPercent(percent)
	return percent
}

// minLive is the smallest live heap that percentOf assumes. It bounds the percentage, which also scales
// the minimum heap of the runtime, 4 MiB.
const minLive = 4 << 20

func percentOf(live uint64) int {
	return int(max(minPercent, 100*MinGrowth/max(live, minLive)))
}
