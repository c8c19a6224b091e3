package gc_test

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/internal/gc"
)

const hang = time.Minute

func percent() uint64 {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

func TestThePercentageFollowsTheLiveHeap(t *testing.T) {
	t.Cleanup(func() { debug.SetGCPercent(100) })
	gc.Relax(func(string) string { return "50" })
	require.EqualValues(t, 100, percent(), "the runtime has read GOGC itself")
	gc.Relax(func(string) string { return "" })
	awaitPercent := func(isExpected func(uint64) bool) {
		t.Helper()
		require.Eventually(t, func() bool {
			runtime.GC()
			return isExpected(percent())
		}, hang, time.Millisecond)
	}
	awaitPercent(func(p uint64) bool { return p > 500 })
	live := make([]byte, 2*gc.MinGrowth)
	awaitPercent(func(p uint64) bool { return p < 60 })
	runtime.KeepAlive(live)
	awaitPercent(func(p uint64) bool { return p > 500 })
}

func TestPercentOf(t *testing.T) {
	for live, want := range map[uint64]int{0: 1600, 1 << 20: 1600, 4 << 20: 1600, 8 << 20: 800, 32 << 20: 200, 64 << 20: 100, 128 << 20: 50, 1 << 30: 25} {
		require.Equal(t, want, gc.PercentOf(live), live)
	}
}
