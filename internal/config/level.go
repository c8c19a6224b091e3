package config

import (
	"errors"
	"log/slog"

	"go.uber.org/zap/zapcore"
)

// Level is a level of a log. It is a value of a flag. The zero value is info.
type Level struct{ level slog.Level }

var levels = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}

// Slog returns the level for package slog.
func (l Level) Slog() slog.Level { return l.level }

// Zap returns the level for package zap.
func (l Level) Zap() zapcore.Level { return zapcore.Level(l.level / slog.LevelWarn) }

// String returns the name of the level.
func (l *Level) String() string {
	for name, level := range levels {
		if level == l.level {
			return name
		}
	}
	return ""
}

// Set sets the level by its name.
func (l *Level) Set(name string) error {
	level, isKnown := levels[name]
	if !isKnown {
		return errors.New("unknown level")
	}
	l.level = level
	return nil
}

// Type names the type in errors.
func (l *Level) Type() string { return "level" }
