package blobs_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs/blobstest"
)

func TestSpansDescribeOperations(t *testing.T) {
	exported := tracetest.NewInMemoryExporter()
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exported))
	defer func() { require.NoError(t, tracers.Shutdown(context.Background())) }()
	ctx, root := tracers.Tracer("test").Start(t.Context(), "root")
	bucket := blobstest.New(t)
	require.NoError(t, bucket.Store.WriteOnce(ctx, "logs/a.json", []byte("hello")))
	_, err := bucket.Store.Read(ctx, "logs/a.json")
	require.NoError(t, err)
	_, err = bucket.Store.Read(ctx, "logs/b.json")
	require.Error(t, err)
	bucket.Fail(errors.New("denied: Authorization: Bearer abcdefghijklmnop1234567890"))
	_, err = bucket.Store.Read(ctx, "logs/a.json")
	require.Error(t, err)

	type operation struct {
		name, blob, outcome string
		bytes               int64
		status              codes.Code
	}
	var got []operation
	for _, span := range exported.GetSpans() {
		require.Equal(t, trace.SpanKindClient, span.SpanKind)
		require.Equal(t, root.SpanContext().SpanID(), span.Parent.SpanID())
		require.NotContains(t, span.Status.Description, "abcdefghijklmnop")
		values := map[attribute.Key]attribute.Value{}
		for _, a := range span.Attributes {
			values[a.Key] = a.Value
		}
		got = append(got, operation{
			span.Name, values["chronicle.blob.name"].AsString(), values["chronicle.outcome"].AsString(), values["chronicle.blob.bytes"].AsInt64(), span.Status.Code,
		})
	}
	require.Equal(t, []operation{
		{"blob write", "logs/a.json", "ok", 5, codes.Unset},
		{"blob read", "logs/a.json", "ok", 5, codes.Unset},
		{"blob read", "logs/b.json", "missing", 0, codes.Unset},
		{"blob read", "logs/a.json", "failed", 0, codes.Error},
	}, got)
}
