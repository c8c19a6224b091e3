package metrics_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/seed-9ed7edd4/chronicle/internal/metrics"
)

func TestEachExportHasAllObservations(t *testing.T) {
	prometheus, otlp, during := sdkmetric.NewManualReader(), sdkmetric.NewManualReader(), sdkmetric.NewManualReader()
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(prometheus), sdkmetric.WithReader(otlp), sdkmetric.WithReader(during))
	worker, activities := metrics.New(provider), metrics.New(provider)
	const each = 100 // more than a batch
	readers := []*sdkmetric.ManualReader{prometheus, otlp}
	for n := range 4 {
		var all sync.WaitGroup
		for i := range 4 {
			m := []*metrics.Metrics{worker, activities}[i%2]
			all.Go(func() {
				for range each {
					m.TokenGap.Observe(1, "openai", "gpt-4o")
					m.Deltas.Add(1)
					m.Streams.Add(1)
					m.Streams.Add(-1)
				}
				m.Streams.Add(1)
			})
		}
		observed, exports := make(chan struct{}), sync.WaitGroup{}
		exports.Go(func() {
			for isObserving := true; isObserving; {
				assert.NoError(t, during.Collect(context.Background(), &metricdata.ResourceMetrics{}))
				select {
				case <-observed:
					isObserving = false
				default:
				}
			}
		})
		all.Wait()
		close(observed)
		exports.Wait()
		slices.Reverse(readers) // the first one flushes the batches for both
		for _, reader := range readers {
			found := read(t, reader)
			gaps := found["chronicle_token_gap"].(metricdata.Histogram[float64]).DataPoints[0]
			want := 4 * each * (n + 1)
			require.EqualValues(t, want, gaps.Count)
			require.EqualValues(t, want, gaps.Sum)
			require.EqualValues(t, want, found["chronicle_deltas"].(metricdata.Sum[float64]).DataPoints[0].Value)
			require.EqualValues(t, 4*(n+1), found["chronicle_streams_open"].(metricdata.Sum[float64]).DataPoints[0].Value)
			require.NotContains(t, found, "chronicle_batches")
		}
	}
}

func TestASeriesBeyondTheKeptOnesIsExported(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	m := metrics.New(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	const providers, models = 40, 30 // 1,200 series
	for range 2 {
		for p := range providers {
			for n := range models {
				m.Retries.Add(1, fmt.Sprint("provider-", p), fmt.Sprint("model-", n))
			}
		}
	}
	points := read(t, reader)["chronicle_retries"].(metricdata.Sum[float64]).DataPoints
	require.Len(t, points, providers*models)
	for _, point := range points {
		require.EqualValues(t, 2, point.Value)
	}
}

func TestASumOfZeroIsExported(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	m := metrics.New(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	m.Running.Add(1)
	m.Running.Add(-1)
	points := read(t, reader)["chronicle_requests_running"].(metricdata.Sum[float64]).DataPoints
	require.Len(t, points, 1)
	require.Zero(t, points[0].Value)
}

func TestAGaugeHasItsLastValue(t *testing.T) {
	var updates []float64
	s := metrics.Last(func(value float64) { updates = append(updates, value) })
	s.Flush()
	s.Observe(1)
	s.Observe(0)
	s.Flush()
	s.Flush()
	require.Equal(t, []float64{0}, updates)
}
