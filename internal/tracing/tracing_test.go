package tracing_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/seed-9ed7edd4/chronicle/internal/tracing"
)

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func newTracers(t testing.TB) (*sdktrace.TracerProvider, *tracetest.InMemoryExporter) {
	spans := tracetest.NewInMemoryExporter()
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	t.Cleanup(func() { require.NoError(t, tracers.Shutdown(context.Background())) })
	return tracers, spans
}

func TestNothingIsRecordedWithoutATrace(t *testing.T) {
	ctx, span := tracing.Start(context.Background(), trace.SpanKindClient, "blob", "read")
	require.False(t, span.IsRecording())
	tracing.Link(span, tracing.LinkRetries, parent)
	tracing.End(span, errors.New("failed"))
	require.Empty(t, tracing.Traceparent(ctx))
	require.Nil(t, tracing.Meta(ctx))
	header := http.Header{}
	tracing.Inject(ctx, header)
	require.Empty(t, header)
	_, span = tracing.StartRoot(ctx, nil, trace.SpanKindClient, "send", "")
	require.False(t, span.IsRecording())
}

func TestSpansBelowARootBelongToItsTrace(t *testing.T) {
	tracers, spans := newTracers(t)
	caller := http.Header{"Traceparent": {parent}}
	ctx, root := tracing.StartRoot(tracing.Extract(context.Background(), caller), tracers, trace.SpanKindServer, "POST", "/contexts")
	ctx, child := tracing.Start(ctx, trace.SpanKindClient, "chat", "gpt-4o")
	header := http.Header{}
	tracing.Inject(ctx, header)
	require.Equal(t, tracing.Traceparent(ctx), header.Get("traceparent"))
	require.Equal(t, map[string]string{"traceparent": tracing.Traceparent(ctx)}, tracing.Meta(ctx))
	tracing.Link(child, tracing.LinkRetries, parent)
	tracing.Link(child, tracing.LinkRetries, "malformed")
	tracing.End(child, errors.New("the key sk-abcdefghijklmnopqrstuvwxyz012345 is invalid"))
	tracing.End(root, fmt.Errorf("interrupted: %w", context.Canceled))
	got := spans.GetSpans()
	require.Equal(t, []string{"chat gpt-4o", "POST /contexts"}, []string{got[0].Name, got[1].Name})
	require.Equal(t, "0af7651916cd43dd8448eb211c80319c", got[0].SpanContext.TraceID().String())
	require.Equal(t, got[1].SpanContext.SpanID(), got[0].Parent.SpanID())
	require.Equal(t, "b7ad6b7169203331", got[1].Parent.SpanID().String())
	require.Len(t, got[0].Links, 1)
	require.Equal(t, "b7ad6b7169203331", got[0].Links[0].SpanContext.SpanID().String())
	require.Equal(t, codes.Error, got[0].Status.Code)
	require.NotContains(t, got[0].Status.Description, "sk-abc")
	require.Equal(t, codes.Unset, got[1].Status.Code, "a cancellation is no error")
}
