// Package terminal makes text from outside safe to print.
//
//	fmt.Fprintln(terminal.NewWriter(os.Stdout), answer)   // for people
//	terminal.NewJSONWriter(os.Stdout).Write(line)         // for programs
//
// A terminal takes control characters as commands: they move the cursor, change the
// title, write to the clipboard (OSC 52), or answer as if the user had typed.
// Bidirectional controls reorder what is read. Text for people loses all of them;
// JSON keeps them as escapes, so that it stays the same JSON.
//
// Unsafe are the C0 and C1 controls and DEL (Unicode category Cc) and the format
// characters (Cf), which include the bidirectional controls, and the line and
// paragraph separators. Safe among them are newline and tab, and the two joiners that
// scripts and emoji need. Bytes that are not UTF-8 become U+FFFD: a terminal in an
// 8-bit mode takes some of them for C1 controls.
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

// unsafe reports whether a character can command a terminal or reorder its text.
func unsafe(r rune) bool {
	switch {
	case r == '\n' || r == '\t' || r == '\u200c' || r == '\u200d':
		return false
	case r < 0x7f:
		return r < 0x20
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// Clean removes the unsafe characters. It works on pieces of a text as on the whole,
// if no piece ends within a character.
func Clean(text string) string {
	return strings.Map(func(r rune) rune {
		if unsafe(r) {
			return -1
		}
		return r
	}, text)
}

// Line is a text on one line: clean, with single spaces between its words.
func Line(text string) string { return strings.Join(strings.Fields(Clean(text)), " ") }

// EscapeJSON replaces the unsafe characters in valid JSON by their escapes. They can
// only stand in its strings. The newlines between values stay.
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

// Writer passes on text without what is unsafe in it. It is safe for concurrent use.
type Writer struct {
	to   io.Writer
	safe func([]byte) []byte

	mu   sync.Mutex
	rest []byte // the beginning of a character whose end was not written yet
}

// NewWriter returns a writer for people: what it writes is clean.
func NewWriter(to io.Writer) *Writer {
	return &Writer{to: Raw(to), safe: func(text []byte) []byte { return []byte(Clean(string(text))) }}
}

// NewJSONWriter returns a writer for JSON: what it writes is escaped.
func NewJSONWriter(to io.Writer) *Writer { return &Writer{to: Raw(to), safe: EscapeJSON} }

// Raw is the writer below a [Writer], and any other writer itself. It is for the
// escape sequences of a program's own.
func Raw(w io.Writer) io.Writer {
	if safe, ok := w.(*Writer); ok {
		return safe.to
	}
	return w
}

// Write writes text. The beginning of a character at its end waits for the rest of it.
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
