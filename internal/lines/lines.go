// Package lines reads lines for parsers that report line numbers.
package lines

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Reader reads lines that end with "\n" or "\r\n"; the last one may lack its end. A byte order mark
// at the start is skipped.
type Reader struct {
	// Text is the current line without its end, Number counts from 1, and Cut is the number of
	// bytes omitted at the end of Text.
	Text   []byte
	Number int
	Cut    int
	// Unended means that the input ended before the end of the line.
	Unended bool

	in   *bufio.Reader
	max  int
	cuts bool
	err  error // io.EOF at the end
}

// New returns a reader for lines of at most max bytes. A longer line is an error.
func New(r io.Reader, max int) *Reader {
	return &Reader{in: bufio.NewReaderSize(r, 64<<10), max: max}
}

// NewCutting returns a reader that omits what exceeds max bytes of a line.
func NewCutting(r io.Reader, max int) *Reader {
	reader := New(r, max)
	reader.cuts = true
	return reader
}

// byteOrderMark precedes files from some Windows programs.
var byteOrderMark = []byte("\ufeff")

// Next reads a line into a new Text and reports whether there was one.
func (r *Reader) Next() bool {
	r.Text, r.Cut = nil, 0
	if r.err != nil {
		return false
	}
	r.Number++
	for {
		piece, err := r.in.ReadSlice('\n')
		piece = bytes.TrimSuffix(piece, []byte("\n"))
		room := min(len(piece), r.max-len(r.Text))
		r.Text = append(r.Text, piece[:room]...)
		r.Cut += len(piece) - room
		switch {
		case r.Cut > 0 && !r.cuts:
			r.err = r.Errorf("line exceeds %d bytes", r.max)
			return false
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !errors.Is(err, io.EOF):
			r.err = r.Errorf("read: %w", err)
			return false
		}
		if r.Number == 1 {
			r.Text = bytes.TrimPrefix(r.Text, byteOrderMark)
		}
		r.Text = bytes.TrimRight(r.Text, "\r")
		r.err, r.Unended = err, err != nil
		return err == nil || len(r.Text) > 0
	}
}

// Err returns the error that ended the input; nil at its end.
func (r *Reader) Err() error {
	if errors.Is(r.err, io.EOF) {
		return nil
	}
	return r.err
}

// Errorf returns an error with the number of the current line.
func (r *Reader) Errorf(format string, args ...any) error {
	return fmt.Errorf("line %d: %w", r.Number, fmt.Errorf(format, args...))
}
