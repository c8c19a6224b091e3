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

func endSpans(provider *sdktrace.TracerProvider, n int) {
	for range n {
		_, span := provider.Tracer("test").Start(context.Background(), "operation")
		span.End()
	}
}

func TestEndedSpansArePassedOnInBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder := tracetest.NewSpanRecorder()
		provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(&spanBatches{next: recorder}))
		wait := func(d time.Duration) {
			time.Sleep(d)
			synctest.Wait()
		}

		endSpans(provider, 2)
		require.Len(t, recorder.Started(), 2)
		wait(maxSpanDelay - 1)
		require.Empty(t, recorder.Ended())
		wait(1)
		require.Len(t, recorder.Ended(), 2, "after the delay")

		endSpans(provider, maxEndedSpans)
		require.Len(t, recorder.Ended(), 2+maxEndedSpans, "at once if the batch is full")

		wait(maxSpanDelay / 2)
		endSpans(provider, 1)
		wait(maxSpanDelay / 2)
		require.Len(t, recorder.Ended(), 2+maxEndedSpans, "not with the delay of the batch before")

		require.NoError(t, provider.ForceFlush(t.Context()))
		require.Len(t, recorder.Ended(), 3+maxEndedSpans, "when flushed")

		endSpans(provider, 1)
		require.NoError(t, provider.Shutdown(t.Context()))
		require.Len(t, recorder.Ended(), 4+maxEndedSpans, "at the end of the program")
	})
}

// heldProcessor holds ended spans until release is closed.
type heldProcessor struct {
	*tracetest.SpanRecorder
	entered, release chan struct{}
}

func (h *heldProcessor) OnEnd(span sdktrace.ReadOnlySpan) {
	select {
	case h.entered <- struct{}{}:
	default:
	}
	<-h.release
	h.SpanRecorder.OnEnd(span)
}

func TestShutdownAwaitsABatchThatIsBeingPassedOn(t *testing.T) {
	held := &heldProcessor{tracetest.NewSpanRecorder(), make(chan struct{}, 1), make(chan struct{})}
	batches := &spanBatches{next: held}
	go endSpans(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(batches)), maxEndedSpans)
	<-held.entered
	ended := make(chan error)
	go func() { ended <- batches.Shutdown(context.Background()) }()
	select {
	case <-ended:
		t.Fatal("shut down before the spans were passed on")
	case <-time.After(20 * time.Millisecond): // no event shows that Shutdown waits for a lock
	}
	close(held.release)
	require.NoError(t, <-ended)
	require.Len(t, held.Ended(), maxEndedSpans)
}
