package agentlog

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// MaxLineBytes is how much is read of a line. The rest is left out.
const MaxLineBytes = 16 << 20

// lines reads lines of any kind.
type lines struct {
	reader *bufio.Reader
	// text is the line that was read, without its end, and number its number, from
	// 1; cut is how many bytes were left out of it.
	text   []byte
	number int
	cut    int
	// err is what ended the reading: [io.EOF] at the end.
	err error
}

// byteOrderMark stands in front of files from Windows.
var byteOrderMark = []byte("\ufeff")

// next reads the next line and reports whether there was one. The last one may do
// without an end.
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

// failed is why there is no other line; nil at the end of the input.
func (l *lines) failed() error {
	if errors.Is(l.err, io.EOF) {
		return nil
	}
	return fmt.Errorf("line %d: cannot be read: %w", l.number, l.err)
}
