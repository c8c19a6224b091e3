// Package terminal makes external text safe to print.
//
//	fmt.Fprintln(terminal.NewWriter(os.Stdout), answer)   // for people
//	fmt.Fprintln(out, terminal.Value(call.Name))          // what people decide about
//	terminal.NewJSONWriter(os.Stdout).Write(line)         // for programs
//
// Terminals interpret control characters as commands that move the cursor, set the title, write
// to the clipboard (OSC 52) or simulate input. Bidirectional controls reorder text, and invisible
// characters make different texts look the same. Such characters are shown as JSON escapes, like
// \u202e:
//
//   - in all text, the C0 and C1 controls and DEL (Unicode category Cc), the format characters (Cf),
//     which include the bidirectional controls, and the line and paragraph separators. Exceptions are
//     newline, tab and the two joiners used by scripts and emoji.
//   - in values also the joiners, variation selectors that follow no symbol, fillers and other
//     characters without a glyph, and unassigned and private ones. The page of the gateway has the same
//     rule: gateway/page/visible.js.
//
// Bytes that are not UTF-8 become U+FFFD, since terminals in an 8-bit mode may take them for C1
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

// isUnsafe reports whether a character is escaped in all text.
func isUnsafe(r rune) bool {
	switch {
	case r == '\n' || r == '\t' || r == '\u200c' || r == '\u200d':
		return false
	case r < 0x7f:
		return r < 0x20
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// isHidden reports whether a character is escaped in a value, by the character before it.
func isHidden(r, before rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < 0x7f:
		return r < 0x20
	case r == '\ufe0e' || r == '\ufe0f':
		return !unicode.Is(unicode.So, before)
	case r == '\u2800': // Braille pattern blank
		return true
	}
	return !unicode.IsGraphic(r) || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// Clean returns the text of a message with escapes for unsafe characters and without carriage returns. It may be
// applied piecewise, if no piece ends within a character.
func Clean(text string) string {
	var out strings.Builder
	for _, r := range text {
		switch {
		case r == '\r':
		case isUnsafe(r):
			out.WriteString(escape(r))
		default:
			out.WriteRune(r)
		}
	}
	return out.String()
}

// Value returns a name, an address, an argument or another text about which people decide, with escapes for all
// characters that they cannot see. The escapes leave the value of JSON unchanged.
func Value(text string) string {
	var out strings.Builder
	var before rune
	for _, r := range strings.ReplaceAll(text, "\r\n", "\n") {
		if isHidden(r, before) {
			out.WriteString(escape(r))
		} else {
			out.WriteRune(r)
		}
		before = r
	}
	return out.String()
}

// Line returns a value in one line.
func Line(text string) string { return OneLine(Value(text)) }

// OneLine joins the trimmed lines of a text with spaces.
func OneLine(text string) string {
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\t' })
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	return strings.TrimSpace(strings.Join(lines, " "))
}

// Strip removes unsafe characters, for text that is not shown to people.
func Strip(text string) string {
	return strings.Map(func(r rune) rune {
		if isUnsafe(r) {
			return -1
		}
		return r
	}, text)
}

func escape(r rune) string {
	if high, low := utf16.EncodeRune(r); high != utf8.RuneError {
		return fmt.Sprintf(`\u%04x\u%04x`, high, low)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

// EscapeJSON applies the rule of [Value] to valid JSON. It keeps line breaks between values.
func EscapeJSON(data []byte) []byte {
	out := make([]byte, 0, len(data))
	var before rune
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		switch {
		case r == utf8.RuneError && size == 1:
			out = append(out, `\ufffd`...)
		case r != '\r' && isHidden(r, before):
			out = append(out, escape(r)...)
		default:
			out = append(out, data[:size]...)
		}
		data, before = data[size:], r
	}
	return out
}

// Writer writes text with escapes for its unsafe characters. It is safe for concurrent use.
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
