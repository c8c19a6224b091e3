package telemetry

import (
	"context"
	"sync"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Limits of a batch of ended spans, and of the time that a span waits in it.
const (
	maxEndedSpans = 64
	maxSpanDelay  = time.Second
)

// spanBatches passes ended spans on in batches. The batch processor of the OpenTelemetry SDK wakes a goroutine for
// each span, which delays what follows the span, such as a request to a model.
type spanBatches struct {
	next sdktrace.SpanProcessor // OnEnd does not block

	mu    sync.Mutex // guards the fields below, and is held until a batch is passed on
	ended []sdktrace.ReadOnlySpan
	timer *time.Timer // of the batch; nil: it is empty
}

func (b *spanBatches) OnStart(parent context.Context, span sdktrace.ReadWriteSpan) {
	b.next.OnStart(parent, span)
}

func (b *spanBatches) OnEnd(span sdktrace.ReadOnlySpan) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = append(b.ended, span)
	if b.timer == nil {
		b.timer = time.AfterFunc(maxSpanDelay, b.flush)
	}
	if len(b.ended) == maxEndedSpans {
		b.passOn()
	}
}

func (b *spanBatches) flush() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.passOn()
}

func (b *spanBatches) passOn() {
	if b.timer == nil {
		return
	}
	b.timer.Stop() // if it has already fired, the next batch is passed on early
	for _, span := range b.ended {
		b.next.OnEnd(span)
	}
	clear(b.ended)
	b.ended, b.timer = b.ended[:0], nil
}

func (b *spanBatches) ForceFlush(ctx context.Context) error {
	b.flush()
	return b.next.ForceFlush(ctx)
}

func (b *spanBatches) Shutdown(ctx context.Context) error {
	b.flush()
	return b.next.Shutdown(ctx)
}
