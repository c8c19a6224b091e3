package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/seed-9ed7edd4/chronicle/event/eventtest/golden"
	"github.com/seed-9ed7edd4/chronicle/internal/metrics"
)

func read(t *testing.T, reader *sdkmetric.ManualReader) map[string]metricdata.Aggregation {
	t.Helper()
	var data metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(context.Background(), &data))
	found := map[string]metricdata.Aggregation{}
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			found[m.Name] = m.Data
		}
	}
	return found
}

func TestInstrumentsRecordWithLabels(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	m := metrics.New(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	m.Requests.Add(2, "openai", "gpt-4o", "completed")
	m.Requests.Add(0, "openai", "gpt-4o", "failed")
	m.Streams.Add(3)
	m.Streams.Add(-1)
	m.FirstToken.Observe(.25, "openai", "gpt-4o")

	found := read(t, reader)
	requests := found["chronicle_requests"].(metricdata.Sum[float64])
	require.Len(t, requests.DataPoints, 1, "an amount of 0 creates no series")
	require.EqualValues(t, 2, requests.DataPoints[0].Value)
	outcome, _ := requests.DataPoints[0].Attributes.Value("outcome")
	require.Equal(t, "completed", outcome.AsString())
	require.EqualValues(t, 2, found["chronicle_streams_open"].(metricdata.Sum[float64]).DataPoints[0].Value)
	require.EqualValues(t, 1, found["chronicle_first_token"].(metricdata.Histogram[float64]).DataPoints[0].Count)
}

func TestSeriesAreBounded(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	m := metrics.New(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	const limit, models = 2000, 3000
	for i := range models {
		m.Retries.Add(1, "openai", fmt.Sprint("model-", i))
	}
	var sum float64
	points := read(t, reader)["chronicle_retries"].(metricdata.Sum[float64]).DataPoints
	for _, point := range points {
		sum += point.Value
	}
	require.Len(t, points, limit)
	require.EqualValues(t, models, sum, "the others are in one series")
}

func TestAnExportHasThePreviousReading(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	m := metrics.New(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	type result struct {
		value float64
		err   error
	}
	results := make(chan result)
	stop := m.ApprovalsWaiting.Observe(func(ctx context.Context) (float64, error) {
		select {
		case r := <-results:
			return r.value, r.err
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	})
	waiting := func() (values []float64) {
		gauge, _ := read(t, reader)["chronicle_approvals_waiting"].(metricdata.Gauge[float64])
		for _, point := range gauge.DataPoints {
			values = append(values, point.Value)
		}
		return values
	}
	require.Empty(t, waiting(), "nothing has been read")
	for _, step := range []struct {
		result
		want []float64
	}{
		{result{value: 2}, []float64{2}},
		{result{value: 0}, []float64{0}},
		{result{err: errors.New("unavailable")}, nil}, // an unknown value is not 0
	} {
		results <- step.result
		require.Eventually(t, func() bool { return slices.Equal(step.want, waiting()) }, hang, time.Millisecond)
	}
	stop()
	require.Empty(t, waiting())
}

const hang = time.Minute

func TestAReadingCanCreateInstruments(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	m := metrics.New(provider)
	hasRead := make(chan struct{}, 2)
	stop := m.ApprovalsWaiting.Observe(func(context.Context) (float64, error) {
		// As the Temporal SDK does at the first failure of a request.
		_, err := provider.Meter("temporal").Int64Counter("failures")
		hasRead <- struct{}{}
		return 1, err
	})
	exported := make(chan error, 1)
	go func() { exported <- reader.Collect(context.Background(), &metricdata.ResourceMetrics{}) }()
	for range 2 {
		select {
		case err := <-exported:
			require.NoError(t, err)
		case <-hasRead:
		case <-time.After(hang):
			require.Fail(t, "the export hangs")
		}
	}
	stop()
}

func TestWrongNumberOfLabelsPanics(t *testing.T) {
	for _, m := range []*metrics.Metrics{metrics.New(sdkmetric.NewMeterProvider()), metrics.New(nil)} {
		require.Panics(t, func() { m.Retries.Add(1, "openai") })
	}
}

func TestMetricsAreDocumented(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Metrics\n\nWorkers and gateways export these with `--metrics`, see [Monitoring](operations.md#monitoring).\n\n| metric | meaning |\n|---|---|\n")
	for _, d := range metrics.New(nil).Definitions() {
		name := d.PrometheusName()
		if len(d.Labels) > 0 {
			name += "{" + strings.Join(d.Labels, ",") + "}"
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", name, strings.TrimSuffix(d.Description, "."))
	}
	golden.File(t, "../../docs/metrics.md", b.String())
}
