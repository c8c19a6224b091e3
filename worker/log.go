package main

import (
	"io"
	"log/slog"

	"go.uber.org/zap"
	"go.uber.org/zap/exp/zapslog"
	"go.uber.org/zap/zapcore"

	"github.com/seed-9ed7edd4/chronicle/internal/terminal"
)

// newLogger removes control characters for terminals.
func newLogger(w io.Writer, json bool, level zapcore.LevelEnabler) *zap.Logger {
	safe := terminal.NewWriter(w)
	if json {
		safe = terminal.NewJSONWriter(w)
	}
	encoding := zap.NewProductionEncoderConfig()
	encoding.TimeKey = "time"
	encoding.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	encoder := zapcore.NewJSONEncoder(encoding)
	if !json {
		encoding.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05")
		encoding.EncodeLevel = zapcore.CapitalLevelEncoder
		encoding.ConsoleSeparator = "  "
		encoder = zapcore.NewConsoleEncoder(encoding)
	}
	return zap.New(zapcore.NewCore(encoder, zapcore.AddSync(safe), level))
}

// structured returns a logger that omits what is below a level, unless the level of log is debug.
func structured(log *zap.Logger, name string, from zapcore.Level) *slog.Logger {
	// Stack traces would show only where the message was logged.
	return slog.New(zapslog.NewHandler(floor{log.Core(), from}, zapslog.WithName(name), zapslog.AddStacktraceAt(slog.LevelError+100)))
}

// floor follows changes of the level of its core; zap.IncreaseLevel does not.
type floor struct {
	zapcore.Core
	from zapcore.Level
}

func (f floor) Enabled(level zapcore.Level) bool {
	return f.Core.Enabled(level) && (level >= f.from || f.Core.Enabled(zap.DebugLevel))
}

func (f floor) With(fields []zapcore.Field) zapcore.Core { return floor{f.Core.With(fields), f.from} }

func (f floor) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if !f.Enabled(entry.Level) {
		return checked
	}
	return f.Core.Check(entry, checked)
}
