// Package terminal makes external text safe to print.
//
//	fmt.Fprintln(terminal.NewWriter(os.Stdout), answer)   // for people
//	terminal.NewJSONWriter(os.Stdout).Write(line)         // for programs
//
// Terminals interpret control characters as commands that move the cursor, set the title, write
// to the clipboard (OSC 52) or simulate input. Bidirectional controls reorder text. Text output
// omits all of them; JSON output escapes them, which leaves its value unchanged.
//
// Unsafe characters are the C0 and C1 controls and DEL (Unicode category Cc), the format
// characters (Cf), which include the bidirectional controls, and the line and paragraph
// separators. Exceptions are newline, tab and the two joiners used by scripts and emoji. Bytes
// that are not UTF-8 become U+FFFD, since terminals in an 8-bit mode may take them for C1
// controls.
package terminal

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

func unsafe(r rune) bool {
	switch {
	case r == '\n' || r == '\t' || r == '\u200c' || r == '\u200d':
		return false
	case r < 0x7f:
		return r < 0x20
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// Clean removes unsafe characters. It may be applied piecewise, if no piece ends within a
// character.
func Clean(text string) string {
	return strings.Map(func(r rune) rune {
		if unsafe(r) {
			return -1
		}
		return r
	}, text)
}

// Line cleans a text and joins its words with single spaces.
func Line(text string) string { return strings.Join(strings.Fields(Clean(text)), " ") }

// EscapeJSON escapes the unsafe characters in valid JSON, which only occur in strings. It keeps
// newlines between values.
func EscapeJSON(data []byte) []byte {
	out := make([]byte, 0, len(data))
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		switch {
		case r == utf8.RuneError && size == 1:
			out = append(out, `\ufffd`...)
		case r == '\r' || !unsafe(r):
			out = append(out, data[:size]...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		data = data[size:]
	}
	return out
}

// Writer writes text without its unsafe characters. It is safe for concurrent use.
type Writer struct {
	to   io.Writer
	safe func([]byte) []byte

	mu   sync.Mutex
	rest []byte // incomplete character at the end of the last write
}

func NewWriter(to io.Writer) *Writer {
	return &Writer{to: Raw(to), safe: func(text []byte) []byte { return []byte(Clean(string(text))) }}
}

func NewJSONWriter(to io.Writer) *Writer { return &Writer{to: Raw(to), safe: EscapeJSON} }

// Raw returns the writer below a [Writer], for escape sequences of the program itself.
func Raw(w io.Writer) io.Writer {
	if safe, ok := w.(*Writer); ok {
		return safe.to
	}
	return w
}

// Write writes text. It retains an incomplete character at the end until the next write.
func (w *Writer) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := append(w.rest, text...)
	whole := len(all)
	for i := 1; i < utf8.UTFMax && i <= len(all); i++ {
		if last := all[len(all)-i:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				whole -= i
			}
			break
		}
	}
	w.rest = append([]byte(nil), all[whole:]...)
	if _, err := w.to.Write(w.safe(all[:whole])); err != nil {
		return 0, err
	}
	return len(text), nil
}
