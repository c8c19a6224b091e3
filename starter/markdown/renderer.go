package markdown

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/seed-9ed7edd4/chronicle/internal/terminal"
)

const (
	// maxTail is the number of rows of an unfinished line that are kept together.
	maxTail = 5
	// maxTable is the number of rows of a table that are aligned.
	maxTable = 200
	minWidth = 10
	maxRule  = 40
)

// Renderer renders a text that arrives in pieces. Its zero value, with a width, is ready to use.
type Renderer struct {
	// Width is that of the terminal in cells. It may change at any time.
	Width int
	// IsPlain shows the text as it is.
	IsPlain bool

	// line is the unfinished line, of which that many characters without spaces are in final rows. If
	// continues is not nil, the beginning of the line is in final rows, too.
	line      string
	shown     int
	continues *block
	// fence opened a block of code; "" outside.
	fence string
	// table holds the lines of an unfinished table.
	table []string
}

// Write adds text and returns rows that are final.
func (r *Renderer) Write(text string) (rows []string) {
	r.line += strings.ReplaceAll(terminal.Clean(text), "\t", "    ")
	for {
		line, rest, found := strings.Cut(r.line, "\n")
		if !found {
			break
		}
		rows = append(rows, r.finish(line)...)
		r.line, r.shown, r.continues = rest, 0, nil
	}
	if r.isTable(r.line) {
		return rows
	}
	b := r.block(r.line, false)
	unfinished := r.wrap(b)
	if len(unfinished) <= maxTail {
		return rows
	}
	for i, row := range unfinished[:len(unfinished)-1] {
		n := r.shown + b.count(ansi.Strip(row))
		// A word that becomes shorter can move to the end of the row before it.
		word, _, _ := strings.Cut(strings.TrimLeft(ansi.Strip(unfinished[i+1]), " "), " ")
		if n+b.count(word) > b.final {
			break
		}
		rows = append(append(rows, r.endTable()...), r.prefix(b)+row)
		r.shown = n
	}
	r.cut(b)
	return rows
}

// cut drops the part of the line that is in final rows, so that long lines take linear time.
func (r *Renderer) cut(b block) {
	count, at := 0, 0
	for _, p := range b.parts {
		n := b.count(p.text)
		at = p.offset
		if count+n < r.shown {
			count += n
			continue
		}
		if !p.isLiteral {
			break
		}
		for i, c := range p.text {
			if count == r.shown && (b.isCode || !unicode.IsSpace(c)) {
				break
			}
			count += b.count(string(c))
			at = p.offset + i + utf8.RuneLen(c)
		}
		break
	}
	if at == 0 {
		return
	}
	before, _ := utf8.DecodeLastRuneInString(b.text[:at])
	r.line, r.shown = b.text[at:], r.shown-count
	r.continues = &block{first: b.next, next: b.next, base: b.base, isCode: b.isCode, isPlain: b.isPlain, before: before}
}

// Tail returns the last rows of the text that Write has not returned.
func (r *Renderer) Tail() []string {
	rows := r.tableRows()
	if r.line != "" {
		rows = append(rows, r.rows(r.block(r.line, false))...)
	}
	return rows[max(0, len(rows)-maxTail):]
}

// End returns the remaining rows. What follows is another text.
func (r *Renderer) End() (rows []string) {
	if r.line != "" {
		rows = r.finish(r.line)
	}
	rows = append(rows, r.endTable()...)
	r.Reset()
	return rows
}

// Break returns the remaining rows. What follows continues the text in a new row.
func (r *Renderer) Break() []string {
	fence, isWithinLine := r.fence, r.line != "" || r.continues != nil
	rows := r.End()
	if r.fence = fence; isWithinLine {
		r.continues = &block{isPlain: r.IsPlain}
		if fence != "" {
			r.continues = &block{isCode: true, base: code}
		}
	}
	return rows
}

// Reset drops the remaining rows.
func (r *Renderer) Reset() { *r = Renderer{Width: r.Width, IsPlain: r.IsPlain} }

// IsEmpty reports whether there are no remaining rows.
func (r *Renderer) IsEmpty() bool { return r.line == "" && len(r.table) == 0 }

func (r *Renderer) width() int { return max(minWidth, r.Width) }

// finish returns the rows of a line, except those that are final already, and of the table that it ends.
func (r *Renderer) finish(line string) []string {
	if r.isTable(line) && len(r.table) < maxTable {
		r.table = append(r.table, line)
		return nil
	}
	var rows []string
	if !r.isContinued() {
		rows = r.endTable()
	}
	rows = append(rows, r.rows(r.block(line, true))...)
	if fence, info := fenceOf(line); !r.IsPlain && !r.isContinued() && fence != "" {
		switch {
		case r.fence == "":
			r.fence = fence
		case info == "" && strings.HasPrefix(fence, r.fence):
			r.fence = ""
		}
	}
	return rows
}

func (r *Renderer) endTable() []string {
	rows := r.tableRows()
	r.table = nil
	return rows
}

// isContinued reports whether a part of the line is in final rows.
func (r *Renderer) isContinued() bool { return r.shown > 0 || r.continues != nil }

func (r *Renderer) isTable(line string) bool {
	return !r.IsPlain && r.fence == "" && !r.isContinued() && strings.HasPrefix(strings.TrimLeft(line, " "), "|")
}

// prefix precedes the next row of a line.
func (r *Renderer) prefix(b block) string {
	if r.isContinued() {
		return b.next
	}
	return b.first
}

// rows returns the rows of a line that are not final.
func (r *Renderer) rows(b block) []string {
	rows := r.wrap(b)
	prefix := r.prefix(b)
	for i := range rows {
		rows[i] = prefix + rows[i]
		prefix = b.next
	}
	return rows
}

// wrap returns the rows without what precedes them.
func (r *Renderer) wrap(b block) []string {
	spans := b.spans
	if r.isContinued() {
		if spans = b.after(r.shown); spans == nil {
			return nil
		}
	}
	width := r.width() - ansi.StringWidth(b.first)
	if b.isCode {
		return wrapped(ansi.Hardwrap(paint(spans), width, true))
	}
	// Wrap can exceed the width by a hyphen.
	return wrapped(ansi.Hardwrap(ansi.Wrap(paint(spans), width, ""), width, true))
}

// unused is a style of no text.
var unused = regexp.MustCompile(`\x1b\[[0-9;]+m\x1b\[m`)

func paint(spans []span) string {
	var b strings.Builder
	for _, s := range spans {
		b.WriteString(s.style.paint(s.text))
	}
	return b.String()
}

// wrapped splits a text into rows, each of which begins and ends without a style.
func wrapped(text string) []string {
	rows := strings.Split(text, "\n")
	current := ""
	for i, row := range rows {
		row = current + row
		current = ""
		if at := strings.LastIndex(row, "\x1b["); at >= 0 {
			if last := row[at : at+strings.IndexByte(row[at:], 'm')+1]; last != ansi.ResetStyle {
				current = last
				row += ansi.ResetStyle
			}
		}
		rows[i] = unused.ReplaceAllString(row, "")
	}
	return rows
}
