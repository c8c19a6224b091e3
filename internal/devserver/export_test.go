package devserver

import (
	"io"
	"log/slog"
)

// NewOutput exposes the output writer and its tail.
func NewOutput(file io.Writer, logger *slog.Logger) (w io.Writer, tail func() string) {
	o := &output{file: file, logger: logger}
	return o, o.Tail
}
