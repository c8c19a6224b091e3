package logging

import (
	"slices"
	"strings"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/seed-9ed7edd4/chronicle/event"
)

const maxText = 4 << 10 // bytes of a text in a warning or an error

// redacted removes secrets from fields that hold an error, at every level. At level warn and above, it
// also removes them from the message and all text fields, which may come from a provider or a library.
// At lower levels these contain only messages of this program, names, ids, numbers, and lines that MCP
// servers write to their standard error. Package workflows redacts the names that clients, models and
// providers choose, and package mcp redacts the lines.
func redacted(entry zapcore.Entry, fields []zapcore.Field) (zapcore.Entry, []zapcore.Field) {
	isWarning := entry.Level >= zap.WarnLevel
	if isWarning {
		entry.Message = redact(entry.Message)
	}
	isCloned := false
	for i, field := range fields {
		text, isText := textOf(field)
		if !isText || !isWarning && field.Type != zapcore.ErrorType {
			continue
		}
		if !isCloned {
			fields, isCloned = slices.Clone(fields), true
		}
		fields[i] = zap.String(field.Key, redact(text))
	}
	return entry, fields
}

func redact(text string) string {
	return event.RedactOutput(strings.ToValidUTF8(text, "\uFFFD"), maxText)
}

func textOf(field zapcore.Field) (string, bool) {
	switch field.Type {
	case zapcore.StringType:
		return field.String, true
	case zapcore.ErrorType:
		err, ok := field.Interface.(error)
		if !ok {
			return "", false
		}
		return err.Error(), true
	}
	return "", false
}
