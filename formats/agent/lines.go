package agent

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// MaxLineBytes is the maximum length of a line; the rest of it is skipped.
const MaxLineBytes = 16 << 20

type lines struct {
	reader *bufio.Reader
	// text has no newline, number counts from 1, and cut is the number of skipped bytes.
	text   []byte
	number int
	cut    int
	// err is the error that ended the input, [io.EOF] at the end.
	err error
}

// byteOrderMark precedes files from some Windows programs.
var byteOrderMark = []byte("\ufeff")

// The last line may lack a newline.
func (l *lines) next() bool {
	if l.err != nil {
		return false
	}
	l.text, l.cut = nil, 0
	l.number++
	for {
		piece, err := l.reader.ReadSlice('\n')
		piece = bytes.TrimSuffix(piece, []byte("\n"))
		room := min(len(piece), MaxLineBytes-len(l.text))
		l.text = append(l.text, piece[:room]...)
		l.cut += len(piece) - room
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if l.number == 1 {
			l.text = bytes.TrimPrefix(l.text, byteOrderMark)
		}
		l.text = bytes.TrimRight(l.text, "\r")
		l.err = err
		return err == nil || errors.Is(err, io.EOF) && len(l.text) > 0
	}
}

// failed returns the error that ended the input, nil at its end.
func (l *lines) failed() error {
	if errors.Is(l.err, io.EOF) {
		return nil
	}
	return fmt.Errorf("line %d: read: %w", l.number, l.err)
}
