// Package markdown shows Markdown in a terminal while it arrives.
//
//	r := markdown.Renderer{Width: 80}
//	print(r.Write("# Na"))    // rows that are final
//	show(r.Tail())            // rows that can still change
//	print(r.Write("mes\n"))
//	print(r.End())
//
// Rendered are headings, emphasis, code, lists, quotations, links and tables with a leading |, line by line;
// anything else is shown as it is. Control characters are removed. A row that Write or End returns is never
// revised: emphasis is final after its end or that of its line, and a table after its last line.
package markdown

import (
	"cmp"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/seed-9ed7edd4/chronicle/internal/terminal"
)

const (
	// maxTail is the number of rows of an unfinished text that are kept together.
	maxTail = 5
	// maxLine bounds the time to parse a line, in bytes. A longer line continues in a new row.
	maxLine = 4000
)

// Renderer renders a text that arrives in pieces. Its zero value, with a width, is ready to use.
type Renderer struct {
	// Width is that of the terminal in cells. It may change at any time.
	Width int
	// IsPlain shows the text as it is.
	IsPlain bool

	// line is the unfinished line without its final rows, which have that many bytes; rest is how it continues.
	line  string
	final int
	rest  block
	fence string   // that opened a block of code; "" outside
	table []string // lines of an unfinished table
}

// block is how a line is shown.
type block struct {
	first, next string // precede the first and the further rows
	style       string
	isRaw       bool // without markup
	isCode      bool // spaces matter
}

// Rules and fences are shorter than the rows that are kept together.
var (
	rule    = regexp.MustCompile(`^ {0,3}(?:-{3,30}|\*{3,30}|_{3,30})$`)
	fences  = regexp.MustCompile("^ {0,9}(`{3,9}|~{3,9})([^`]{0,30})$")
	quote   = regexp.MustCompile(`^ {0,3}> ?`)
	heading = regexp.MustCompile(`^ {0,3}#{1,6} +`)
	item    = regexp.MustCompile(`^( *)(?:[-*+]|([0-9]{1,9}[.)])) +`)
	indent  = regexp.MustCompile(`^ +`)
)

// Write adds text and returns rows that are final.
func (r *Renderer) Write(text string) (rows []string) {
	r.line += strings.ReplaceAll(terminal.Clean(text), "\t", "    ")
	for {
		end := strings.IndexByte(r.line, '\n')
		next := end + 1
		if end < 0 {
			end, next = len(r.line), len(r.line)
		}
		if r.final+end > maxLine {
			for end = maxLine - r.final; !utf8.RuneStart(r.line[end]); end-- {
			}
			next = end
		} else if end == next {
			return append(rows, r.cut()...)
		}
		line := r.line[:end]
		r.line = r.line[next:]
		rows = append(rows, r.finish(line)...)
	}
}

// cut returns the first rows of an unfinished line, except the last ones, if no further text changes them.
func (r *Renderer) cut() []string {
	b, text := r.block(r.line)
	rows, open := b.rows(text, r.Width)
	for n := len(rows) - maxTail; n > 0 && !r.isTable(r.line); n-- {
		at := rows[n][0].at
		// The first word of a row decides what the row before it contains.
		if !rows[n][0].isExact || rows[n+1][0].at > open || isWord(text[at-1]) {
			continue
		}
		out := append(r.endTable(), b.paint(rows[:n])...)
		b.first = b.next
		r.final += len(r.line) - len(text[at:])
		r.line, r.rest = text[at:], b
		return out
	}
	return nil
}

// Tail returns the last rows of the text that Write has not returned.
func (r *Renderer) Tail() []string {
	rows := r.tableRows()
	if r.line != "" {
		rows = append(rows, r.show(r.line)...)
	}
	return rows[max(0, len(rows)-maxTail):]
}

// End returns the remaining rows. What follows begins a new line.
func (r *Renderer) End() (rows []string) {
	if r.line != "" {
		rows = r.finish(r.line)
	}
	r.line, r.final = "", 0
	return append(rows, r.endTable()...)
}

// Reset drops the remaining rows. What follows is another text.
func (r *Renderer) Reset() { *r = Renderer{Width: r.Width, IsPlain: r.IsPlain} }

// IsEmpty reports whether there are no remaining rows.
func (r *Renderer) IsEmpty() bool { return r.line == "" && len(r.table) == 0 }

// finish returns the rows of a line and of the table that it ends.
func (r *Renderer) finish(line string) (rows []string) {
	if r.isTable(line) {
		r.table = append(r.table, line)
	} else {
		rows = append(r.endTable(), r.show(line)...)
		r.fence, _ = r.fenceAfter(line)
	}
	r.final = 0
	return rows
}

func (r *Renderer) show(line string) []string {
	b, text := r.block(line)
	rows, _ := b.rows(text, r.Width)
	return b.paint(rows)
}

// block also returns the text without the marks in front of it.
func (r *Renderer) block(line string) (b block, text string) {
	_, isFence := r.fenceAfter(line)
	switch {
	case r.final > 0:
		return r.rest, line
	case r.IsPlain:
		return block{isRaw: true}, line
	case isFence, r.fence == "" && rule.MatchString(line):
		return block{isRaw: true, style: dim}, line
	case r.fence != "":
		return block{isRaw: true, isCode: true, style: code}, line
	}
	take := func(mark, first, next string) {
		b.first, b.next, line = b.first+first, b.next+next, line[len(mark):]
	}
	for mark := quote.FindString(line); mark != ""; mark = quote.FindString(line) {
		bar := paint(dim, "│") + " "
		take(mark, bar, bar)
	}
	if mark := heading.FindString(line); mark != "" {
		b.style = bold
		take(mark, "", "")
	} else if match := item.FindStringSubmatch(line); match != nil {
		mark := match[1] + cmp.Or(match[2], "•") + " "
		take(match[0], mark, strings.Repeat(" ", ansi.StringWidth(mark)))
	} else {
		spaces := indent.FindString(line)
		take(spaces, spaces, spaces)
	}
	if ansi.StringWidth(b.first) > r.Width/2 {
		b.first, b.next = "", ""
	}
	return b, line
}

// fenceAfter returns the fence that is open after a line, and whether the line is a fence.
func (r *Renderer) fenceAfter(line string) (fence string, isFence bool) {
	match := fences.FindStringSubmatch(line)
	switch {
	case match == nil, r.IsPlain, r.final > 0:
	case r.fence == "":
		return match[1], true
	case strings.HasPrefix(match[1], r.fence) && strings.TrimSpace(match[2]) == "":
		return "", true
	}
	return r.fence, false
}

// rows returns what follows the prefixes, and the offset of the first markup that further text can change.
func (b block) rows(text string, width int) (rows [][]cell, open int) {
	cells, open := cellsOf(text, b.style, 0, true), len(text)
	if !b.isRaw {
		cells, open = parse(text, b.style)
	}
	return wrap(cells, width-ansi.StringWidth(b.first), b.isCode), open
}

func (b block) paint(rows [][]cell) (out []string) {
	prefix := b.first
	for _, row := range rows {
		out = append(out, prefix+paintCells(row))
		prefix = b.next
	}
	return out
}
