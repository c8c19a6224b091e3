package mcp

import (
	"context"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/seed-9ed7edd4/chronicle/internal/tracing"
)

// startSpan starts the span of a call, as in the semantic conventions for MCP:
// https://opentelemetry.io/docs/specs/semconv/gen-ai/mcp/.
func (s *server) startSpan(ctx context.Context, tool string) (context.Context, trace.Span) {
	ctx, span := tracing.Start(ctx, trace.SpanKindClient, "tools/call", tool)
	if span.IsRecording() {
		transport := "tcp"
		if s.config.Command != "" {
			transport = "pipe"
		}
		span.SetAttributes(semconv.McpMethodNameToolsCall, semconv.GenAIToolName(tool), semconv.GenAIOperationNameExecuteTool,
			semconv.NetworkTransportKey.String(transport), attribute.String("chronicle.mcp.server", s.config.Name))
	}
	return ctx, span
}

// setTraceContext passes the span of a call to the server in its metadata, with the keys of SEP-414:
// https://modelcontextprotocol.io/community/seps/414-request-meta.
func setTraceContext(ctx context.Context, params *sdk.CallToolParams) {
	if keys := tracing.Meta(ctx); keys != nil {
		meta := sdk.Meta{}
		for key, value := range keys {
			meta[key] = value
		}
		params.SetMeta(meta)
	}
}
