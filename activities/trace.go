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

// TraceLink refers to a span that the span of an attempt is linked to.
type TraceLink struct {
	Trace  string `json:"trace"`  // W3C traceparent
	Reason string `json:"reason"` // attribute of the link, see docs/operations.md
}

// describe adds the attributes and links of an attempt to the span of its activity.
func (in AttemptInput) describe(span trace.Span) {
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(semconv.GenAIConversationID(in.ContextName),
		tracing.Context.String(in.ContextName), tracing.Request.String(in.RequestID), tracing.Attempt.Int(in.Attempt))
	for _, link := range in.Links {
		tracing.Link(span, link.Reason, link.Trace)
	}
}

// traceResult adds the outcome to the span of an activity.
func (a *Activities) traceResult(span trace.Span, result reducer.AttemptEnded) {
	span.SetAttributes(tracing.Outcome.String(outcomeName(result.Outcome)))
	if result.Outcome == reducer.Failed {
		a.failSpan(span, errors.New(a.problemOf(result)))
	}
}

// problemOf returns the error of a failed attempt, or only its kind if the error may quote content that spans omit.
func (a *Activities) problemOf(result reducer.AttemptEnded) string {
	if result.Kind.MayQuote() && !a.options.TraceContent {
		return string(result.Kind)
	}
	return result.Error
}

const maxSpanError = 500 // bytes

// failSpan sets the status of the span of an activity. The interceptor of the SDK does not do that for
// benign errors. The status omits content unless the worker traces it.
func (a *Activities) failSpan(span trace.Span, err error) {
	if span.IsRecording() {
		span.SetStatus(codes.Error, event.Redact(a.traceable(err).Error(), maxSpanError))
	}
}

// traceable returns err, or another error if err may quote the result of a tool and spans omit content.
func (a *Activities) traceable(err error) error {
	var failed *temporal.ApplicationError
	if !a.options.TraceContent && errors.As(err, &failed) && failed.Type() == failedTool {
		return errFailedTool
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
