package logging

import (
	"slices"

	sdklog "go.temporal.io/sdk/log"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// Temporal returns the logger for the Temporal SDK. It omits routine messages that the SDK logs at
// info level, but not those of workflows and activities, and gives all fields the names of this
// program.
func Temporal(log *zap.Logger) sdklog.Logger {
	return sdklog.NewStructuredLogger(structured(temporal{Core: floor{log.Core(), zap.WarnLevel}}, "temporal-sdk"))
}

// temporal writes the lines of the SDK. If With receives the tags of a workflow or an activity, it returns
// a core for the lines of that workflow or activity.
type temporal struct {
	zapcore.Core
	logger string // of a workflow or an activity
}

// Tags of the SDK.
const (
	tagWorkflowID   = "WorkflowID"
	tagActivityType = "ActivityType"
	tagAttempt      = "Attempt"
)

// names are the field names of this program, by tag of the SDK; "": the tag is omitted, since it is the
// same in all lines, or is in the Temporal UI.
var names = map[string]string{
	"Namespace": "", "TaskQueue": "", "WorkerID": "", "BuildID": "", "WorkflowType": "", "ActivityID": "",
	"RunID": "run", tagActivityType: "activity", "Error": "error", "TraceID": "trace", "SpanID": "span",
	tagAttempt: "task_attempt", "PanicError": "panic", "PanicStack": "stack", "StackTrace": "stack",
}

func renamed(fields []zapcore.Field) []zapcore.Field {
	out := make([]zapcore.Field, 0, len(fields))
	for _, field := range fields {
		name, isKnown := names[field.Key]
		switch context, isContext := wire.ContextName(field.String); {
		case field.Key == tagWorkflowID && isContext:
			field.Key, field.String = "context", context
		case field.Key == tagWorkflowID:
			field.Key = "workflow"
		case isKnown && name == "":
			continue
		case isKnown:
			field.Key = name
		}
		out = append(out, field)
	}
	return out
}

func (t temporal) With(fields []zapcore.Field) zapcore.Core {
	has := func(key string) bool {
		return slices.ContainsFunc(fields, func(field zapcore.Field) bool { return field.Key == key })
	}
	switch {
	case has(tagActivityType):
		t.logger = "activity"
	case has(tagWorkflowID):
		t.logger = "workflow"
	}
	if base, ok := t.Core.(floor); ok && t.logger != "" {
		t.Core = base.Core
	}
	// In lines of workflows and activities, the field attempt is that of the request, not of the task.
	fields = slices.DeleteFunc(slices.Clone(fields), func(field zapcore.Field) bool { return field.Key == tagAttempt })
	fields = renamed(fields)
	if t.logger == "" {
		return temporal{t.Core.With(fields), ""}
	}
	// Most loggers of workflows and activities write nothing, and encoding costs a buffer for each.
	return temporal{zapcore.NewLazyWith(t.Core, fields), t.logger}
}

func (t temporal) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if !t.Enabled(entry.Level) {
		return checked
	}
	return checked.AddCore(entry, t)
}

// isRoutine reports whether the SDK logs as a warning that a worker stops, or that an activity ended
// during a heartbeat.
func isRoutine(entry zapcore.Entry, fields []zapcore.Field) bool {
	return slices.ContainsFunc(fields, func(field zapcore.Field) bool {
		text, ok := textOf(field)
		return ok && field.Key == "Error" &&
			(text == "worker stopping" || text == "context canceled" && entry.Message == "RecordActivityHeartbeat with error")
	})
}

func (t temporal) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	if t.logger != "" {
		entry.LoggerName = t.logger
	}
	if isRoutine(entry, fields) {
		if entry.Level = zap.DebugLevel; !t.Enabled(entry.Level) {
			return nil
		}
	}
	return t.Core.Write(entry, renamed(fields))
}
