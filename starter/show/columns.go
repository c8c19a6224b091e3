package show

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/seed-9ed7edd4/chronicle/internal/terminal"
)

const between = " │ "

// Columns wraps two texts side by side. Width is in terminal cells.
func Columns(width int, left, right string) string {
	half := max(10, (width-ansi.StringWidth(between))/2)
	lines := func(text string) []string {
		return strings.Split(ansi.Wrap(strings.ReplaceAll(terminal.Clean(text), "\t", "    "), half, ""), "\n")
	}
	l, r := lines(left), lines(right)
	var out strings.Builder
	for i := range max(len(l), len(r)) {
		var a, b string
		if i < len(l) {
			a = l[i]
		}
		if i < len(r) {
			b = r[i]
		}
		row := a + strings.Repeat(" ", max(0, half-ansi.StringWidth(a))) + between + b
		out.WriteString(strings.TrimRight(row, " ") + "\n")
	}
	return out.String()
}

func Cell(text string) string {
	return strings.NewReplacer("\\", "\\\\", "|", "\\|", "\n", "<br>").Replace(strings.TrimSpace(terminal.Clean(text)))
}
