package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

const (
	maxResultBytes = wire.MaxEventBytes - envelopeBytes // a longer result is truncated
	toolGrace      = 5 * time.Second                    // for a cancelled tool to return
)

// CallTool calls a tool of this worker, or, if in.Schema is set, only validates edited arguments. A failure,
// a panic and a timeout are results for the model. The activity fails only if the call was cancelled or
// another attempt follows.
func (a *Activities) CallTool(ctx context.Context, in CallToolInput) (CallToolResult, error) {
	if len(in.Schema) > 0 {
		if err := matches(ctx, in.Name, event.Object(in.Schema), in.Arguments); err != nil {
			result := failed("invalid arguments: %v (an approval edited them)", err)
			return CallToolResult{Error: result.Error, IsError: true}, nil
		}
		return CallToolResult{}, nil
	}
	startedAt := time.Now()
	call, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	call, stop := context.WithTimeoutCause(call, in.Timeout(), errToolTimeout)
	defer stop()
	defer beat(ctx, a.options.HandBack, func() { cancel(errShutdown) })()

	call, span := a.startCall(call, in)
	result, err := a.outcomeOfCall(ctx, in, a.call(call, in), context.Cause(call))
	a.endCall(span, result, err)
	a.metrics.ToolDuration.Observe(time.Since(startedAt).Seconds(), in.Name)
	a.metrics.ToolCalls.Add(1, in.Name, callOutcome(result, err))
	if err != nil {
		if !temporal.IsCanceledError(err) {
			a.failSpan(trace.SpanFromContext(ctx), err)
			activity.GetLogger(ctx).Warn("attempt of a tool call failed; it is repeated", "request", in.RequestID, "tool", in.Name, "call", in.ToolCallID)
		}
		return CallToolResult{}, err
	}
	out := CallToolResult{Value: result.Value, Error: result.Error, IsError: result.IsError}.recordable()
	out.DurationMs = time.Since(startedAt).Milliseconds()
	return out, nil
}

func callOutcome(result ToolCallResult, err error) string {
	switch {
	case err != nil:
		return "failed"
	case result.IsError:
		return "error"
	}
	return "ok"
}

var errToolTimeout = errors.New("the call took longer than the timeout of the tool")

// Timeout returns the timeout of each attempt.
func (in CallToolInput) Timeout() time.Duration {
	if in.TimeoutMs == 0 {
		return DefaultToolTimeout
	}
	return milliseconds(in.TimeoutMs)
}

// call returns when the tool does, or toolGrace after the end of ctx, which a tool may ignore.
func (a *Activities) call(ctx context.Context, in CallToolInput) ToolCallResult {
	if a.options.Tools == nil {
		return failed("tool %s: this worker has no tools", in.Name)
	}
	request := ToolCallRequest{
		ContextName: in.ContextName, RequestID: in.RequestID, ToolCallID: in.ToolCallID, Name: in.Name, Arguments: in.Arguments,
		Progress: a.progressOf(ctx, in),
	}
	if a.options.Archive != nil {
		request.Blobs = a.options.Archive.Blobs(in.ContextName)
	}
	done := make(chan ToolCallResult, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				activity.GetLogger(ctx).Error("tool panicked", "request", in.RequestID, "tool", in.Name, "call", in.ToolCallID, "panic", event.Redact(fmt.Sprint(p), 2000), "stack", string(debug.Stack()))
				done <- failed("the tool panicked: %v", p)
			}
		}()
		done <- a.options.Tools.Call(ctx, request)
	}()
	select {
	case result := <-done:
		return result
	case <-ctx.Done():
	}
	grace := time.NewTimer(toolGrace)
	defer grace.Stop()
	select {
	case result := <-done:
		return result
	case <-grace.C:
		return failed(event.OutcomeUnknown)
	}
}

const (
	progressInterval = 100 * time.Millisecond
)

// progressOf returns a function that publishes the progress of a call until the call ends. It is
// safe for concurrent use, and drops texts that follow within progressInterval.
func (a *Activities) progressOf(ctx context.Context, in CallToolInput) func(string) {
	var mu sync.Mutex
	var sentAt time.Time
	index := int(activity.GetInfo(ctx).Attempt) << 20 // increases across attempts
	return func(text string) {
		mu.Lock()
		defer mu.Unlock()
		if ctx.Err() != nil || (!sentAt.IsZero() && time.Since(sentAt) < progressInterval) {
			return
		}
		sentAt = time.Now()
		index++
		a.options.Stream.PublishProgress(in.ContextName, event.ToolProgress{
			RequestID: in.RequestID, ToolCallID: in.ToolCallID, Index: index, Text: event.RedactOutput(text, event.MaxProgressBytes),
		})
	}
}

// outcomeOfCall returns the outcome of a call. Cause is why it was stopped; nil if it was not. A
// value counts even if the call was stopped.
func (a *Activities) outcomeOfCall(ctx context.Context, in CallToolInput, result ToolCallResult, cause error) (ToolCallResult, error) {
	attempt := int(activity.GetInfo(ctx).Attempt)
	switch {
	case !result.IsError:
		return result, nil
	case errors.Is(cause, errShutdown) && in.MaxAttempts > 0:
		return result, retried("handed-back", "the worker shut down", 0)
	case errors.Is(cause, errShutdown):
		return failed(event.OutcomeUnknown), nil
	case errors.Is(cause, errToolTimeout):
		return failed("timed out after %v, outcome unknown", in.Timeout()), nil
	case cause != nil:
		return result, temporal.NewCanceledError()
	case result.Retryable && attempt < in.MaxAttempts:
		return result, retried(failedTool, event.RedactOutput(plainText(result.Error), 1000), 0)
	}
	return result, nil
}

// failedTool is the type of the error of a call that is repeated because its tool failed.
const failedTool = "tool"

func failed(format string, args ...any) ToolCallResult {
	return ToolCallResult{Error: jsonText(event.RedactOutput(fmt.Sprintf(format, args...), 2000)), IsError: true}
}

// recordable returns a result that an event can contain, without secrets.
func (r CallToolResult) recordable() CallToolResult {
	content := &r.Value
	if r.IsError || len(r.Error) > 0 {
		r.Value, r.IsError, content = nil, true, &r.Error
	}
	kept, err := event.RedactJSON(*content)
	if err != nil {
		kept, _ = event.RedactJSON(jsonText(string(*content))) // cannot fail: a JSON string is valid JSON
	}
	if *content = event.ToolValue(kept); len(*content) == 0 {
		*content = jsonText(string(kept)) // an event cannot hold null
	}
	if n := len(*content); n > maxResultBytes {
		text, _ := truncate(plainText(*content), maxResultBytes, maxResultBytes-100)
		*content = jsonText(fmt.Sprintf("%s… (truncated: the result has %d bytes)", text, n))
	}
	return r
}

func jsonText(text string) json.RawMessage {
	data, err := json.Marshal(strings.ToValidUTF8(text, "\uFFFD"))
	if err != nil {
		panic(err) // unreachable: every string can be encoded
	}
	return data
}

// plainText returns a JSON string as its text and any other value as JSON.
func plainText(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	return string(value)
}
