package gateway

import (
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/tracing"
)

// httpRequestID is the X-Request-Id, which the log contains, too.
const httpRequestID = attribute.Key("chronicle.http.request_id")

// traced starts a span for each request about one context, except streams, which last for hours. It
// continues the trace of the W3C headers of the request.
func (g *Gateway) traced(pattern string, next http.HandlerFunc) http.HandlerFunc {
	if g.options.Tracers == nil || !strings.Contains(pattern, "{name}") {
		return next
	}
	method, route, _ := strings.Cut(pattern, " ")
	return func(w http.ResponseWriter, r *http.Request) {
		if wantsStream(r) {
			next(w, r)
			return
		}
		ctx, span := tracing.StartRoot(tracing.Extract(r.Context(), r.Header), g.options.Tracers, trace.SpanKindServer, method, route)
		defer span.End()
		out, _ := w.(*response)
		if out != nil {
			out.trace = span.SpanContext().TraceID().String()
		}
		next(w, r.WithContext(ctx))
		if span.IsRecording() {
			span.SetAttributes(semconv.HTTPRequestMethodKey.String(method), semconv.HTTPRoute(route),
				tracing.Context.String(event.JoinTenant(tenantOf(r).name, r.PathValue("name"))), httpRequestID.String(requestID(r)))
			if out != nil {
				span.SetAttributes(semconv.HTTPResponseStatusCode(out.status))
				if out.status >= http.StatusInternalServerError {
					span.SetStatus(codes.Error, http.StatusText(out.status))
				}
			}
		}
	}
}
