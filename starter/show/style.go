package show

import (
	"strings"
	"unicode"
)

// Style paints text with the colours that every terminal has (ECMA-48, "SGR").
// The zero value paints nothing.
type Style struct {
	// Color says whether colours are wanted.
	Color bool
}

// Bold is for what the user said.
func (s Style) Bold(text string) string { return s.paint("1", text) }

// Dim is for what stands beside the conversation.
func (s Style) Dim(text string) string { return s.paint("2", text) }

// Red is for failures.
func (s Style) Red(text string) string { return s.paint("31", text) }

// Yellow is for answers that were cut off.
func (s Style) Yellow(text string) string { return s.paint("33", text) }

func (s Style) paint(code, text string) string {
	if !s.Color || text == "" {
		return text
	}
	// Line by line: whoever prints a line may do so alone.
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = "\x1b[" + code + "m" + line + "\x1b[0m"
	}
	return strings.Join(lines, "\n")
}

// Clean removes what could steer a terminal: every control and formatting
// character but newlines, tabs and the joiners that scripts and emoji need. It
// works on pieces of a text as on the whole.
func Clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\u200c' || r == '\u200d':
			return r
		case unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, text)
}

// Short is the beginning of a text on one line, at most limit characters.
func Short(text string, limit int) string {
	text = strings.Join(strings.Fields(Clean(text)), " ")
	runes := []rune(text)
	if len(runes) <= limit {
		return text
	}
	return string(runes[:max(0, limit-1)]) + "…"
}
