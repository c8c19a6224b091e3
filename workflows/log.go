package workflows

import (
	"cmp"
	"slices"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/event"
)

const (
	maxLoggedError = 500 // bytes of the error of a provider in a line
	maxLoggedName  = 200
)

// The log of the worker has one line per decision. Most decisions are events, and their lines are
// written when the event is recorded, so they have the order of the events. A workflow task that
// fails and is repeated can repeat its lines.
//
// Lines contain neither the content of messages nor arguments or results of tools.

type level int

const (
	debug level = iota
	info
	warn
)

// line is a line of the log. Fields are keys and values; a zero value is omitted.
type line struct {
	level   level
	message string
	fields  []any
}

// log writes a line, unless the workflow is replaying.
func (r *run) log(l line, fields ...any) {
	var kept []any
	for pair := range slices.Chunk(append(fields, l.fields...), 2) {
		if pair[1] != "" && pair[1] != 0 && pair[1] != int64(0) && pair[1] != false {
			kept = append(kept, pair...)
		}
	}
	logger := workflow.GetLogger(r.ctx)
	switch l.level {
	case debug:
		logger.Debug(l.message, kept...)
	case info:
		logger.Info(l.message, kept...)
	case warn:
		logger.Warn(l.message, kept...)
	}
}

func (r *run) logEvents(events []pendingEvent) {
	for _, e := range events {
		from := r.callerOf(e.Body)
		if workflow.IsReplaying(r.ctx) {
			continue
		}
		trace := e.trace
		if e.ClientEventID == "" || trace == "" {
			trace = cmp.Or(e.turn, r.traceOf(from.requestID), trace)
		}
		r.log(lineOf(e.Event), "event", e.ID, "request", from.requestID, "trace", traceID(trace), "tool", name(from.tool))
	}
}

// traceOf returns the traceparent of the turn of a request; empty: none, or an earlier turn.
func (r *run) traceOf(requestID string) string {
	if requestID == "" || requestID != r.trace.RequestID {
		return ""
	}
	return r.trace.Parent
}

// caller is the origin of a tool call.
type caller struct{ requestID, tool string }

// callerOf returns the request of an event. For the approval of a tool call and its result, it also
// returns the tool, if this run recorded the call.
func (r *run) callerOf(body event.Body) caller {
	switch body := body.(type) {
	case event.ToolCall:
		if body.RequestID != "" {
			r.callers[body.ToolCallID] = caller{body.RequestID, body.ToolName}
		}
	case event.ApprovalRequested:
		return caller{body.RequestID, r.callers[body.ToolCallID].tool}
	case event.ApprovalDecided:
		return r.callers[body.ToolCallID]
	case event.ToolResult:
		defer delete(r.callers, body.ToolCallID)
		return r.callers[body.ToolCallID]
	}
	return caller{requestID: event.RequestOf(body)}
}

// logRequest writes a line that has a request but no event.
func (r *run) logRequest(requestID string, l func() line) {
	if !workflow.IsReplaying(r.ctx) {
		r.log(l(), "request", requestID, "trace", traceID(r.traceOf(requestID)))
	}
}

// traceID returns the trace id of a W3C traceparent.
func traceID(traceparent string) string {
	if parts := strings.Split(traceparent, "-"); len(parts) == 4 {
		return parts[1]
	}
	return ""
}

func lineOf(e event.Event) line {
	switch body := e.Body.(type) {
	case event.SessionStarted:
		return line{info, "context opened", []any{"loaded_events", body.LoadedEventCount, "previous_run", body.PreviousRunID, "forked_from", body.ForkedFrom}}
	case event.SessionEnded:
		return line{info, "context closed", nil}
	case event.LLMRequestStarted:
		return line{info, "request started", []any{"attempt", body.Attempt, "provider", name(body.ProviderID), "model", name(body.Model), "purpose", string(body.Purpose)}}
	case event.LLMRequestCompleted:
		return line{info, "request answered", append([]any{"finish", name(body.FinishReason), "duration_ms", body.DurationMs}, usageFields(body.Usage)...)}
	case event.LLMRequestInterrupted:
		return line{info, "request interrupted", append([]any{"reason", string(body.Reason)}, usageFields(body.Usage)...)}
	case event.LLMRequestFailed:
		return line{warn, "request failed", append(failureFields(body.Kind, body.Error), "retries", body.RetriesAttempted, "retryable", body.Retryable)}
	case event.LLMRequestFellBack:
		return line{warn, "request falls back", append([]any{"from", name(body.FromProvider), "to", name(body.ToProvider)}, failureFields(body.Kind, body.Error)...)}
	case event.LLMAttemptEnded:
		return attemptLine(body)
	case event.BudgetExceeded:
		// Level info, because the LLMRequestFailed that follows is logged as a warning.
		return line{info, "budget denied the request", []any{"budget", name(body.Budget), "day", body.Day, "used_tokens", body.Used.Tokens, "wanted_tokens", body.Wanted.Tokens, "used_micros", body.Used.CostMicros, "wanted_micros", body.Wanted.CostMicros}}
	case event.ToolCall:
		return line{info, "tool call requested", []any{"tool", name(body.ToolName), "call", name(body.ToolCallID)}}
	case event.ToolResult:
		return line{info, "tool call ended", []any{"call", name(body.ToolCallID), "is_error", body.IsError, "duration_ms", body.DurationMs}}
	case event.ApprovalRequested:
		return line{info, "tool call waits for an approval", []any{"call", name(body.ToolCallID)}}
	case event.ApprovalDecided:
		return line{info, "tool call decided", []any{"decision", string(body.Decision), "call", name(body.ToolCallID)}}
	case event.HookApplied:
		fields := []any{"attempt", body.Attempt, "hook", body.Hook, "stage", string(body.Stage), "outcome", string(body.Outcome)}
		if body.Outcome == event.HookFailed {
			return line{warn, "hook failed; the attempt continues without its verdict", fields}
		}
		return line{info, "hook applied", fields}
	case event.Compacted:
		return line{info, "conversation compacted", []any{"strategy", string(body.Strategy), "messages", body.Messages, "tokens_before", body.TokensBefore, "window", body.Window}}
	case event.ContentRefused:
		return line{warn, "provider refuses content; the request is sent without it", []any{"content", string(body.Content), "tool", name(body.Tool), "provider", name(body.ProviderID), "model", name(body.Model), "from_event", body.FromEventID, "through_event", body.ThroughEventID}}
	case event.InputRejected:
		return line{info, "input rejected", nil}
	case event.SetRetryConfig, event.SetProviderConfig, event.SetTimeout, event.SetDeliveryPolicy, event.SetRequestSettings, event.SetTools,
		event.BudgetSet, event.SetCompaction:
		return line{info, "setting changed", []any{"type", string(e.Tag())}}
	default:
		return line{debug, "event recorded", []any{"type", string(e.Tag())}}
	}
}

func attemptLine(body event.LLMAttemptEnded) line {
	fields := append([]any{"attempt", body.Attempt, "outcome", string(body.Outcome), "duration_ms", body.DurationMs}, usageFields(body.Usage)...)
	switch body.Outcome {
	case event.AttemptFailed:
		return line{warn, "attempt failed; the request is retried", append(fields, failureFields(body.Kind, body.Error)...)}
	case event.AttemptLost:
		return line{warn, "attempt lost; the request is sent again", fields}
	case event.AttemptHandedBack:
		return line{info, "attempt handed back", fields}
	default:
		return line{info, "attempt ended", fields}
	}
}

// name removes secrets from a name that a client, a model or a provider chose.
func name(text string) string { return event.RedactOutput(text, maxLoggedName) }

func usageFields(u event.Usage) []any {
	fields := []any{"input_tokens", u.InputTokens, "output_tokens", u.OutputTokens}
	if u.CostMicros != nil {
		fields = append(fields, "cost_micros", *u.CostMicros)
	}
	return fields
}

// failureFields omits errors that may quote a message. The event contains them.
func failureFields(kind event.FailureKind, err string) []any {
	fields := []any{"kind", string(kind)}
	if kind.MayQuote() {
		return fields
	}
	return append(fields, "error", event.RedactOutput(err, maxLoggedError))
}
