package main

import (
	"fmt"
	"log/slog"
	"os"
	"sync"

	"go.uber.org/zap"
)

// auditFile appends to a file that only its owner may read. After the file was renamed, it opens a new one.
type auditFile struct {
	path string
	log  *zap.Logger // receives errors

	mu   sync.Mutex
	file *os.File
}

// newAuditLog returns nil without --audit. Close ends it.
func (a *app) newAuditLog(log *zap.Logger) (audit *slog.Logger, close func() error, err error) {
	if a.gateway.Audit == "" {
		return nil, func() error { return nil }, nil
	}
	f := &auditFile{path: a.gateway.Audit, log: log}
	if err := f.open(); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", a.config.Label("audit"), err)
	}
	omit := func(groups []string, attribute slog.Attr) slog.Attr {
		if len(groups) == 0 && (attribute.Key == slog.LevelKey || attribute.Key == slog.MessageKey) {
			return slog.Attr{}
		}
		return attribute
	}
	return slog.New(slog.NewJSONHandler(f, &slog.HandlerOptions{ReplaceAttr: omit})), f.Close, nil
}

func (f *auditFile) open() (err error) {
	f.file, err = os.OpenFile(f.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	return err
}

// Write appends a line. [slog.Logger] ignores errors, so Write logs them.
func (f *auditFile) Write(line []byte) (written int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer func() {
		if err != nil {
			f.log.Error("an entry of the audit log was lost", zap.Error(err))
		}
	}()
	if f.isRenamed() {
		old := f.file
		if err := f.open(); err != nil {
			f.file = old
			return 0, err
		}
		_ = old.Close()
	}
	return f.file.Write(line)
}

func (f *auditFile) isRenamed() bool {
	opened, err := f.file.Stat()
	if err != nil {
		return false
	}
	current, err := os.Stat(f.path)
	return err != nil || !os.SameFile(opened, current)
}

func (f *auditFile) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.file.Close()
}
