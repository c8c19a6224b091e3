package markdown

import (
	"regexp"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

var delimiter = regexp.MustCompile(`^[ :|-]*-[ :|-]*$`)

func (r *Renderer) isTable(line string) bool {
	return !r.IsPlain && r.fence == "" && r.final == 0 && strings.HasPrefix(strings.TrimLeft(line, " "), "|")
}

func (r *Renderer) endTable() []string {
	rows := r.tableRows()
	r.table = nil
	return rows
}

// tableRows returns the rows of the unfinished table. Without a second line of dashes, or in a terminal
// that is too narrow, its lines are ordinary lines.
func (r *Renderer) tableRows() (rows []string) {
	if rows = aligned(r.table, r.Width); rows == nil {
		for _, line := range r.table {
			rows = append(rows, r.show(line)...)
		}
	}
	return rows
}

// aligned returns nil for lines that are no table, and for columns that do not fit.
func aligned(lines []string, width int) (rows []string) {
	if len(lines) < 2 || !delimiter.MatchString(lines[1]) {
		return nil
	}
	lines = slices.Delete(slices.Clone(lines), 1, 2)
	table := make([][]string, len(lines))
	var widths []int
	style := bold
	for i, line := range lines {
		for j, text := range columns(line) {
			cells, _ := parse(text, style)
			table[i] = append(table[i], paintCells(cells))
			if j == len(widths) {
				widths = append(widths, 0)
			}
			widths[j] = max(widths[j], ansi.StringWidth(table[i][j]))
		}
		style = ""
	}
	for _, row := range table {
		for j := range row[:len(row)-1] {
			row[j] += strings.Repeat(" ", widths[j]-ansi.StringWidth(row[j]))
		}
		line := strings.Join(row, paint(dim, " │ "))
		if ansi.StringWidth(line) > width {
			return nil
		}
		rows = append(rows, line)
	}
	return rows
}

// columns splits a line at each | that is not escaped.
func columns(line string) []string {
	const escaped = "\x00" // no text contains control characters
	line = strings.ReplaceAll(strings.TrimSpace(line), `\|`, escaped)
	columns := strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "|"), "|"), "|")
	for i, text := range columns {
		columns[i] = strings.TrimSpace(strings.ReplaceAll(text, escaped, "|"))
	}
	return columns
}
