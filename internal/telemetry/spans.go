package telemetry

import (
	"context"
	"sync"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

const (
	maxEndedSpans = 64
	maxSpanDelay  = time.Second
)

// spanBatches passes ended spans on in batches. The batch processor of the OpenTelemetry SDK wakes a goroutine for
// each span, which delays what follows the span, such as a request to a model.
type spanBatches struct {
	next sdktrace.SpanProcessor

	mu    sync.Mutex // guards ended
	ended []sdktrace.ReadOnlySpan
}

func (b *spanBatches) OnStart(parent context.Context, span sdktrace.ReadWriteSpan) {
	b.next.OnStart(parent, span)
}

func (b *spanBatches) OnEnd(span sdktrace.ReadOnlySpan) {
	b.mu.Lock()
	b.ended = append(b.ended, span)
	n := len(b.ended)
	b.mu.Unlock()
	switch n {
	case 1:
		time.AfterFunc(maxSpanDelay, b.flush)
	case maxEndedSpans:
		b.flush()
	}
}

func (b *spanBatches) flush() {
	b.mu.Lock()
	ended := b.ended
	b.ended = nil
	b.mu.Unlock()
	for _, span := range ended {
		b.next.OnEnd(span)
	}
}

func (b *spanBatches) ForceFlush(ctx context.Context) error {
	b.flush()
	return b.next.ForceFlush(ctx)
}

func (b *spanBatches) Shutdown(ctx context.Context) error {
	b.flush()
	return b.next.Shutdown(ctx)
}
