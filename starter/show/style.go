package show

import (
	"strings"

	"github.com/seed-9ed7edd4/chronicle/internal/terminal"
)

// Style escapes control characters in text and colors it (ECMA-48, "SGR"). The zero value
// uses no colors.
type Style struct {
	Color bool
}

// Bold formats text of the user.
func (s Style) Bold(text string) string { return s.paint("1", text) }

// Dim formats text that is not part of the conversation.
func (s Style) Dim(text string) string { return s.paint("2", text) }

// Red formats failures.
func (s Style) Red(text string) string { return s.paint("31", text) }

// Yellow formats interrupted answers and calls that wait for an approval.
func (s Style) Yellow(text string) string { return s.paint("33", text) }

func (s Style) paint(code, text string) string {
	text = terminal.Clean(text)
	if !s.Color || text == "" {
		return text
	}
	// Each line is complete by itself, since callers may print them one by one.
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = "\x1b[" + code + "m" + line + "\x1b[0m"
	}
	return strings.Join(lines, "\n")
}

// Short truncates a value to one line of at most limit characters.
func Short(value string, limit int) string { return Excerpt(terminal.Value(value), limit) }

// Excerpt truncates a message to one line of at most limit characters.
func Excerpt(message string, limit int) string {
	text := terminal.OneLine(terminal.Clean(message))
	runes := []rune(text)
	if len(runes) <= limit {
		return text
	}
	return string(runes[:max(0, limit-1)]) + "…"
}
