package markdown

import (
	"regexp"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

const (
	between = " │ "
	minCell = 6
)

var delimiter = regexp.MustCompile(`^[ ]*\|?(?:[ ]*:?-+:?[ ]*\|)*[ ]*:?-+:?[ ]*\|?[ ]*$`)

// tableRows returns the rows of the unfinished table. Without a second line of dashes, or in a terminal
// that is too narrow, its lines are ordinary lines.
func (r *Renderer) tableRows() (rows []string) {
	if len(r.table) >= 2 && delimiter.MatchString(r.table[1]) {
		if rows := grid(r.table, r.width()); rows != nil {
			return rows
		}
	}
	shown := r.shown
	r.shown = 0
	for _, line := range r.table {
		rows = append(rows, r.rows(r.block(line, true))...)
	}
	r.shown = shown
	return rows
}

// grid returns nil if the columns do not fit.
func grid(lines []string, width int) []string {
	header, dashes := cells(lines[0]), cells(lines[1])
	table := [][][]span{}
	widths := make([]int, len(header))
	for i, line := range lines {
		if i == 1 {
			continue
		}
		base := style(0)
		if i == 0 {
			base = bold
		}
		row := make([][]span, len(header))
		for j, text := range cells(line) {
			if j < len(row) {
				row[j] = spansOf(text, base)
				widths[j] = max(widths[j], ansi.StringWidth(paint(row[j])), 1)
			}
		}
		table = append(table, row)
	}
	total := (len(header) - 1) * ansi.StringWidth(between)
	for _, w := range widths {
		total += w
	}
	for ; total > width; total-- {
		widest := slices.Index(widths, slices.Max(widths))
		if widths[widest] <= minCell {
			return nil
		}
		widths[widest]--
	}
	var rows []string
	for i, row := range table {
		rows = append(rows, lineUp(row, widths, dashes)...)
		if i == 0 {
			var lines []string
			for _, w := range widths {
				lines = append(lines, strings.Repeat("─", w))
			}
			rows = append(rows, dim.paint(strings.Join(lines, "─┼─")))
		}
	}
	return rows
}

// lineUp wraps the cells of a row of a table.
func lineUp(row [][]span, widths []int, dashes []string) []string {
	parts := make([][]string, len(row))
	height := 0
	for i, cell := range row {
		parts[i] = wrapped(ansi.Wrap(paint(cell), widths[i], ""))
		height = max(height, len(parts[i]))
	}
	rows := make([]string, height)
	for y := range rows {
		var b strings.Builder
		for i := range row {
			text := ""
			if y < len(parts[i]) {
				text = parts[i][y]
			}
			space := max(0, widths[i]-ansi.StringWidth(text))
			left := 0
			if i < len(dashes) && strings.HasSuffix(dashes[i], ":") {
				if left = space; strings.HasPrefix(dashes[i], ":") {
					left = space / 2
				}
			}
			b.WriteString(strings.Repeat(" ", left) + text)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", space-left) + dim.paint(between))
			}
		}
		rows[y] = strings.TrimRight(b.String(), " ")
	}
	return rows
}

// cells splits a line at each | that is neither escaped nor in code.
func cells(line string) []string {
	line = strings.TrimSpace(line)
	line = strings.TrimPrefix(line, "|")
	var out []string
	isCode := false
	begin := 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case '`':
			isCode = !isCode
		case '|':
			if !isCode {
				out = append(out, strings.TrimSpace(line[begin:i]))
				begin = i + 1
			}
		}
	}
	if rest := strings.TrimSpace(line[begin:]); rest != "" {
		out = append(out, rest)
	}
	return out
}
