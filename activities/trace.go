package activities

import (
	"context"
	"encoding/json"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"
	"go.temporal.io/sdk/temporal"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/hook"
	"github.com/seed-9ed7edd4/chronicle/internal/tracing"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// describe adds the attributes and links of an attempt to the span of its activity. Previous is the
// traceparent of the attempt before it in this process; empty: unknown.
func (in GenerateInput) describe(span trace.Span, number int, isFirst bool, previous string, lost *LostAttempt) {
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(semconv.GenAIConversationID(in.ContextName),
		tracing.Context.String(in.ContextName), tracing.Request.String(in.RequestID), tracing.Attempt.Int(number))
	switch {
	case isFirst:
		for _, link := range in.Links {
			tracing.Link(span, link.Reason, link.Trace)
		}
	case previous != "":
		tracing.Link(span, tracing.LinkRetries, previous)
	case lost != nil && lost.Ended:
		tracing.Link(span, tracing.LinkRetries, lost.Trace)
	case lost != nil:
		tracing.Link(span, tracing.LinkReplaces, lost.Trace)
	}
}

// traceResult adds the traceparent of the attempt to the result, unless the answer is complete. The workflow
// links later attempts to it.
func (a *attempt) traceResult() {
	if a.err == nil && a.result.Outcome != reducer.Completed {
		a.result.Trace = a.trace
	}
}

// traceOutcome adds the outcome to the span of an activity that waited for the attempt.
func (a *attempt) traceOutcome(ctx context.Context) {
	span, outcome := trace.SpanFromContext(ctx), a.result.Outcome
	if a.err != nil {
		outcome = reducer.Failed
		a.failSpan(span, a.err)
	}
	span.SetAttributes(tracing.Outcome.String(outcomeName(outcome)))
}

const maxSpanError = 500 // bytes

// failSpan sets the status of the span of an activity. The interceptor of the SDK does not do that for
// benign errors.
func (a *Activities) failSpan(span trace.Span, err error) {
	if span.IsRecording() {
		span.SetStatus(codes.Error, event.Redact(a.traceable(err).Error(), maxSpanError))
	}
}

// traceable returns err, or another error if err may quote content that spans omit.
func (a *Activities) traceable(err error) error {
	var failed *temporal.ApplicationError
	var details Failure
	switch {
	case a.options.TraceContent || !errors.As(err, &failed):
		return err
	case failed.Type() == failedTool:
		return errFailedTool
	case failed.HasDetails() && failed.Details(&details) == nil && details.Kind.MayQuote():
		return errors.New(string(details.Kind))
	}
	return err
}

var errFailedTool = errors.New("the tool failed")

// startCall starts the span of a tool call.
func (a *Activities) startCall(ctx context.Context, in CallToolInput) (context.Context, trace.Span) {
	ctx, span := tracing.Start(ctx, trace.SpanKindInternal, "execute_tool", in.Name)
	if span.IsRecording() {
		span.SetAttributes(semconv.GenAIOperationNameExecuteTool, semconv.GenAIToolName(in.Name), semconv.GenAIToolType("function"),
			semconv.GenAIToolCallID(in.ToolCallID), semconv.GenAIConversationID(in.ContextName),
			tracing.Context.String(in.ContextName), tracing.Request.String(in.RequestID))
		if a.options.TraceContent {
			span.SetAttributes(content(semconv.GenAIToolCallArgumentsKey, in.Arguments))
		}
	}
	return ctx, span
}

func (a *Activities) endCall(span trace.Span, result ToolCallResult, err error) {
	if span.IsRecording() {
		outcome := callOutcome(result, err)
		span.SetAttributes(tracing.Outcome.String(outcome))
		if outcome != "ok" {
			span.SetAttributes(semconv.ErrorTypeKey.String("tool_" + outcome))
		}
		if a.options.TraceContent && err == nil {
			value := result.Value
			if result.IsError {
				value = result.Error
			}
			span.SetAttributes(content(semconv.GenAIToolCallResultKey, value))
		}
	}
	tracing.End(span, a.traceable(err))
}

// maxContentBytes bounds the arguments and the result of a tool call in a span.
const maxContentBytes = 16 << 10

func content(key attribute.Key, value json.RawMessage) attribute.KeyValue {
	return key.String(event.RedactOutput(string(value), maxContentBytes))
}

func startHook(ctx context.Context, h hook.Hook, stage event.HookStage) (context.Context, trace.Span) {
	ctx, span := tracing.Start(ctx, trace.SpanKindInternal, "hook", h.Name)
	if span.IsRecording() {
		span.SetAttributes(attribute.String("chronicle.hook.stage", string(stage)))
	}
	return ctx, span
}
