// Package tracing makes spans with the OpenTelemetry API.
//
// A trace starts at a command of the starter, a request to the gateway, or an activity of the worker
// ([github.com/seed-9ed7edd4/chronicle/internal/tracing/intercept]). Everything below them calls [Start],
// which uses the tracer of the span in the context. Without one, [Start] costs a lookup in the context and
// records nothing.
package tracing

import (
	"context"
	"errors"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Scope is the OpenTelemetry instrumentation scope.
const Scope = "github.com/seed-9ed7edd4/chronicle"

// Attributes of spans, besides those of the semantic conventions.
const (
	Context = attribute.Key("chronicle.context")
	Request = attribute.Key("chronicle.request")
	Attempt = attribute.Key("chronicle.attempt")
	Outcome = attribute.Key("chronicle.outcome")
	Reason  = attribute.Key("chronicle.link") // of a link, see [Link]
)

const maxError = 500 // bytes of an error in a span

// Start starts a child of the span in ctx. Its name is the operation, followed by the target if there is
// one.
func Start(ctx context.Context, kind trace.SpanKind, operation, target string) (context.Context, trace.Span) {
	parent := trace.SpanFromContext(ctx)
	if !parent.SpanContext().IsValid() {
		return ctx, parent
	}
	return StartRoot(ctx, parent.TracerProvider(), kind, operation, target)
}

// StartRoot starts a span with the tracer of a provider: a child of the span in ctx, or a root. Nil:
// it records nothing.
func StartRoot(ctx context.Context, provider trace.TracerProvider, kind trace.SpanKind, operation, target string) (context.Context, trace.Span) {
	if provider == nil {
		return ctx, trace.SpanFromContext(ctx)
	}
	if target != "" {
		operation += " " + target
	}
	return provider.Tracer(Scope).Start(ctx, operation, trace.WithSpanKind(kind))
}

// End ends a span of [Start] with the outcome of its operation. A cancellation is no error.
func End(span trace.Span, err error) {
	if err != nil && span.IsRecording() && !errors.Is(err, context.Canceled) {
		span.SetStatus(codes.Error, event.Redact(err.Error(), maxError))
	}
	span.End()
}

var w3c propagation.TraceContext

// Inject adds the W3C headers of the span in ctx to a request. Baggage is not passed on.
func Inject(ctx context.Context, header http.Header) {
	if trace.SpanContextFromContext(ctx).IsValid() {
		w3c.Inject(ctx, propagation.HeaderCarrier(header))
	}
}

// Extract returns a context with the span that the W3C headers of a request name.
func Extract(ctx context.Context, header http.Header) context.Context {
	return w3c.Extract(ctx, propagation.HeaderCarrier(header))
}

// traceparent is the name of the W3C header, and of the key in maps.
const traceparent = "traceparent"

// Traceparent returns the W3C traceparent of the span in ctx; empty: none.
func Traceparent(ctx context.Context) string {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return ""
	}
	carrier := propagation.MapCarrier{}
	w3c.Inject(ctx, carrier)
	return carrier[traceparent]
}

// WithTraceparent returns a context with a remote span. An empty or malformed traceparent has no
// effect.
func WithTraceparent(ctx context.Context, parent string) context.Context {
	if parent == "" {
		return ctx
	}
	return w3c.Extract(ctx, propagation.MapCarrier{traceparent: parent})
}

// Meta returns the W3C keys of the span in ctx for the metadata of a message; nil: none.
func Meta(ctx context.Context) map[string]string {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return nil
	}
	carrier := propagation.MapCarrier{}
	w3c.Inject(ctx, carrier)
	return carrier
}

// The reasons of links.
const (
	LinkInterrupts = "interrupts" // the answer that new input interrupted
	LinkRetries    = "retries"    // the attempt that failed or was handed back
	LinkReplaces   = "replaces"   // the attempt whose worker died
	LinkFallback   = "falls_back" // the last attempt of the primary provider
	LinkForks      = "forks"      // the fork that created the context
	LinkInput      = "includes"   // other input that the turn answers
)

// Link adds a link to the span of a traceparent. An empty or malformed traceparent has no effect.
func Link(span trace.Span, reason, parent string) {
	if parent == "" || !span.IsRecording() {
		return
	}
	to := trace.SpanContextFromContext(WithTraceparent(context.Background(), parent))
	if to.IsValid() {
		span.AddLink(trace.Link{SpanContext: to, Attributes: []attribute.KeyValue{Reason.String(reason)}})
	}
}
