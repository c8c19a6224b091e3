package rig

import (
	"reflect"
	"runtime"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/seed-9ed7edd4/chronicle/internal/metrics"
)

func TestTheCPUOfMetricsIsThatOfStacksWithTheirFunctions(t *testing.T) {
	location := func(functions ...string) *profile.Location { // several: inlined
		l := &profile.Location{}
		for _, name := range functions {
			l.Line = append(l.Line, profile.Line{Function: &profile.Function{Name: name}})
		}
		return l
	}
	nameOf := func(function any) string { return runtime.FuncForPC(reflect.ValueOf(function).Pointer()).Name() }
	observe, collect := nameOf((*metrics.Histogram).Observe), nameOf((*sdkmetric.ManualReader).Collect)
	const rpc = "go.temporal.io/sdk/internal/common/metrics.recordRequestEnd"
	sample := func(count int64, stack ...*profile.Location) *profile.Sample {
		return &profile.Sample{Location: stack, Value: []int64{count, count * int64(10*time.Millisecond)}}
	}
	samples, used := metricsCPU(&profile.Profile{Sample: []*profile.Sample{
		sample(1, location("runtime.mallocgc"), location(collect), location(observe)), // once
		sample(2, location("sync.(*Mutex).Lock", observe), location("main.main")),
		sample(4, location(rpc), location("main.main")), // also runs without metrics
	}})
	require.EqualValues(t, 3, samples)
	require.Equal(t, 30*time.Millisecond, used)
}
