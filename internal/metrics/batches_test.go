package metrics_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/seed-9ed7edd4/chronicle/internal/metrics"
)

func TestEachExportHasAllObservations(t *testing.T) {
	prometheus, otlp := sdkmetric.NewManualReader(), sdkmetric.NewManualReader()
	m := metrics.New(sdkmetric.NewMeterProvider(sdkmetric.WithReader(prometheus), sdkmetric.WithReader(otlp)))
	const each = 100 // more than a batch
	for n := range 3 {
		var all sync.WaitGroup
		for range 4 {
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
		all.Wait()
		for _, reader := range []*sdkmetric.ManualReader{prometheus, otlp} {
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

// BenchmarkObserve compares the time of an observation with that of OpenTelemetry.
func BenchmarkObserve(b *testing.B) {
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
	m := metrics.New(provider)
	b.Run("histogram", func(b *testing.B) {
		for b.Loop() {
			m.TokenGap.Observe(.01, "openai", "gpt-4o")
		}
	})
	b.Run("counter", func(b *testing.B) {
		for b.Loop() {
			m.Deltas.Add(1)
		}
	})
}
