package workflows

import (
	"cmp"
	"log/slog"
	"slices"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// The log of the worker has one line per decision. Most decisions are events, and their lines ([event.LineOf]) are
// written when the event is recorded, so they have the order of the events. A workflow task that
// fails and is repeated can repeat its lines.

// log writes a line without fields that have a zero value, unless the workflow is replaying.
func (r *run) log(l event.Line, fields ...any) {
	var kept []any
	for pair := range slices.Chunk(append(fields, l.Fields...), 2) {
		if pair[1] != "" && pair[1] != 0 && pair[1] != int64(0) && pair[1] != false {
			kept = append(kept, pair...)
		}
	}
	logger := workflow.GetLogger(r.ctx)
	switch l.Level {
	case slog.LevelDebug:
		logger.Debug(l.Message, kept...)
	case slog.LevelInfo:
		logger.Info(l.Message, kept...)
	case slog.LevelWarn:
		logger.Warn(l.Message, kept...)
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
		r.log(event.LineOf(e.Body), "event", e.ID, "request", from.requestID, "trace", traceID(trace), "tool", event.LoggedName(from.tool))
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
func (r *run) logRequest(requestID string, l func() event.Line) {
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
