package mcp_test

import (
	"context"
	"net/http"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/seed-9ed7edd4/chronicle/tool/mcp"
)

func TestAServerReceivesTheTraceContext(t *testing.T) {
	t.Parallel()
	var received any
	w := inProcess(t, "t", func(r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		received = r.Params.GetMeta()["traceparent"]
		return textResult("ok")
	})
	w.value(t, mcp.SentName("a", "t"), `{}`)
	require.Nil(t, received, "without a trace")

	require.Equal(t, w.traced(t, "t"), received)
}

func TestAnHTTPServerReceivesTheTraceContext(t *testing.T) {
	t.Parallel()
	withEachProtocol(t, func(t *testing.T, protocol func(http.Handler) http.Handler) {
		s := newServer()
		var received string
		addTool(s, &sdk.Tool{Name: "t"}, func(r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			received = r.Extra.Header.Get("traceparent")
			return textResult("ok")
		})
		w := overHTTP(t, serveHTTP(t, protocol(handlerOf(s))), nil)
		w.value(t, mcp.SentName("a", "t"), `{}`)
		require.Empty(t, received, "without a trace")
		require.Equal(t, w.traced(t, "t"), received)
	})
}

// traced calls a tool of server "a" in a trace and returns the traceparent of the call.
func (w *worker) traced(t *testing.T, tool string) string {
	t.Helper()
	spans := tracetest.NewInMemoryExporter()
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	defer func() { require.NoError(t, tracers.Shutdown(context.Background())) }()
	ctx, root := tracers.Tracer("test").Start(deadline(t), "root")
	_, isError := w.call(ctx, mcp.SentName("a", tool), `{}`)
	root.End()
	require.False(t, isError)
	span := spans.GetSpans()[0]
	require.Equal(t, "tools/call "+tool, span.Name)
	return "00-" + span.SpanContext.TraceID().String() + "-" + span.SpanContext.SpanID().String() + "-01"
}
