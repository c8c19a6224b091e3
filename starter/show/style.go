package show

import (
	"strings"

	"github.com/seed-9ed7edd4/chronicle/terminal"
)

// Style cleans text and paints it with the colours that every terminal has (ECMA-48, "SGR").
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
	text = terminal.Clean(text)
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

// Short is the beginning of a text on one line, at most limit characters.
func Short(text string, limit int) string {
	text = terminal.Line(text)
	runes := []rune(text)
	if len(runes) <= limit {
		return text
	}
	return string(runes[:max(0, limit-1)]) + "…"
}
