package gateway_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
)

func TestARequestContinuesTheTraceOfItsClient(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	defer func() { require.NoError(t, tracers.Shutdown(context.Background())) }()
	var operators bytes.Buffer
	w := serve(t, fakeClient{log: newLog(event.SessionStarted{})}, gateway.Options{
		Tracers: tracers, Log: slog.New(slog.NewJSONHandler(&operators, nil)),
	})
	ask(t.Context(), w.gateway, http.MethodGet, "/healthz", "")
	require.Empty(t, spans.GetSpans())
	ask(t.Context(), w.gateway, http.MethodGet, "/contexts/demo/state", "",
		"Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "X-Request-Id", "r1")
	require.Contains(t, operators.String(), `"context":"demo","trace":"0af7651916cd43dd8448eb211c80319c"}`)
	require.Len(t, spans.GetSpans(), 1)
	span := spans.GetSpans()[0]
	require.Equal(t, "GET /contexts/{name}/state", span.Name)
	require.Equal(t, "0af7651916cd43dd8448eb211c80319c", span.SpanContext.TraceID().String())
	require.Equal(t, "b7ad6b7169203331", span.Parent.SpanID().String())
	require.ElementsMatch(t, []attribute.KeyValue{
		attribute.String("http.request.method", "GET"), attribute.String("http.route", "/contexts/{name}/state"),
		attribute.Int("http.response.status_code", 200), attribute.String("chronicle.context", "demo"),
		attribute.String("chronicle.http.request_id", "r1"),
	}, span.Attributes)
}
