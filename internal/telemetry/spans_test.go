package telemetry

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

func TestEndedSpansArePassedOnInBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder := tracetest.NewSpanRecorder()
		provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(&spanBatches{next: recorder}))
		tracer := provider.Tracer("test")
		end := func(spans int) {
			for range spans {
				_, span := tracer.Start(context.Background(), "operation")
				span.End()
			}
		}

		end(2)
		require.Len(t, recorder.Started(), 2)
		require.Empty(t, recorder.Ended())
		time.Sleep(maxSpanDelay)
		synctest.Wait()
		require.Len(t, recorder.Ended(), 2, "after the delay")

		end(maxEndedSpans)
		require.Len(t, recorder.Ended(), 2+maxEndedSpans, "at once if the batch is full")

		end(1)
		require.NoError(t, provider.ForceFlush(t.Context()))
		require.Len(t, recorder.Ended(), 3+maxEndedSpans, "when flushed")

		end(1)
		require.NoError(t, provider.Shutdown(t.Context()))
		require.Len(t, recorder.Ended(), 4+maxEndedSpans, "at the end of the program")
		time.Sleep(maxSpanDelay) // ends the timers
	})
}
