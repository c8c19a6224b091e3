package mcp_test

import (
	"context"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/seed-9ed7edd4/chronicle/tool/mcp"
)

func TestAServerReceivesTheTraceContext(t *testing.T) {
	t.Parallel()
	w := newWorker(t, nil, mcp.Server{Name: "a", Command: "unused"})
	s := newServer()
	var received any
	addTool(s, &sdk.Tool{Name: "t"}, func(r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		received = r.Params.GetMeta()["traceparent"]
		return textResult("ok")
	})
	w.inMemory(t, "a", s)
	w.value(t, mcp.SentName("a", "t"), `{}`)
	require.Nil(t, received, "without a trace")

	spans := tracetest.NewInMemoryExporter()
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	defer func() { require.NoError(t, tracers.Shutdown(context.Background())) }()
	ctx, root := tracers.Tracer("test").Start(deadline(t), "root")
	_, isError := w.call(ctx, mcp.SentName("a", "t"), `{}`)
	root.End()
	require.False(t, isError)
	span := spans.GetSpans()[0]
	require.Equal(t, "tools/call t", span.Name)
	require.Equal(t, "00-"+span.SpanContext.TraceID().String()+"-"+span.SpanContext.SpanID().String()+"-01", received)
}
