// Package logging sets up the log of a program with zap.
//
//	level := zap.NewAtomicLevelAt(zap.InfoLevel) // may change at run time
//	log := logging.New(os.Stderr, true, level)
//	defer log.Sync()
//	options.Logger = logging.Temporal(log)               // the SDK, workflows and activities
//	logger := logging.Structured(log, "mcp", zap.InfoLevel) // packages with a [slog.Logger]
//
// docs/operations.md lists the names of fields and what each level means. Repeated warnings and
// errors are limited, see [Limit].
package logging

import (
	"io"
	"log/slog"

	"go.uber.org/zap"
	"go.uber.org/zap/exp/zapslog"
	"go.uber.org/zap/zapcore"

	"github.com/seed-9ed7edd4/chronicle/internal/terminal"
)

// New returns a logger that writes lines for people, or JSON. It escapes control characters for
// terminals, and limits repeats. Call Sync before the program exits.
func New(w io.Writer, json bool, level zapcore.LevelEnabler) *zap.Logger {
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
	return zap.New(limit(zapcore.NewCore(encoder, zapcore.AddSync(safe), level)))
}

// Structured returns a logger that omits what is below a level, unless the level of log is debug.
func Structured(log *zap.Logger, name string, from zapcore.Level) *slog.Logger {
	return structured(floor{log.Core(), from}, name)
}

func structured(core zapcore.Core, name string) *slog.Logger {
	// Stack traces would show only where the message was logged.
	return slog.New(zapslog.NewHandler(core, zapslog.WithName(name), zapslog.AddStacktraceAt(slog.LevelError+100)))
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
