package config

import (
	"errors"
	"slices"

	"go.uber.org/zap/zapcore"
)

// Level is a level of a log. It is a value of a flag. The zero value is info.
type Level struct{ level zapcore.Level }

var levels = []zapcore.Level{zapcore.DebugLevel, zapcore.InfoLevel, zapcore.WarnLevel, zapcore.ErrorLevel}

// Zap returns the level for package zap.
func (l Level) Zap() zapcore.Level { return l.level }

// String returns the name of the level.
func (l *Level) String() string { return l.level.String() }

// Set sets the level by its name.
func (l *Level) Set(name string) error {
	i := slices.IndexFunc(levels, func(level zapcore.Level) bool { return level.String() == name })
	if i < 0 {
		return errors.New("unknown level")
	}
	l.level = levels[i]
	return nil
}

// Type names the type in errors.
func (l *Level) Type() string { return "level" }
