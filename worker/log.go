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
func newLogger(w io.Writer, json bool) *zap.Logger {
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
	return zap.New(zapcore.NewCore(encoder, zapcore.AddSync(safe), zap.InfoLevel))
}

func structured(log *zap.Logger, name string, from zapcore.Level) *slog.Logger {
	core := log.WithOptions(zap.IncreaseLevel(from)).Core()
	// Stack traces would show only where the message was logged.
	return slog.New(zapslog.NewHandler(core, zapslog.WithName(name), zapslog.AddStacktraceAt(slog.LevelError+100)))
}
