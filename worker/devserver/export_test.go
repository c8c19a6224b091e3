package devserver

import (
	"io"
	"log/slog"
)

// NewOutput gives tests the writer that a server writes to, and its tail.
func NewOutput(file io.Writer, logger *slog.Logger) (w io.Writer, tail func() string) {
	o := &output{file: file, logger: logger}
	return o, o.Tail
}
