// Package intercept traces calls of Temporal with the tracing interceptor of its SDK.
//
// The interceptor of the SDK has one span for each run of a workflow, the parent of all its
// activities. A context runs for months, and each replay would start that span again. So this package
// uses the interceptor of the SDK for clients, activities, signals and updates, leaves out the span
// of the run, and lets the workflow choose the parent of each activity with [WithParent].
//
// A span context is stored in the header "_tracer-data" of a signal, an update, the start of a
// workflow or an activity, as in all SDKs of Temporal. Headers are not compared in a replay.
package intercept

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.temporal.io/sdk/contrib/opentelemetry"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/tracing"
)

// headerKey is that of all SDKs of Temporal.
const headerKey = "_tracer-data"

// spanKey is the key of the parent of an activity in the context of a workflow.
type spanKey struct{}

func newTracer(provider trace.TracerProvider) interceptor.Tracer {
	// The error is always nil.
	tracer, err := opentelemetry.NewTracer(opentelemetry.TracerOptions{
		Tracer:            provider.Tracer(tracing.Scope),
		TextMapPropagator: propagation.TraceContext{},
		DisableBaggage:    true,
		// A malformed header must not fail a workflow task.
		AllowInvalidParentSpans: true,
		// Clients query contexts while they wait.
		DisableQueryTracing: true,
		HeaderKey:           headerKey,
		SpanContextKey:      spanKey{},
		SpanStarter: func(ctx context.Context, t trace.Tracer, name string, options ...trace.SpanStartOption) trace.Span {
			_, span := t.Start(ctx, name, options...)
			return &redacted{Span: span}
		},
	})
	if err != nil {
		panic(err)
	}
	return tracer
}

// redacted removes secrets from the errors of a span. A cancellation is no error.
type redacted struct {
	trace.Span
	hasNoError bool
}

const maxError = 500 // bytes

func (s *redacted) RecordError(err error, options ...trace.EventOption) {
	s.hasNoError = err == nil || temporal.IsCanceledError(err)
	if !s.hasNoError && s.IsRecording() {
		s.Span.RecordError(errors.New(event.Redact(err.Error(), maxError)), options...)
	}
}

func (s *redacted) SetStatus(code codes.Code, description string) {
	if code != codes.Error || !s.hasNoError {
		s.Span.SetStatus(code, event.Redact(description, maxError))
	}
}

// Client returns the interceptor of a Temporal client. Its workers need [Worker], too.
func Client(provider trace.TracerProvider) interceptor.ClientInterceptor {
	return &clientInterceptor{traced: interceptor.NewTracingInterceptor(newTracer(provider))}
}

// clientInterceptor hides that the interceptor of the SDK would also intercept the workers of the client.
type clientInterceptor struct {
	interceptor.ClientInterceptorBase
	traced interceptor.ClientInterceptor
}

func (c *clientInterceptor) InterceptClient(next interceptor.ClientOutboundInterceptor) interceptor.ClientOutboundInterceptor {
	return c.traced.InterceptClient(next)
}

// Worker returns the interceptor of a worker. It must precede those that call [Received].
func Worker(provider trace.TracerProvider) interceptor.WorkerInterceptor {
	tracer := newTracer(provider)
	return &workerInterceptor{tracer: tracer, traced: interceptor.NewTracingInterceptor(tracer)}
}

type workerInterceptor struct {
	interceptor.WorkerInterceptorBase
	tracer interceptor.Tracer
	traced interceptor.WorkerInterceptor
}

func (w *workerInterceptor) InterceptActivity(ctx context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	return w.traced.InterceptActivity(ctx, next)
}

func (w *workerInterceptor) InterceptWorkflow(ctx workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	plain := &inbound{tracer: w.tracer}
	plain.Next = next
	selected := &selectedInbound{plain: plain}
	selected.Next = w.traced.InterceptWorkflow(ctx, plain)
	return selected
}

// selectedInbound bypasses the interceptor of the SDK, which is Next, for calls without a span.
type selectedInbound struct {
	interceptor.WorkflowInboundInterceptorBase
	plain *inbound
}

func (s *selectedInbound) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	return s.plain.ExecuteWorkflow(ctx, in)
}

// ValidateUpdate has no span: that of ExecuteUpdate follows.
func (s *selectedInbound) ValidateUpdate(ctx workflow.Context, in *interceptor.UpdateInput) error {
	return s.plain.ValidateUpdate(ctx, in)
}

// ExecuteUpdate has no span in a replay. The interceptor of the SDK would start one.
func (s *selectedInbound) ExecuteUpdate(ctx workflow.Context, in *interceptor.UpdateInput) (any, error) {
	if workflow.IsReplaying(ctx) {
		return s.plain.ExecuteUpdate(ctx, in)
	}
	return s.Next.ExecuteUpdate(ctx, in)
}

type inbound struct {
	interceptor.WorkflowInboundInterceptorBase
	tracer interceptor.Tracer
}

func (i *inbound) Init(next interceptor.WorkflowOutboundInterceptor) error {
	out := &outbound{tracer: i.tracer}
	out.Next = next
	return i.Next.Init(out)
}

// outbound gives activities the parent of [WithParent].
type outbound struct {
	interceptor.WorkflowOutboundInterceptorBase
	tracer interceptor.Tracer
}

func (o *outbound) ExecuteActivity(ctx workflow.Context, activityType string, args ...any) workflow.Future {
	return o.Next.ExecuteActivity(o.withSpan(ctx), activityType, args...)
}

func (o *outbound) ExecuteLocalActivity(ctx workflow.Context, activityType string, args ...any) workflow.Future {
	return o.Next.ExecuteLocalActivity(o.withSpan(ctx), activityType, args...)
}

func (o *outbound) withSpan(ctx workflow.Context) workflow.Context {
	parent, _ := ctx.Value(parentKey{}).(string)
	if parent == "" || workflow.IsReplaying(ctx) {
		return ctx
	}
	span := o.tracer.SpanFromContext(tracing.WithTraceparent(context.Background(), parent))
	if span == nil {
		return ctx
	}
	return workflow.WithValue(ctx, spanKey{}, span)
}

type parentKey struct{}

// WithParent sets the traceparent of the parent of activities. Without tracing, it has no effect.
func WithParent(ctx workflow.Context, parent string) workflow.Context {
	if parent == "" {
		return ctx
	}
	return workflow.WithValue(ctx, parentKey{}, parent)
}

// Received returns the traceparent in the header of a signal, an update or the start of a workflow; empty: none.
// The history contains the header, so a replay returns the same. Only an interceptor can call it: the SDK removes
// the header from the context of workflow code.
func Received(ctx workflow.Context) string {
	payload := interceptor.WorkflowHeader(ctx)[headerKey]
	if payload == nil {
		return ""
	}
	var data map[string]string
	if converter.GetDefaultDataConverter().FromPayload(payload, &data) != nil {
		return ""
	}
	// A client may send any text. The result is a valid traceparent or empty.
	return tracing.Traceparent(tracing.WithTraceparent(context.Background(), data["traceparent"]))
}
